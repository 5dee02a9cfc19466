"""Tones in the pauses of a recording: those of music, and those of a machine whose speed drifts.

Each pause is measured against the middle of all, so what hums or hisses in all of them is nothing.
A fan whose speed drifts has all its tones higher or lower by one factor: once the pauses are
brought to one speed, it is in all of them too, and music, whose tones change one by one, is not.
"""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray

from engine.types import SAMPLE_RATE, Waveform

TONE: Final = 4096  # samples of a pause
_LOW, _HIGH = (round(hertz / SAMPLE_RATE * TONE) for hertz in (250.0, 4_000.0))  # bins
_NEAR: Final = 20  # bins on either side of one
_STRONGEST: Final = 8  # bins of a pause
_STEP: Final = 0.002  # of log frequency, in which a change of speed is a shift
_SPEEDS: Final = 0.12  # by which speeds may differ; more would bring many a melody to one tone
_FIRST: Final = 12  # pauses of which one is taken as the first speed
_ROUNDS: Final = 3
_LEAST: Final = 1e-13  # of a pause's power

Values = NDArray[np.float64]


def spectra_of(pauses: Waveform) -> Values:
    """Shares of the power of each pause [pauses, bins]. pauses: [pauses, TONE]"""
    power = np.abs(np.fft.rfft(pauses.astype(np.float64) * np.hanning(TONE))) ** 2
    power = power[:, _LOW - _NEAR : _HIGH + _NEAR]
    shares: Values = power / np.maximum(power.sum(1, keepdims=True), 1e-30)
    return shares


def tones_of(spectra: Values) -> float:
    """dB by which the strongest bins of a pause stand over their neighbours, where not all do."""
    power = spectra / (np.median(spectra, axis=0) + _LEAST)
    around = np.lib.stride_tricks.sliding_window_view(power, 2 * _NEAR + 1, axis=1)
    over = power[:, _NEAR:-_NEAR] / (np.median(around, axis=2) + 1e-12)
    strongest = np.sort(over, axis=1)[:, -_STRONGEST:].mean(1)
    return max(0.0, 10 * float(np.log10(np.median(strongest) + 1e-12)))


def at_one_speed(spectra: Values) -> Values:
    """The spectra stretched so that their tones fall on each other's as far as they do."""
    bins = np.arange(_LOW - _NEAR, _HIGH + _NEAR, dtype=np.float64)
    grid = np.exp(np.arange(np.log(bins[0]), np.log(bins[-1]), _STEP))
    tones = np.stack([np.interp(grid, bins, each) for each in _peaks(spectra)])
    tones /= np.linalg.norm(tones, axis=1, keepdims=True) + 1e-9
    shifts = _shifts(tones)
    stretched = zip(spectra, shifts, strict=True)
    return np.stack([np.interp(bins * np.exp(at * _STEP), bins, each) for each, at in stretched])


def _peaks(spectra: Values) -> Values:
    """Nepers by which each bin stands over its neighbours, about their mean."""
    wide = np.pad(spectra, ((0, 0), (_NEAR, _NEAR)), mode="edge")
    around = np.lib.stride_tricks.sliding_window_view(wide, 2 * _NEAR + 1, axis=1)
    over = np.log(spectra + _LEAST) - np.log(np.median(around, axis=2) + _LEAST)
    peaks = np.maximum(over, 0.0)
    centred: Values = peaks - peaks.mean(1, keepdims=True)
    return centred


def _shifts(tones: Values) -> NDArray[np.int64]:
    """Steps by which each row lies above the others [pauses]. tones: [pauses, steps]"""
    size, most = 2 * tones.shape[1], round(_SPEEDS / _STEP)
    lags = np.concatenate([np.arange(most + 1), np.arange(-most, 0)])
    spectra = np.fft.rfft(tones, size)

    def fit(wanted: Values) -> tuple[NDArray[np.int64], float]:
        alike = np.fft.irfft(spectra * np.conj(np.fft.rfft(wanted, size)), size)[:, lags]
        return lags[alike.argmax(1)], float(np.median(alike.max(1)))

    first = np.linspace(0, len(tones) - 1, min(_FIRST, len(tones))).astype(int)
    shifts, _ = max(map(fit, tones[first]), key=lambda found: found[1])
    for _ in range(_ROUNDS):
        rows = zip(tones, shifts, strict=True)
        shifts, _ = fit(np.mean([np.roll(row, -shift) for row, shift in rows], axis=0))
    return shifts
