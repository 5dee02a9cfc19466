"""A long text in one request, minute by minute: does the voice wander in pitch or level?

Knows no models and no recogniser.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from bench.quality import acoustic_features
from engine import SAMPLE_RATE, Waveform

MINUTE = 60 * SAMPLE_RATE


@dataclass(frozen=True)
class Wander:
    """What was found of each minute: semitones and LU from the whole."""

    pitch: list[float]
    level: list[float]

    @property
    def slope(self) -> tuple[float, float]:
        """Semitones and LU by which a straight line through the minutes ends above its begin."""
        return _rise(self.pitch), _rise(self.level)

    @property
    def farthest(self) -> tuple[float, float]:
        return max(map(abs, self.pitch)), max(map(abs, self.level))

    def __str__(self) -> str:
        (up, louder), (pitch, level) = self.slope, self.farthest
        return (
            f"pitch from begin to end {up:+.2f}, a minute's farthest {pitch:.2f} semitones;"
            f" level {louder:+.2f}, {level:.2f} LU"
        )


def _rise(values: list[float]) -> float:
    if len(values) < 2:
        return 0.0
    slope, _ = np.polyfit(np.arange(len(values)), values, 1)
    return float(slope) * (len(values) - 1)


def wander(wave: Waveform) -> Wander:
    """Of a speech of a minute at least; a rest of less than half a minute is left out."""
    import pyloudnorm  # which loads half of scipy

    meter = pyloudnorm.Meter(SAMPLE_RATE)
    whole = acoustic_features.pitch(wave), meter.integrated_loudness(wave)
    count = max(1, round(len(wave) / MINUTE))
    minutes = [wave[n * MINUTE : (n + 1) * MINUTE] for n in range(count)]
    pitches = [12 * math.log2(acoustic_features.pitch(each) / whole[0]) for each in minutes]
    return Wander(pitches, [meter.integrated_loudness(each) - whole[1] for each in minutes])
