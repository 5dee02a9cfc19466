"""Loudness by ITU-R BS.1770: one gain per speaker, so that all are equally loud and the whole meets
a target. Peaks that exceed the ceiling then are limited (limiter.py).
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace

import numpy as np

from engine import SAMPLE_RATE, Pcm
from studio.scripts.export.limiter import Limiter, Samples
from studio.scripts.line_audio import LineAudio
from studio.scripts.timeline import Span, Timeline, silence_of, sound_of

WANTED = -19.0  # LUFS: usual for spoken word in mono
MOST = 30.0  # dB; audio that needs more is no speech
PASSES = 4  # of limiting and measuring; more change little
CLOSE = 0.2  # dB from the target that is close enough
_OF_SPEAKER = 120 * SAMPLE_RATE  # samples of a speaker that are measured, spread over all
_OF_WHOLE = 1800 * SAMPLE_RATE
_HOP = SAMPLE_RATE // 10  # samples; a block of the measurement has four
_GATE, _RELATIVE_GATE = -70.0, -10.0  # LUFS, LU


class LoudnessMeter:
    """Measures a stream; equal to pyloudnorm over all of it, in little memory."""

    def __init__(self) -> None:
        from pyloudnorm.iirfilter import IIRfilter  # imported late, since it loads scipy

        shelf = IIRfilter(4.0, 1 / math.sqrt(2), 1500.0, SAMPLE_RATE, "high_shelf")
        high_pass = IIRfilter(0.0, 0.5, 38.0, SAMPLE_RATE, "high_pass")
        self._filters = [(each.b, each.a) for each in (shelf, high_pass)]
        self._states = [np.zeros(2), np.zeros(2)]
        self._rest: Samples = np.zeros(0)
        self._hops: list[Samples] = []  # energy of each 100 ms

    def feed(self, samples: Samples) -> None:
        from scipy.signal import lfilter

        if not len(samples):
            return
        for place, (b, a) in enumerate(self._filters):
            samples, self._states[place] = lfilter(b, a, samples, zi=self._states[place])
        whole = np.concatenate((self._rest, samples))
        count = len(whole) // _HOP
        self._hops.append(np.square(whole[: count * _HOP]).reshape(count, _HOP).sum(axis=1))
        self._rest = whole[count * _HOP :]

    @property
    def loudness(self) -> float:
        """LUFS so far; minus infinity for silence or less than 400 ms."""
        hops = np.concatenate(self._hops) if self._hops else np.zeros(0)
        if len(hops) < 4:
            return -math.inf
        blocks = np.convolve(hops, np.ones(4), "valid") / (4 * _HOP)
        loud = blocks[_lufs(blocks) > _GATE]
        if not len(loud):
            return -math.inf
        loud = loud[_lufs(loud) > _lufs(loud.mean()) + _RELATIVE_GATE]
        return float(_lufs(loud.mean())) if len(loud) else -math.inf


def loudness_gains(
    timeline: Timeline,
    sounds: LineAudio,
    wanted: float = WANTED,
    on_progress: Callable[[float], object] = lambda _: None,
) -> dict[str, float]:
    """A factor for every speaker, with which the limited whole has the wanted loudness.

    `on_progress` is called with the progress, 0 to 1.
    """
    spans: dict[str, list[Span]] = defaultdict(list)
    for span in timeline.heard:
        spans[span.line.speaker].append(span)
    alone = {who: _sample_of(Timeline(tuple(own), ()), _OF_SPEAKER) for who, own in spans.items()}
    whole = _sample_of(timeline, _OF_WHOLE)
    size = sum(own.samples for own in alone.values()) + whole.samples
    done = 0  # samples of what is measured

    def measured(timeline: Timeline, decibels: dict[str, float]) -> dict[str, float]:
        nonlocal done
        before, own = done / size, timeline.samples / size
        found = _corrected(
            timeline, sounds, wanted, decibels, lambda share: on_progress(before + own * share)
        )
        done += timeline.samples
        return found

    decibels: dict[str, float] = {}
    for who, own in alone.items():
        decibels |= measured(own, {who: 0.0})
    return _factors(measured(whole, decibels))


def _corrected(
    timeline: Timeline,
    sounds: LineAudio,
    wanted: float,
    decibels: dict[str, float],
    on_progress: Callable[[float], object],
) -> dict[str, float]:
    """All gains changed alike until the limited audio has the wanted loudness."""
    size = max(1, timeline.samples)
    for number in range(PASSES):
        meter, fed = LoudnessMeter(), 0
        for block in mastered(timeline, sounds, _factors(decibels)):
            meter.feed(block)
            fed += len(block)
            on_progress((number + min(1.0, fed / size)) / PASSES)
        missing = wanted - meter.loudness
        if not math.isfinite(missing) or abs(missing) <= CLOSE:
            break
        decibels = {who: min(MOST, each + missing) for who, each in decibels.items()}
    return decibels


def mastered(
    timeline: Timeline, sounds: LineAudio, gains: Mapping[str, float]
) -> Iterator[Samples]:
    """The whole as blocks: every line with its speaker's gain, limited."""
    limiter = Limiter()
    for span in timeline.spans:
        yield limiter.feed(sound_of(span, sounds) / 32768.0 * gains.get(span.line.speaker, 1.0))
        for silence in silence_of(span):
            yield limiter.feed(silence / 32768.0)
    yield limiter.finish()


def as_pcm(samples: Samples) -> Pcm:
    pcm: Pcm = np.clip(np.rint(samples * 32768.0), -32768, 32767).astype(np.int16)
    return pcm


def _factors(decibels: Mapping[str, float]) -> dict[str, float]:
    return {speaker: float(10 ** (each / 20)) for speaker, each in decibels.items()}


def _sample_of(timeline: Timeline, most: int) -> Timeline:
    """All of it, or lines spread evenly over it."""
    every = -(-sum(span.samples for span in timeline.spans) // most)
    return replace(timeline, spans=timeline.spans[:: max(1, every)])


def _lufs(energy: Samples) -> Samples:
    lufs: Samples = -0.691 + 10 * np.log10(np.maximum(energy, 1e-12))
    return lufs
