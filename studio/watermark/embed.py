"""The mark put into a sound, and how surely a sound has it.

Every chunk is marked by itself, the moment it is heard: nothing waits for what comes later, and
live sound carries the mark like a file. What is added fades to nothing at a chunk's ends, so
chunks fit together as before. Length and all tones above 2 kHz stay as they are.
"""

from __future__ import annotations

from functools import cache

import numpy as np
from numpy.typing import NDArray

from engine import Pcm, Waveform
from studio.watermark.perth_network import run
from studio.watermark.perth_weights import Floats, Net, read_networks
from studio.watermark.stft import WINDOW, analyse, gains, levels, rebuild

BAND = 128  # tones of 15.6 Hz: up to 2 kHz
FULL = 32_768
TEMPI = (1.25, 1.0, 0.75)  # the finders hear the sound slower, as it is, and faster
SILENT = 0.05  # of the fullest moment: below this nothing sounds
EVEN = 1e-6  # the weight of silence, so that there is always something to weigh


class Watermark:
    """Perth's networks. Any thread."""

    def __init__(self, networks: tuple[Net, ...]) -> None:
        self._marker, *self._finders = networks

    def mark(self, pcm: Pcm) -> Pcm:
        """The same sound with the mark; a chunk under 64 ms has no room for it."""
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
        """From 0, no mark, to about 1, surely marked; 24 kHz, at least one window long."""
        heard = levels(analyse(wave))
        fullness = heard.sum(axis=1)
        sounding = fullness > SILENT * fullness.max()
        pairs = zip(self._finders, TEMPI, strict=True)
        trust, found = np.array([_asked(*pair, heard[:, :BAND], sounding) for pair in pairs]).T
        weight = np.exp(trust - trust.max())
        return float(np.sum(weight * found) / np.sum(weight))


@cache
def open_watermark() -> Watermark:
    """Loaded once, by whoever needs it first. Raises InvalidSetting."""
    return Watermark(read_networks())


def _asked(finder: Net, tempo: float, heard: Floats, sounding: NDArray[np.bool_]) -> Floats:
    """How far a finder trusts itself here, and what it has found: means of what sounds."""
    count = max(2, int(len(heard) * tempo))
    answers = run(finder, _paced(heard, count))
    moments = np.arange(count) * len(heard) // count
    weight = sounding[moments] + EVEN
    return np.asarray(np.average(answers, axis=0, weights=weight), np.float32)


def _paced(heard: Floats, count: int) -> Floats:
    """The same moments as `count` moments, drawn straight between their neighbours."""
    place = np.linspace(0, len(heard) - 1, count)
    before = np.minimum(place.astype(int), max(0, len(heard) - 2))
    after = np.minimum(before + 1, len(heard) - 1)
    share = (place - before).astype(np.float32)[:, np.newaxis]
    return np.asarray(heard[before] * (1 - share) + heard[after] * share, np.float32)
