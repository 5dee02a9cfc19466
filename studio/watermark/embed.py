"""Embeds the watermark, and scores audio for it.

Every chunk is marked on its own, so streaming is not delayed. The added signal fades to zero at a
chunk's ends, so that chunks still join. Length and frequencies above 2 kHz are unchanged.
"""

from __future__ import annotations

from functools import cache

import numpy as np
from numpy.typing import NDArray

from engine import Pcm, Waveform
from studio.watermark.perth_network import run
from studio.watermark.perth_weights import Floats, Net, read_networks
from studio.watermark.stft import WINDOW, analyse, gains, levels, rebuild

BAND = 128  # bins of 15.6 Hz: up to 2 kHz
FULL = 32_768
TEMPI = (1.25, 1.0, 0.75)  # detection at slower, original and faster tempo
SILENT = 0.05  # of the loudest frame: below this a frame is silent
EVEN = 1e-6  # weight of silent frames, so that weights never sum to zero


class Watermark:
    """Perth's networks. Thread-safe."""

    def __init__(self, networks: tuple[Net, ...]) -> None:
        self._marker, *self._finders = networks

    def mark(self, pcm: Pcm) -> Pcm:
        """Add the watermark; chunks under 64 ms are too short and unchanged."""
        if len(pcm) < WINDOW:
            return pcm
        wave = pcm.astype(np.float32) / np.float32(FULL)
        spectra = analyse(wave)
        raised = run(self._marker, levels(spectra[:, :BAND]))
        added = np.zeros_like(spectra)
        added[:, :BAND] = spectra[:, :BAND] * (gains(raised) - 1)
        marked = wave + rebuild(added, len(wave))
        return np.asarray(np.clip(np.rint(marked * FULL), -FULL, FULL - 1), np.int16)

    def score(self, wave: Waveform) -> float:
        """A score from 0 (not marked) to about 1; 24 kHz, at least one window long."""
        heard = levels(analyse(wave))
        fullness = heard.sum(axis=1)
        sounding = fullness > SILENT * fullness.max()
        pairs = zip(self._finders, TEMPI, strict=True)
        trust, found = np.array([_wanted(*pair, heard[:, :BAND], sounding) for pair in pairs]).T
        weight = np.exp(trust - trust.max())
        return float(np.sum(weight * found) / np.sum(weight))


@cache
def open_watermark() -> Watermark:
    """Load at first use and cache. Raises InvalidSetting."""
    return Watermark(read_networks())


def _wanted(finder: Net, tempo: float, heard: Floats, sounding: NDArray[np.bool_]) -> Floats:
    """A detector's confidence and result, averaged over audible frames."""
    count = max(2, int(len(heard) * tempo))
    answers = run(finder, _paced(heard, count))
    moments = np.arange(count) * len(heard) // count
    weight = sounding[moments] + EVEN
    return np.asarray(np.average(answers, axis=0, weights=weight), np.float32)


def _paced(heard: Floats, count: int) -> Floats:
    """Resample frames to `count` by linear interpolation."""
    place = np.linspace(0, len(heard) - 1, count)
    before = np.minimum(place.astype(int), max(0, len(heard) - 2))
    after = np.minimum(before + 1, len(heard) - 1)
    share = (place - before).astype(np.float32)[:, np.newaxis]
    return np.asarray(heard[before] * (1 - share) + heard[after] * share, np.float32)
