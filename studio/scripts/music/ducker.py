"""How far music is lowered under speech, sample by sample in a stream.

Speech is heard where 10 ms of it are louder than a threshold, and for a while after; the depth
rises to 1 then and falls to 0 in pauses. It depends on the last RECALLED samples alone, and not on
the size of the blocks. Knows no music.
"""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray

from engine import SAMPLE_RATE, Pcm

HOP: Final = SAMPLE_RATE // 100  # samples that are judged at once
THRESHOLD: Final = -45.0  # dB of full scale
HOLD: Final = 60  # hops after the last with speech: a breath is no pause
ATTACK, RELEASE = 0.15, 1.2  # seconds from 0 to 1, and back
_LOUD: Final = round(HOP * (32768 * 10 ** (THRESHOLD / 20)) ** 2)  # of squares in a hop
_DOWN, _UP = 1 / (ATTACK * SAMPLE_RATE), -1 / (RELEASE * SAMPLE_RATE)  # a sample

# Speech, with its HOLD, lasts longer than ATTACK: whatever was before, so much decides the depth.
RECALLED: Final = HOP * (HOLD + 4) + round((ATTACK + RELEASE) * SAMPLE_RATE)

Depths = NDArray[np.float64]


class Ducker:
    """`position`: of the next sample in the whole."""

    def __init__(self, position: int = 0) -> None:
        self._into = position % HOP  # samples of this hop so far
        self._squares = 0  # of these
        self._held = 0  # hops for which speech is held
        self._depth = 0.0  # where this hop began

    def feed(self, speech: Pcm) -> Depths:
        """The depth at each sample, 0 to 1."""
        size = len(speech)
        if not size:
            return np.zeros(0)
        starts = range(-self._into, size, HOP)  # of the hops, in this block
        padded = np.zeros(len(starts) * HOP, np.int64)
        padded[self._into : self._into + size] = speech
        squares = np.square(padded).reshape(-1, HOP).sum(axis=1)
        squares[0] += self._squares
        begun = np.empty(len(starts))
        slopes = np.empty(len(starts))
        whole = (self._into + size) // HOP
        for hop, energy in enumerate(squares):
            slope = _DOWN if self._held else _UP
            begun[hop], slopes[hop] = self._depth, slope
            if hop < whole:
                self._depth = min(1.0, max(0.0, self._depth + slope * HOP))
                self._held = HOLD if energy > _LOUD else max(0, self._held - 1)
        depths = np.clip(begun[:, None] + slopes[:, None] * np.arange(HOP), 0.0, 1.0).reshape(-1)
        some: Depths = depths[self._into : self._into + size]
        self._into = (self._into + size) % HOP
        self._squares = int(squares[whole]) if self._into else 0
        return some
