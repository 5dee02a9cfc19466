"""Loudness by ITU-R BS.1770: one gain per speaker, so that all are equally loud and the whole, with
its music, meets a target. Peaks that exceed the ceiling then are limited (limiter.py).
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace

import numpy as np

from engine import SAMPLE_RATE, Pcm
from studio.scripts.export.limiter import Limiter, Samples
from studio.scripts.line_audio import LineAudio
from studio.scripts.music.bed import REFERENCE, Music
from studio.scripts.timeline import Span, Timeline, silence_of, sound_of

WANTED = -19.0  # LUFS: usual for spoken word in mono
MOST = 30.0  # dB; audio that needs more is no speech
PASSES = 4  # of limiting and measuring; more change little
CLOSE = 0.2  # dB from the target that is close enough
_OF_SPEAKER = 120 * SAMPLE_RATE  # samples of a speaker that are measured, spread over all
_OF_WHOLE = 1800 * SAMPLE_RATE
_HOP = SAMPLE_RATE // 10  # samples; a block of the measurement has four
_GATE, _RELATIVE_GATE = -70.0, -10.0  # LUFS, LU


@dataclass(frozen=True)
class Gains:
    """The gains of speakers and music, in dB."""

    speakers: Mapping[str, float]
    music: float = 0.0

    def more(self, decibels: float) -> Gains:
        """The gains, each raised by so many dB."""
        louder = {who: min(MOST, each + decibels) for who, each in self.speakers.items()}
        return Gains(louder, min(MOST, self.music + decibels))


AS_SPOKEN = Gains({})


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
    music: Music | None = None,
) -> Gains:
    """Gains with which the limited whole has the wanted loudness.

    `on_progress` is called with the progress, 0 to 1.
    """
    spans: dict[str, list[Span]] = defaultdict(list)
    for span in timeline.heard:
        spans[span.line.speaker].append(span)
    alone = {
        who: _sample_of(Timeline(tuple(speaker_spans), ()), _OF_SPEAKER)
        for who, speaker_spans in spans.items()
    }
    whole = _sample_of(timeline, _OF_WHOLE)
    size = sum(sample.samples for sample in alone.values()) + whole.samples
    done = 0  # samples of what is measured

    def measured(timeline: Timeline, gains: Gains, music: Music | None = None) -> Gains:
        nonlocal done
        before, part = done / size, timeline.samples / size

        def on_share(share: float) -> None:
            on_progress(before + part * share)

        found = _corrected(timeline, sounds, wanted, gains, music, on_share)
        done += timeline.samples
        return found

    speakers: dict[str, float] = {}
    for who, sample in alone.items():
        speakers |= measured(sample, Gains({who: 0.0})).speakers
    return measured(whole, Gains(speakers, wanted - REFERENCE), music)


def _corrected(
    timeline: Timeline,
    sounds: LineAudio,
    wanted: float,
    gains: Gains,
    music: Music | None,
    on_progress: Callable[[float], object],
) -> Gains:
    """Raise or lower all gains alike until the limited audio has the wanted loudness."""
    size = max(1, timeline.samples)
    for number in range(PASSES):
        meter, fed = LoudnessMeter(), 0
        for block in mastered(timeline, sounds, gains, music):
            meter.feed(block)
            fed += len(block)
            on_progress((number + min(1.0, fed / size)) / PASSES)
        missing = wanted - meter.loudness
        if not math.isfinite(missing) or abs(missing) <= CLOSE:
            break
        gains = gains.more(missing)
    return gains


def mastered(
    timeline: Timeline, sounds: LineAudio, gains: Gains, music: Music | None = None
) -> Iterator[Samples]:
    """The whole as blocks, limited: every line with its speaker's gain, the music beside it."""
    limiter = Limiter()
    bed = music.bed() if music else None
    under = _factor(gains.music)
    for span in timeline.spans:
        speech = sound_of(span, sounds)
        whole = speech / 32768.0 * _factor(gains.speakers.get(span.line.speaker, 0.0))
        if bed:
            bed.jump(span.start)  # some lines stand for all where these are measured
            whole += bed.under(span.line.id, speech) * under
        yield limiter.feed(whole)
        for silence in silence_of(span):
            quiet = silence / 32768.0
            if bed:
                quiet += bed.under(span.line.id, silence, bool(span.key)) * under
            yield limiter.feed(quiet)
    for rest in bed.tail() if bed else ():
        yield limiter.feed(rest * under)
    yield limiter.finish()


def as_pcm(samples: Samples) -> Pcm:
    pcm: Pcm = np.clip(np.rint(samples * 32768.0), -32768, 32767).astype(np.int16)
    return pcm


def _factor(decibels: float) -> float:
    return float(10 ** (decibels / 20))


def _sample_of(timeline: Timeline, most: int) -> Timeline:
    """The whole timeline, or lines spread evenly over it."""
    every = -(-sum(span.samples for span in timeline.spans) // most)
    return replace(timeline, spans=timeline.spans[:: max(1, every)])


def _lufs(energy: Samples) -> Samples:
    lufs: Samples = -0.691 + 10 * np.log10(np.maximum(energy, 1e-12))
    return lufs
