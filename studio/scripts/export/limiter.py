"""A true-peak limiter with look-ahead, sample by sample in a stream.

The gain falls before a peak and rises after it, so that no sample, nor the curve between samples,
exceeds the ceiling. Audio below the ceiling is unchanged. Knows no files and no loudness.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from engine import SAMPLE_RATE

Samples = NDArray[np.float64]  # 1.0 is full scale

CEILING = -1.0  # dBTP
MARGIN = 0.1  # dB below the ceiling, as the changing gain itself moves peaks a little
HIGHEST = 10 ** ((CEILING - MARGIN) / 20)
REACH = round(0.008 * SAMPLE_RATE)  # samples over which the gain falls, and rises
OVERSAMPLING = 4
_FILTER = 16  # samples beside a peak that its interpolation depends on
_CONTEXT = 2 * REACH + _FILTER
_HIGHEST = 2.0  # a peak between samples is at most so much higher than they are


class Limiter:
    """`feed` returns what is ready, `finish` the rest: together as many samples as were fed."""

    def __init__(self) -> None:
        window = np.hanning(2 * REACH + 3)[1:-1]
        self._window = window / window.sum()
        self._buffer: Samples = np.zeros(_CONTEXT)  # begins with the context of the next sample

    def feed(self, samples: Samples) -> Samples:
        self._buffer = np.concatenate((self._buffer, samples))
        ready = len(self._buffer) - 2 * _CONTEXT
        if ready <= 0:
            return np.zeros(0)
        limited = self._limited(self._buffer)[_CONTEXT : _CONTEXT + ready]
        self._buffer = self._buffer[ready:]
        return limited

    def finish(self) -> Samples:
        return self.feed(np.zeros(_CONTEXT))

    def _limited(self, samples: Samples) -> Samples:
        """The samples with their gain, exact but for a context at each end."""
        if np.abs(samples).max(initial=0.0) * _HIGHEST <= HIGHEST:
            return samples
        from scipy.ndimage import minimum_filter1d  # imported late: it takes a second

        gain = np.minimum(1.0, HIGHEST / np.maximum(true_peaks(samples), 1e-9))
        lowest = minimum_filter1d(gain, 2 * REACH + 1, mode="nearest")
        smooth = np.convolve(np.pad(lowest, REACH, mode="edge"), self._window, "valid")
        limited: Samples = samples * smooth
        return limited


def true_peaks(samples: Samples) -> Samples:
    """For each sample the highest of the curve from the sample before it to the one after it."""
    from scipy.signal import resample_poly

    curve = np.abs(resample_poly(samples, OVERSAMPLING, 1)).reshape(-1, OVERSAMPLING)
    after = curve.max(axis=1)
    before = np.concatenate((after[:1], after[:-1]))
    peaks: Samples = np.maximum(np.maximum(before, after), np.abs(samples))
    return peaks
