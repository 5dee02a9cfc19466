"""The times of words in their speech, and the form in which vllm-omni tells them.

The model gives no timestamps. They are estimated from each word's share of the letters, over the
parts of the audio that are not silent. docs/clients.md has the accuracy.
"""

from __future__ import annotations

import re
from typing import Any, Final

import numpy as np

from engine import SAMPLE_RATE, Pcm
from studio.api.responses.json_text import to_json

MOST: Final = 4096  # bytes of a header: proxies refuse longer ones
HOP: Final = 240  # samples: 10 ms
SILENT: Final = 10 ** (-35 / 20)  # relative to the peak
_WORD = re.compile(r"\S+")


def word_times(text: str, pcm: Pcm) -> list[tuple[str, float, float]]:
    """Words with their start and end in seconds."""
    words = _WORD.findall(text)
    shares = np.cumsum([0, *(max(1, sum(map(str.isalnum, word))) for word in words)])
    spoken = _spoken_at(pcm)
    if not words or not len(spoken):
        return []
    places = np.interp(shares / shares[-1], np.linspace(0, 1, len(spoken)), spoken)
    return [
        (word, float(start), float(stop))
        for word, start, stop in zip(words, places[:-1], places[1:], strict=True)
    ]


def _spoken_at(pcm: Pcm) -> np.ndarray:
    """The times of all 10 ms windows that are not silent."""
    frames = np.abs(pcm[: len(pcm) // HOP * HOP].reshape(-1, HOP).astype(np.float32)).max(axis=1)
    loud = np.flatnonzero(frames > frames.max(initial=0) * SILENT)
    return (loud * HOP) / SAMPLE_RATE


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
    told = to_json(timestamps(text, pcm, speed))
    if len(told) > MOST:
        return {"x-word-timestamps-omitted": f"oversize; bytes={len(told)}; limit={MOST}"}
    return {"x-word-timestamps": told}
