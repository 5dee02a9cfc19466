"""The short-time Fourier transform with a hop of 10 ms, and its inverse.

Perth uses windows of 2,048 samples at 32 kHz; the same 64 ms are 1,536 samples at 24 kHz with the
same bins, so nothing is resampled.
"""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from studio.watermark.perth_weights import Floats

Spectra: TypeAlias = NDArray[np.complexfloating]  # [moments, tones]

WINDOW, HOP = 1_536, 240  # samples
_SCALE = 2_048 / WINDOW  # compensates for the shorter window
_FLOOR, _TOP = 180.0, 195.0  # dB: the networks' 0, and the range up to their 1
_LOUDEST = 10.0  # a power of ten; as in Perth
_HANN = (0.5 - 0.5 * np.cos(2 * np.pi * np.arange(WINDOW) / WINDOW)).astype(np.float32)
_OVERLAP = float(np.sum(_HANN**2)) / HOP  # sum of squared windows at a sample


def analyse(wave: Floats) -> Spectra:
    """The spectra of all complete windows."""
    windows = np.lib.stride_tricks.sliding_window_view(wave, WINDOW)[::HOP]
    return np.fft.rfft(windows * _HANN, axis=1)


def levels(spectra: Spectra) -> Floats:
    """Levels in the networks' scale: -180 dB is 0, and 15 dB is 1."""
    decibels = 20 * np.log10(np.maximum(np.abs(spectra) * _SCALE, 1e-9))
    return np.asarray((decibels + _FLOOR) / _TOP, np.float32)


def gains(raised: Floats) -> Floats:
    """Factors for a change of levels."""
    return np.asarray(10 ** np.minimum(raised * (_TOP / 20), _LOUDEST), np.float32)


def rebuild(spectra: Spectra, samples: int) -> Floats:
    """The inverse transform, which fades in and out at the ends."""
    windows = np.fft.irfft(spectra, WINDOW, axis=1) * (_HANN / _OVERLAP)
    wave = np.zeros(samples, np.float32)
    for at, window in enumerate(windows):
        wave[at * HOP : at * HOP + WINDOW] += window
    return wave
