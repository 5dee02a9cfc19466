"""The times of words in a header or a message, as vllm-omni tells them."""

from __future__ import annotations

from typing import Any, Final

from engine import Pcm
from studio.api.json_text import to_json
from studio.word_times import word_times

MOST: Final = 4096  # bytes of a header: proxies refuse longer ones


def timestamps(text: str, pcm: Pcm, speed: float = 1.0) -> list[dict[str, Any]]:
    """`pcm`: the speech of the text, before its speed was changed."""
    return [
        {
            "word": word,
            "start_ms": round(1000 * start / speed),
            "end_ms": round(1000 * stop / speed),
        }
        for word, start, stop in word_times(text, pcm)
    ]


def time_headers(text: str, pcm: Pcm, speed: float) -> dict[str, str]:
    least = [{"word": word, "start_ms": 0, "end_ms": 0} for word in text.split()]
    header = to_json(least)
    if len(header) <= MOST:  # else hours of speech would be aligned for nothing
        header = to_json(timestamps(text, pcm, speed))
    if len(header) > MOST:
        return {"x-word-timestamps-omitted": f"oversize; bytes={len(header)}; limit={MOST}"}
    return {"x-word-timestamps": header}
