"""Acoustic features without a network: pitch, voicing, brightness, long-term spectrum."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from engine import SAMPLE_RATE, Waveform

FRAME, HOP = 1024, 480
LOWEST, HIGHEST = 60.0, 500.0  # Hz
VOICED = 0.6  # of a window's autocorrelation


@dataclass(frozen=True, eq=False)
class Contour:
    hertz: NDArray[np.float64]  # of the voiced windows
    voiced: float  # share of the audible windows

    @property
    def median(self) -> float:
        """0 where nothing is voiced."""
        return float(np.median(self.hertz)) if len(self.hertz) else 0.0

    @property
    def spread(self) -> float:
        """Semitones between the lower and the upper tenth."""
        if not len(self.hertz):
            return 0.0
        low, high = np.quantile(self.hertz, (0.1, 0.9))
        return semitones(float(low), float(high))


def semitones(low: float, high: float) -> float:
    return 12 * float(np.log2(max(high, 1.0) / max(low, 1.0)))


def frames_of(wave: Waveform) -> NDArray[np.float64]:
    """Windows with audible sound: [frames, FRAME]."""
    padded = np.pad(wave.astype(np.float64), (0, max(0, FRAME - len(wave))))
    rows = np.lib.stride_tricks.sliding_window_view(padded, FRAME)[::HOP]
    power = np.square(rows).mean(1)
    return rows[power > power.max() / 300]


def contour(wave: Waveform) -> Contour:
    """The pitch of every voiced window."""
    rows = frames_of(wave)
    if not len(rows):
        return Contour(np.zeros(0), 0.0)
    rows = rows - rows.mean(1, keepdims=True)
    spectrum = np.fft.rfft(rows, 2 * FRAME)
    correlation = np.fft.irfft(np.abs(spectrum) ** 2)[:, :FRAME]
    correlation = correlation / (correlation[:, :1] + 1e-12) / (1 - np.arange(FRAME) / FRAME)
    first, last = int(SAMPLE_RATE / HIGHEST), int(SAMPLE_RATE / LOWEST)
    best = correlation[:, first:last].max(1)
    # The first lag that is nearly as good as the best, to avoid multiples of the period.
    good = correlation[:, first:last] > 0.95 * best[:, None]
    lags = first + good.argmax(1)
    found = np.array([_peak(row, lag) for row, lag in zip(correlation, lags, strict=True)])
    voiced = best > VOICED
    return Contour(SAMPLE_RATE / found[voiced], float(voiced.mean()))


def pitch(wave: Waveform) -> float:
    """Median pitch in Hz of the voiced windows; 0 if there is none."""
    return contour(wave).median


def _peak(row: NDArray[np.float64], lag: int) -> int:
    """The local maximum uphill from a lag."""
    while lag + 1 < len(row) // 2 and row[lag + 1] > row[lag]:
        lag += 1
    return lag


def centroid(wave: Waveform) -> float:
    """The centroid of the magnitude spectrum below 8 kHz, in Hz."""
    size = np.abs(np.fft.rfft(frames_of(wave) * np.hanning(FRAME))).mean(0)
    hertz = np.fft.rfftfreq(FRAME, 1 / SAMPLE_RATE)
    inside = hertz < 8000
    return float((size * hertz)[inside].sum() / (size[inside].sum() + 1e-12))


def audible_seconds(wave: Waveform) -> float:
    """How long something is heard, without pauses."""
    return len(frames_of(wave)) * HOP / SAMPLE_RATE


def level(wave: Waveform) -> float:
    """The level of the audible windows, in dB of full scale."""
    return 10 * float(np.log10(np.square(frames_of(wave)).mean() + 1e-12))


def tilt(wave: Waveform) -> float:
    """The slope of the spectrum from 200 Hz to 6 kHz, in dB an octave; octaves count alike."""
    power = np.square(np.abs(np.fft.rfft(frames_of(wave) * np.hanning(FRAME)))).mean(0)
    hertz = np.fft.rfftfreq(FRAME, 1 / SAMPLE_RATE)
    inside = (hertz >= 200) & (hertz <= 6000)
    octaves, size = np.log2(hertz[inside]), 10 * np.log10(power[inside] + 1e-12)
    return float(np.polyfit(octaves, size, 1, w=1 / np.sqrt(hertz[inside]))[0])
