"""The form of training speech: rates, lengths, loudness, and what an utterance is."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

RATE = 24_000
FRAME = 1_920
PHONE_STEP = 480  # samples: 20 ms
PHONES_A_FRAME = FRAME // PHONE_STEP
LOUDNESS = -20.0  # LUFS
LONGEST = 10.5  # seconds
UNKNOWN = 255  # a phone on a shard that nobody wrote down
IGNORED = -100  # such a phone as losses know it

Wave = NDArray[np.float32]


@dataclass(frozen=True)
class Utterance:
    text: str
    speaker: int
    style: int


def pad(wave: Wave) -> Wave:
    """Pad to a whole frame, with short fades at both ends."""
    ramp = np.linspace(0, 1, 120, dtype=np.float32)
    wave = wave.copy()
    wave[:120] *= ramp
    wave[-120:] *= ramp[::-1]
    return np.pad(wave, (0, -len(wave) % FRAME))


def weighting(hertz: NDArray[np.float64]) -> NDArray[np.float64]:
    """Power gain of BS.1770's K weighting, from its two filters' analogue forms."""
    s = 2j * np.pi * hertz
    w1, q1, gain = 2 * np.pi * 1681.97, 0.7072, 10 ** (3.99984 / 20)
    shelf = (gain * s**2 + gain**0.4996 * w1 / q1 * s + w1**2) / (s**2 + w1 / q1 * s + w1**2)
    w2, q2 = 2 * np.pi * 38.135, 0.5003
    high = s**2 / (s**2 + w2 / q2 * s + w2**2)
    return np.abs(shelf * high) ** 2
