"""When each word of a text is heard in its speech: one answer for captions, subtitles and the API.

Found by aligning the letters with the sound (`alignment`). Speech that is too short for its text,
as when it was cut off, gets each word's share of what is not silent.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import pairwise
from typing import Final

import numpy as np

from engine import SAMPLE_RATE, Pcm
from studio.word_times.alignment import align

__all__ = ["part_times", "word_times"]

HOP: Final = 240  # samples: 10 ms
SILENT: Final = 10 ** (-35 / 20)  # relative to the peak
_PIECE: Final = re.compile(r"[^\s，。！？；：、]+[，。！？；：、]*|[，。！？；：、]+")

Span = tuple[float, float]


def word_times(text: str, pcm: Pcm) -> list[tuple[str, float, float]]:
    """The words between spaces with their start and end in seconds."""
    words = text.split()
    spans = part_times(words, pcm)
    return [(word, *span) for word, span in zip(words, spans, strict=True)] if spans else []


def part_times(parts: Sequence[str], pcm: Pcm) -> list[Span]:
    """Start and end in seconds of each part of a text, in order; none where nothing is heard."""
    pieces = [_PIECE.findall(part) for part in parts]
    words = [piece for part in pieces for piece in part]
    if not words or not pcm.any():
        return []
    spans = iter(align(words, pcm) or _shares(words, pcm))
    found: list[Span] = []
    for part in pieces:
        of_part = [next(spans) for _ in part]
        before = found[-1][1] if found else 0.0
        found.append((of_part[0][0], of_part[-1][1]) if of_part else (before, before))
    return found


def _shares(words: Sequence[str], pcm: Pcm) -> list[Span]:
    """By letters, over all 10 ms windows that are not silent."""
    windows = np.abs(pcm[: len(pcm) // HOP * HOP].reshape(-1, HOP).astype(np.float32)).max(axis=1)
    spoken = np.flatnonzero(windows > windows.max(initial=0) * SILENT) * HOP / SAMPLE_RATE
    if not len(spoken):
        return [(0.0, 0.0)] * len(words)
    shares = np.cumsum([0, *(max(1, sum(map(str.isalnum, word))) for word in words)])
    places = np.interp(shares / shares[-1], np.linspace(0, 1, len(spoken)), spoken)
    return [(float(a), float(b)) for a, b in pairwise(places)]
