"""What is wrong with a reference recording: noise, music, a room, a second person.

A voice in context goes on where its recording ends, with all that is in it. So a recording with one
of these flaws gives its speaker embedding alone. Estimates from the samples; knows no networks.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from engine.audio.pause_tones import TONE, at_one_speed, spectra_of, tones_of
from engine.messages import Message
from engine.types import SAMPLE_RATE, Waveform

NOISY, ROOMY = 18.0, 12.0  # dB: of speech over noise, and by which clean speech falls in `_FALL`
MUSICAL = 11.8  # dB by which tones stand out in pauses: rooms of people up to 11.6, hiss 9
DRIFTING = 10.4  # and with all pauses brought to one speed: machines up to 9.8, music from 11
HEARD = 45.0  # dB below the speech, under which nobody hears what is in its pauses
CLIPPED = 0.001  # of the samples, from which it is heard
APART = 7.0  # semitones between two people's pitches
STEP = SAMPLE_RATE // 100  # 10 ms
_FALL = 8  # steps
AUDIBLE = 25.0  # dB below the loudest from which a fall counts
_FRAME = 1024
_LOWEST, _HIGHEST = 65.0, 420.0  # Hz
_VOICED = 0.72  # of a window's autocorrelation
_TURN = 1.2  # seconds of speech whose median pitch is one person's
_LEAST = 20  # voiced windows in it
_WHOLE = 60.0  # seconds whose pitches are one person's or two people's
_DIGITAL = 75.0  # dB below the loudest, under which there is no sound
_SILENCE = -99.0  # dB: `levels_of` nothing
_LEAST_PAUSES, _MOST_PAUSES = 12, 400  # such windows

OTHERS = Message("more than one person in it")

Values = NDArray[np.float64]


@dataclass(frozen=True)
class Quality:
    """Estimates of a recording; `clipped` is measured before it is levelled."""

    noise: float  # dB of speech over noise
    fall: float  # dB by which the sound falls at its quickest endings
    apart: float  # semitones between its low and its high stretches
    clipped: float = 0.0  # share of its samples
    tones: float = 0.0  # dB by which changing tones stand out in its pauses

    @property
    def is_noisy(self) -> bool:
        return self.noise < NOISY

    @property
    def is_musical(self) -> bool:
        return self.tones > MUSICAL and self.noise < HEARD

    @property
    def is_roomy(self) -> bool:
        """Whether the room echoes. In noise the level never falls far, so that is not known."""
        return self.fall < ROOMY and not self.is_noisy

    @property
    def has_others(self) -> bool:
        return self.apart > APART

    @property
    def is_clipped(self) -> bool:
        return self.clipped > CLIPPED

    @property
    def flaw(self) -> Message | None:
        """Why a recording cannot be continued; None: it can."""
        if self.sound_flaw:
            return self.sound_flaw
        return OTHERS if self.has_others else None

    @property
    def sound_flaw(self) -> Message | None:
        """What is heard beside the voice, whosever it is."""
        if self.is_noisy:
            noise = max(0, round(self.noise))
            return Message("too noisy ({noise:.0f} dB between speech and noise)", noise=noise)
        if self.is_musical:
            return Message("music in it")
        return Message("too much echo in it") if self.is_roomy else None


class Stretch(NamedTuple):
    """A second or so of speech, between two times in seconds, and its pitch in Hz."""

    start: float
    stop: float
    pitch: float


def quality_of(wave: Waveform, clipped: float = 0.0) -> Quality:
    levels, apart = levels_of(wave), pitch_apart(stretches(wave))
    tones = changing_tones(wave, levels)
    return Quality(speech_over_noise(levels), steepest_fall(levels), apart, clipped, tones)


def speech_over_noise(levels: Values) -> float:
    """dB between the speech and the floor under it."""
    floor = noise_floor(levels)
    power = 10 ** (levels / 10)
    speech = float(power[levels >= np.quantile(levels, 0.5)].mean())
    return 10 * float(np.log10(max(speech - 10 ** (floor / 10), 1e-12))) - floor


def noise_floor(levels: Values) -> float:
    """The level of the noise in dB, as it is heard in the shortest pauses."""
    return float(np.quantile(levels, 0.08))


def steepest_fall(levels: Values) -> float:
    """dB by which the sound falls at its quickest endings: a room lets nothing fall fast."""
    begun = levels[:-_FALL] > levels.max() - AUDIBLE
    falls = (levels[:-_FALL] - levels[_FALL:])[begun]
    return float(np.quantile(falls, 0.93)) if len(falls) else np.inf


def changing_tones(wave: Waveform, levels: Values) -> float:
    """dB by which the strongest tones of music stand over their neighbours where nobody speaks; 0
    where too little is paused. A machine whose speed drifts has the same tones in all pauses, all a
    little higher or lower."""
    spectra = _pauses(wave, levels)
    if spectra is None:
        return 0.0
    tones = tones_of(spectra)
    if tones > MUSICAL and (drifting := tones_of(at_one_speed(spectra))) < DRIFTING:
        return drifting
    return tones


def _pauses(wave: Waveform, levels: Values) -> Values | None:
    """Spectra of the pauses [pauses, bins]; None where there are few."""
    count = -(-TONE // STEP) + 1
    heard = levels > max(levels.max() - _DIGITAL, _SILENCE)  # none where a machine cut all out
    if not heard.any():
        return None
    floor = noise_floor(levels[heard])
    quiet = np.convolve(heard & (levels <= floor + 10), np.ones(count), "valid") == count
    begins, last = [], -count
    for step in np.flatnonzero(quiet):
        if step - last >= count // 2:
            begins.append(last := int(step))
    if len(begins) < _LEAST_PAUSES:
        return None
    return spectra_of(np.stack([wave[at * STEP :][:TONE] for at in begins[:_MOST_PAUSES]]))


def has_others(wave: Waveform) -> bool:
    """Whether more than one person speaks in a few seconds."""
    return pitch_apart(stretches(wave)) > APART


def pitch_apart(spoken: Sequence[Stretch]) -> float:
    """Semitones between the low and the high stretches: one lively person has some of all heights,
    and no two groups far from each other."""
    low, high = by_height(spoken)
    if not low or not high:
        return 0.0
    middles = (np.median([each.pitch for each in group]) for group in (high, low))
    return 12 * float(np.log2(np.divide(*middles)))


def by_height(spoken: Sequence[Stretch]) -> tuple[list[Stretch], list[Stretch]]:
    """The low and the high stretches, parted where the most lies between two."""
    ordered = sorted(spoken, key=lambda each: each.pitch)
    if len(ordered) < 2:
        return ordered, []
    cut = int(np.diff(np.log2([each.pitch for each in ordered])).argmax()) + 1
    return ordered[:cut], ordered[cut:]


def stretches(wave: Waveform) -> list[Stretch]:
    """The stretches of speech, with their median pitches; none of a recording of minutes, in which
    one person is as far apart."""
    if len(wave) > _WHOLE * SAMPLE_RATE:
        return []
    pitches, places = _pitches(wave)
    found: list[Stretch] = []
    step = _TURN * SAMPLE_RATE
    edges = np.arange(0, len(wave) + step, step)
    for start, stop in pairwise(edges):
        inside = pitches[(places >= start) & (places < stop)]
        if len(inside) >= _LEAST:
            end = min(float(stop), len(wave)) / SAMPLE_RATE
            found.append(Stretch(float(start) / SAMPLE_RATE, end, float(np.median(inside))))
    return found


def levels_of(wave: Waveform) -> Values:
    """The level of every 10 ms, in dB, over 30 ms."""
    count = len(wave) // STEP
    power = np.square(wave[: count * STEP].astype(np.float64)).reshape(count, STEP).mean(1)
    smooth = np.convolve(power, np.ones(3) / 3, mode="same")
    levels: Values = 10 * np.log10(smooth + 1e-10)
    return levels


def _pitches(wave: Waveform) -> tuple[Values, Values]:
    """The pitch of every voiced window in Hz, and where the window begins."""
    samples = wave.astype(np.float64)
    if len(samples) < _FRAME:
        return np.zeros(0), np.zeros(0)
    rows = np.lib.stride_tricks.sliding_window_view(samples, _FRAME)[:: 2 * STEP]
    places = np.arange(len(rows), dtype=np.float64) * 2 * STEP
    loud = np.square(rows).mean(1)
    kept = loud > loud.max() / 300
    rows, places = rows[kept], places[kept]
    rows = rows - rows.mean(1, keepdims=True)
    spectrum = np.fft.rfft(rows, 2 * _FRAME)
    alike = np.fft.irfft(np.abs(spectrum) ** 2)[:, :_FRAME]
    alike = alike / (alike[:, :1] + 1e-12) / (1 - np.arange(_FRAME) / _FRAME)
    first, last = int(SAMPLE_RATE / _HIGHEST), int(SAMPLE_RATE / _LOWEST)
    best = alike[:, first:last].max(1)
    # The first lag that is nearly as good as the best, to avoid multiples of the period.
    lags = first + (alike[:, first:last] > 0.93 * best[:, None]).argmax(1)
    voiced = best > _VOICED
    return SAMPLE_RATE / lags[voiced], places[voiced]
