"""Speech of a voice between two of flite's voices, from tracks of both.

Both voices speak the text; durations, spectrum, pitch and voicing of each phone are interpolated,
so training has voices between the base voices. Also changes the pitch of a voice where flite
cannot. Knows flite's voices, no speakers and no axes.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from training.data import flite, vocoder
from training.data.flite import Spoken
from training.data.vocoder import STEP, Tracks

Reals = NDArray[np.float64]


class OtherPhones(Exception):
    """The two voices speak different phones, so they cannot be interpolated."""


@dataclass(frozen=True)
class End:
    """A flite voice at one end. `own_pitch` in Hz, of a voice whose pitch flite cannot change."""

    voice: str
    own_pitch: float | None = None


@dataclass(frozen=True)
class Manner:
    pitch: float  # Hz
    spread: float  # Hz
    lively: float  # factor on the voice's own pitch spread, where flite does not set it
    stretch: float


@dataclass(frozen=True, eq=False)
class _Half:
    spoken: Spoken
    columns: Reals  # [steps, 1 + cepstrum + bands]: log Hz, interpolated where unvoiced
    voiced: NDArray[np.bool_]  # [steps]
    voice: int

    def at(self, moments: Reals, ends: Reals) -> tuple[Reals, NDArray[np.bool_]]:
        """Columns and voicing at times of an utterance whose phones have these ends."""
        own = np.append(0.0, np.cumsum(_lengths(self.spoken)))
        place = np.interp(moments, np.append(0.0, ends), own) / STEP - 0.5
        steps = np.arange(len(self.columns))
        columns = np.stack([np.interp(place, steps, column) for column in self.columns.T], 1)
        return columns, self.voiced[place.round().astype(int).clip(0, steps[-1])]


def speak(text: str, first: End, second: End, share: float, manner: Manner) -> Spoken:
    """Speak with `share` of the second voice."""
    halves = _half(text, first, manner), _half(text, second, manner)
    one, two = (half.spoken for half in halves)
    if not np.array_equal(one.phones, two.phones):
        raise OtherPhones(f"{first.voice} and {second.voice} say it differently: {text}")
    ends = np.cumsum(_lengths(one) ** (1 - share) * _lengths(two) ** share)
    moments = (np.arange(int(ends[-1] / STEP)) + 0.5) * STEP
    (left, left_voiced), (right, right_voiced) = (half.at(moments, ends) for half in halves)
    mixed = left + share * (right - left)
    mixed[:, 0] = np.where(right_voiced if share > 0.5 else left_voiced, np.exp(mixed[:, 0]), 0)
    samples = vocoder.speak(_tracks(mixed), halves[share > 0.5].voice)
    return Spoken(samples, one.rate, one.phones, ends.astype(np.float32), one.words)


def _half(text: str, end: End, manner: Manner) -> _Half:
    asked = text, end.voice, manner.pitch, manner.spread, manner.stretch
    with flite.utterance(*asked) as said:
        spoken, tracks, voice = flite.read(said), vocoder.tracks(said), vocoder.voice(said)
    voiced = tracks.spectrum[:, 0] > 0
    pitch = np.log(_carried(tracks.spectrum[:, 0], voiced))
    if end.own_pitch is not None:
        pitch = np.log(manner.pitch) + manner.lively * (pitch - np.log(end.own_pitch))
    columns = np.concatenate((pitch[:, None], tracks.spectrum[:, 1:], tracks.strength), 1)
    if not np.isfinite(columns).all():  # happens once in some thousands of sentences
        raise OtherPhones(f"{end.voice} has no sound for it: {text}")
    return _Half(spoken, columns, voiced, voice)


def _carried(pitch: Reals, voiced: NDArray[np.bool_]) -> Reals:
    """Interpolate pitch over unvoiced steps."""
    known = np.flatnonzero(voiced)
    if not len(known):
        raise OtherPhones("nothing of it is voiced")
    return np.interp(np.arange(len(pitch)), known, pitch[known])


def _lengths(spoken: Spoken) -> Reals:
    """Seconds of each phone."""
    return np.diff(spoken.ends.astype(np.float64), prepend=0.0).clip(STEP)


def _tracks(columns: Reals) -> Tracks:
    pitch_and_cepstrum, bands = np.split(columns.astype(np.float32), [-vocoder.BANDS], axis=1)
    return Tracks(pitch_and_cepstrum, bands)
