"""Acoustic features without a network: pitch, brightness, long-term spectrum, pace."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from engine import SAMPLE_RATE, Waveform

FRAME, HOP = 1024, 480
LOWEST, HIGHEST = 60.0, 400.0  # Hz


def frames_of(wave: Waveform) -> NDArray[np.float64]:
    """Windows with audible sound: [frames, FRAME]."""
    padded = np.pad(wave.astype(np.float64), (0, max(0, FRAME - len(wave))))
    rows = np.lib.stride_tricks.sliding_window_view(padded, FRAME)[::HOP]
    power = np.square(rows).mean(1)
    return rows[power > power.max() / 300]


def pitch(wave: Waveform) -> float:
    """Median pitch in Hz of the voiced windows; 0 if there is none."""
    rows = frames_of(wave)
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
    voiced = best > 0.6
    return float(np.median(SAMPLE_RATE / found[voiced])) if voiced.any() else 0.0


def _peak(row: NDArray[np.float64], lag: int) -> int:
    """The local maximum uphill from a lag."""
    while lag + 1 < len(row) // 2 and row[lag + 1] > row[lag]:
        lag += 1
    return lag


def long_term(wave: Waveform, bands: int = 40) -> NDArray[np.float64]:
    """Mean log power in bands up to 8 kHz, minus its mean."""
    power = (np.abs(np.fft.rfft(frames_of(wave) * np.hanning(FRAME))) ** 2).mean(0)
    inside = power[: FRAME * 8000 // SAMPLE_RATE]
    floor = 1e-7 * inside.mean() + 1e-30  # 70 dB down
    logs = np.log([band.mean() + floor for band in np.array_split(inside, bands)])
    return np.asarray(logs - logs.mean())


def centroid(wave: Waveform) -> float:
    """The centroid of the magnitude spectrum below 8 kHz, in Hz."""
    size = np.abs(np.fft.rfft(frames_of(wave) * np.hanning(FRAME))).mean(0)
    hertz = np.fft.rfftfreq(FRAME, 1 / SAMPLE_RATE)
    inside = hertz < 8000
    return float((size * hertz)[inside].sum() / (size[inside].sum() + 1e-12))
