"""What a frame of speech sounds like, in numbers: mel spectra around it, less their mean.

Knows no words.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from itertools import chain
from typing import Final

import numpy as np
from numpy.typing import NDArray

from engine import SAMPLE_RATE, Pcm

Floats = NDArray[np.float32]

HOP: Final = 240  # samples: 10 ms
_WINDOW: Final = 600  # samples: 25 ms
_FFT: Final = 1024
_BANDS: Final = 24
_LOWEST, _HIGHEST = 90.0, 8000.0  # Hz
_CONTEXT: Final = (-6, -3, -1, 0, 1, 3, 6)  # frames beside each
_FLOOR: Final = 12.0  # natural log of power under the loudest band, below which all is silence
_BLOCK: Final = 2048  # frames that are worked on at a time
_LOUD: Final = 6.0  # below the loudest, above which a frame counts for the mean


def features(pcm: Pcm) -> Floats:
    """[frames, values], a frame every 10 ms."""
    none = np.zeros((0, len(_CONTEXT) * (_BANDS + 1)), np.float32)
    return np.concatenate(list(chain([none], feature_blocks(pcm))))


def feature_blocks(pcm: Pcm) -> Iterator[Floats]:
    """The same in pieces of an even number of frames: those of hours would fill the memory."""
    mel = _log_mel(pcm)  # [frames, bands]
    if not len(mel):
        return
    loudness = mel.max(1)
    speech = loudness > loudness.max(initial=0) - _LOUD
    mean = mel[speech].mean(0) if speech.any() else np.zeros(_BANDS, np.float32)
    level = (loudness - loudness.max(initial=0))[:, None] / 4 + 1
    for at in range(0, len(mel), _BLOCK):
        inner = np.arange(at, min(at + _BLOCK, len(mel)))
        around = np.clip(np.arange(at + _CONTEXT[0], inner[-1] + 1 + _CONTEXT[-1]), 0, len(mel) - 1)
        values = np.concatenate(((mel[around] - mean) / 3, level[around]), 1)
        shifts = [values[shift - _CONTEXT[0] :][: len(inner)] for shift in _CONTEXT]
        yield np.concatenate(shifts, 1).astype(np.float32)


def _log_mel(pcm: Pcm) -> Floats:
    mel = np.empty((len(pcm) // HOP, _BANDS), np.float32)
    for at in range(0, len(mel), _BLOCK):
        mel[at : at + _BLOCK] = _powers(pcm, at, min(at + _BLOCK, len(mel)))
    np.maximum(mel, mel.max(initial=-np.inf) - _FLOOR, out=mel)
    return mel


def _powers(pcm: Pcm, first: int, last: int) -> Floats:
    """[frames, bands] logarithms for the frames from `first` to before `last`."""
    begin, end = first * HOP - _WINDOW // 2 - 1, (last - 1) * HOP + _WINDOW // 2
    inside = pcm[max(0, begin) : end].astype(np.float32) / 32768
    before = max(0, -begin)
    sound = np.pad(inside, (before, end - begin - before - len(inside)))
    sound = sound[1:] - 0.9 * sound[:-1]  # high bands as loud as low ones
    frames = np.lib.stride_tricks.sliding_window_view(sound, _WINDOW)[::HOP]
    power = np.abs(np.fft.rfft(frames * _window(), _FFT)) ** 2 @ _filters()
    logarithms: Floats = np.log(power + 1e-10).astype(np.float32)
    return logarithms


@lru_cache(maxsize=1)
def _window() -> Floats:
    return np.hanning(_WINDOW).astype(np.float32)


@lru_cache(maxsize=1)
def _filters() -> Floats:
    """[bins, bands]: triangles, evenly spaced on the mel scale."""
    edges = np.linspace(_mel(_LOWEST), _mel(_HIGHEST), _BANDS + 2)
    hertz = 700 * (np.exp(edges / 1127) - 1)
    bins = np.arange(_FFT // 2 + 1) * SAMPLE_RATE / _FFT
    rising = (bins[:, None] - hertz[:-2]) / (hertz[1:-1] - hertz[:-2])
    falling = (hertz[2:] - bins[:, None]) / (hertz[2:] - hertz[1:-1])
    triangles: Floats = np.clip(np.minimum(rising, falling), 0, None).astype(np.float32)
    return triangles


def _mel(hertz: float) -> float:
    return float(1127 * np.log1p(hertz / 700))
