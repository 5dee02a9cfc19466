"""Where speech may stop and go on later: at a pause, never inside a word.

On a machine slower than real time a listener who does not want to wait hears each piece as soon as
it is made, and silence until the next one. A frame's border is a place for that if it is quiet on
both sides of it, longer than a consonant takes. Knows no streams.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from engine.thresholds import LEAST_PIECE, MOST_PIECE, QUIET, QUIET_WINDOWS
from engine.types import FRAME_SAMPLES, Chunk

WINDOWS = 4  # of a frame, 20 ms each


def split(chunks: list[Chunk], loudest: float) -> tuple[Chunk | None, list[Chunk], float]:
    """Divide held chunks: what may be heard, what stays held, and the loudest window so far."""
    pcm = np.concatenate([chunk.pcm for chunk in chunks])
    codes = np.concatenate([chunk.codes for chunk in chunks])
    levels = _levels(pcm[: len(codes) * FRAME_SAMPLES])
    loudest = max(loudest, float(levels.max(initial=0.0)))
    frames = _border(levels, loudest)
    if not frames:
        return None, chunks, loudest
    whole = replace(chunks[0], pcm=pcm[: frames * FRAME_SAMPLES], codes=codes[:frames])
    rest = replace(
        chunks[0], index=chunks[0].index + 1, pcm=pcm[frames * FRAME_SAMPLES :],
        codes=codes[frames:],
    )  # fmt: skip
    return whole, [rest], loudest


def _levels(pcm: NDArray[np.int16]) -> NDArray[np.float64]:
    """Root mean square of each window."""
    windows = pcm.reshape(-1, FRAME_SAMPLES // WINDOWS).astype(np.float64)
    levels: NDArray[np.float64] = np.sqrt(np.square(windows).mean(1))
    return levels


def _border(levels: NDArray[np.float64], loudest: float) -> int:
    """Frames before the last border that is a pause; 0: there is none yet."""
    count = len(levels) // WINDOWS
    borders = range(LEAST_PIECE, count)  # behind the last frame nothing is known yet
    around = {}
    for border in borders:
        at = border * WINDOWS
        around[border] = float(levels[at - QUIET_WINDOWS : at + QUIET_WINDOWS].max())
    quiet = [border for border, level in around.items() if level <= QUIET * loudest]
    if quiet:
        return quiet[-1]
    if count < MOST_PIECE:
        return 0
    return min(around, key=lambda border: around[border])
