"""Equalizes speakers by ITU-R BS.1770 loudness, with one gain per speaker."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from engine import SAMPLE_RATE, Pcm
from studio.scripts.line_audio import LineAudio
from studio.scripts.timeline import Span, Timeline, sound_of

WANTED = -19.0  # LUFS: usual for spoken word in mono
CEILING = -1.0  # dBFS
YIELD = 6.0  # dB that all voices may be below WANTED to avoid clipping the highest peak
MOST = 20.0  # dB; audio that needs more is no speech
_ENOUGH = 60 * SAMPLE_RATE  # samples per speaker that are measured
_LEAST = round(0.4 * SAMPLE_RATE)  # one block of the measurement


@dataclass(frozen=True)
class Level:
    """A speaker's loudness (LUFS) and highest peak (dBFS)."""

    loudness: float
    peak: float


def loudness_gains(
    timeline: Timeline, sounds: LineAudio, wanted: float = WANTED
) -> dict[str, float]:
    """A gain for every speaker, for equal loudness."""
    spans: dict[str, list[Span]] = defaultdict(list)
    for span in timeline.heard:
        spans[span.line.speaker].append(span)
    levels = {speaker: measure(own, sounds) for speaker, own in spans.items()}
    known = {speaker: level for speaker, level in levels.items() if level}
    reachable = [level.loudness + CEILING - level.peak for level in known.values()]
    target = max(wanted - YIELD, min([wanted, *reachable]))
    return {
        speaker: 10 ** (min(MOST, target - level.loudness) / 20) for speaker, level in known.items()
    }


def measure(spans: Sequence[Span], sounds: LineAudio) -> Level | None:
    """The level of these spans; None for silence or too little audio."""
    parts: list[Pcm] = []
    measured, peak = 0, 0
    for span in spans:
        pcm = sound_of(span, sounds)
        peak = max(peak, int(np.abs(pcm.astype(np.int32)).max()))
        if measured < _ENOUGH:
            parts.append(pcm[: _ENOUGH - measured])
            measured += len(parts[-1])
    loudness = loudness_of(np.concatenate(parts)) if measured >= _LEAST and peak else -math.inf
    return Level(loudness, 20 * math.log10(peak / 32768)) if math.isfinite(loudness) else None


def loudness_of(pcm: Pcm) -> float:
    """The loudness in LUFS; minus infinity for silence."""
    import pyloudnorm  # imported late, since it loads scipy

    with np.errstate(divide="ignore"):
        return float(pyloudnorm.Meter(SAMPLE_RATE).integrated_loudness(pcm / 32768.0))
