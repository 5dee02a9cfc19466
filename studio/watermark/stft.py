"""Sound as short spectra, 10 ms apart, and changes of spectra as sound.

Perth counts in windows of 2,048 samples at 32 kHz; the same 64 ms are 1,536 samples at 24 kHz,
with the same tones in the same places, so nothing has to be resampled. Knows no networks.
"""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from studio.watermark.perth_weights import Floats

Spectra: TypeAlias = NDArray[np.complexfloating]  # [moments, tones]

WINDOW, HOP = 1_536, 240  # samples
_SCALE = 2_048 / WINDOW  # a longer window adds up to more
_FLOOR, _TOP = 180.0, 195.0  # dB: what the networks take for 0, and the span to their 1
_LOUDEST = 10.0  # a power of ten; as in Perth
_HANN = (0.5 - 0.5 * np.cos(2 * np.pi * np.arange(WINDOW) / WINDOW)).astype(np.float32)
_OVERLAP = float(np.sum(_HANN**2)) / HOP  # the squares of all windows over one sample


def analyse(wave: Floats) -> Spectra:
    """The spectra of all windows that lie wholly in a sound of at least one."""
    windows = np.lib.stride_tricks.sliding_window_view(wave, WINDOW)[::HOP]
    return np.fft.rfft(windows * _HANN, axis=1)


def levels(spectra: Spectra) -> Floats:
    """Loudness as the networks count it: -180 dB is 0, and 15 dB is 1."""
    decibels = 20 * np.log10(np.maximum(np.abs(spectra) * _SCALE, 1e-9))
    return np.asarray((decibels + _FLOOR) / _TOP, np.float32)


def gains(raised: Floats) -> Floats:
    """What a change of levels multiplies by."""
    return np.asarray(10 ** np.minimum(raised * (_TOP / 20), _LOUDEST), np.float32)


def rebuild(spectra: Spectra, samples: int) -> Floats:
    """The sound of spectra, silent at both ends: each window fades in and out."""
    windows = np.fft.irfft(spectra, WINDOW, axis=1) * (_HANN / _OVERLAP)
    wave = np.zeros(samples, np.float32)
    for at, window in enumerate(windows):
        wave[at * HOP : at * HOP + WINDOW] += window
    return wave
