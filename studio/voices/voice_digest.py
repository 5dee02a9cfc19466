"""What a voice consists of, as a digest: equal digests are equal voices."""

from __future__ import annotations

import hashlib
import json
from typing import Any

from engine import Blend, Clone, Design, Mood, Mooded, Preset, Voice


def voice_digest(voice: Voice) -> str:
    """A digest of everything that a voice consists of."""
    return digest_of(voice_parts(voice))


def voice_parts(voice: Voice) -> list[Any]:
    """A voice as plain data, with arrays as digests."""
    if isinstance(voice, Preset):
        return ["preset", voice.name.casefold(), voice.instruct]
    if isinstance(voice, Design):
        return ["design", voice.instruct]
    if isinstance(voice, Blend):
        return ["blend", voice.method, [[voice_parts(v), weight] for v, weight in voice.parts]]
    if isinstance(voice, Mooded):
        moods = sorted([mood_digest(mood), strength] for mood, strength in voice.moods)
        return ["mooded", voice_parts(voice.voice), moods]
    return ["clone", *clone_parts(voice)]


def mood_digest(mood: Mood) -> str:
    return hashlib.sha256(mood.shift.tobytes()).hexdigest()


def clone_parts(voice: Clone) -> list[str]:
    codes = b"" if voice.codes is None else voice.codes.tobytes()
    arrays = [hashlib.sha256(data).hexdigest() for data in (voice.vector.tobytes(), codes)]
    learned = [] if voice.rows is None else [hashlib.sha256(voice.rows.tobytes()).hexdigest()]
    return [*arrays, voice.transcript, *learned]


def digest_of(parts: list[Any]) -> str:
    """The digest of plain data."""
    text = json.dumps(parts, ensure_ascii=True, sort_keys=True)
    return hashlib.sha256(text.encode("ascii")).hexdigest()[:32]
