"""flite's vocoder: the parameter tracks of an utterance, and speech from tracks.

Three of flite's voices (not kal16) share a vocoder, so tracks of two of them can be mixed and
synthesized. Knows no speakers and no axes.
"""

from __future__ import annotations

import ctypes
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from training.data import flite

STEP = 0.005  # seconds
BANDS = 5  # of voicing
_Reals = ctypes.POINTER(ctypes.c_float)

Track = NDArray[np.float32]  # [steps, channels]


@dataclass(frozen=True, eq=False)
class Tracks:
    """Pitch in Hz (0: no voice) and a mel cepstrum; how much of each band is voiced."""

    spectrum: Track
    strength: Track


class _Track(ctypes.Structure):
    _fields_ = (
        ("type", ctypes.c_char_p),
        ("steps", ctypes.c_int),
        ("channels", ctypes.c_int),
        ("times", _Reals),
        ("rows", ctypes.POINTER(_Reals)),
    )
    lent: object  # keeps the memory of its pointers alive


@lru_cache(maxsize=1)
def _library() -> ctypes.CDLL:
    library = flite.library()
    pointer, track = ctypes.c_void_p, ctypes.POINTER(_Track)
    signatures = {
        "feat_val": (pointer, (pointer, ctypes.c_char_p)),
        "val_track": (track, (pointer,)),
        "val_cg_db": (pointer, (pointer,)),
        "mlpg": (track, (track, pointer)),
        "delete_track": (None, (track,)),
        "mlsa_resynthesis": (
            ctypes.POINTER(flite.Wave),
            (track, track, pointer, pointer, ctypes.c_int),
        ),
        "delete_wave": (None, (ctypes.POINTER(flite.Wave),)),
    }
    flite.declare(library, signatures)
    return library


def _value(utterance: int, name: bytes) -> int:
    features = ctypes.cast(utterance, ctypes.POINTER(ctypes.c_void_p))[0]
    return int(_library().feat_val(features, name))


def voice(utterance: int) -> int:
    """The vocoder's data of the utterance's voice; it lives as long as the voice."""
    return int(_library().val_cg_db(_value(utterance, b"cg_db")))


def tracks(utterance: int) -> Tracks:
    """The tracks of an utterance."""
    library = _library()
    smooth = library.mlpg(library.val_track(_value(utterance, b"param_track")), voice(utterance))
    try:
        strength = library.val_track(_value(utterance, b"str_track"))
        return Tracks(_array(smooth.contents), _array(strength.contents))
    finally:
        library.delete_track(smooth)


def speak(tracks: Tracks, voice: int) -> NDArray[np.int16]:
    """Samples at flite's rate, with this voice's noise."""
    library = _library()
    wave = library.mlsa_resynthesis(_lent(tracks.spectrum), _lent(tracks.strength), voice, None, 0)
    try:
        told = wave.contents
        return np.ctypeslib.as_array(told.samples, (told.num_samples,)).copy()
    finally:
        library.delete_wave(wave)


def _array(track: _Track) -> Track:
    rows = [np.ctypeslib.as_array(track.rows[i], (track.channels,)) for i in range(track.steps)]
    return np.stack(rows)


def _lent(track: Track) -> _Track:
    """The same numbers for flite to read."""
    steps, channels = track.shape
    lines = np.ctypeslib.as_ctypes(np.ascontiguousarray(track, np.float32))
    rows = (_Reals * steps)(*(ctypes.cast(line, _Reals) for line in lines))
    times = np.ctypeslib.as_ctypes(STEP * np.arange(steps, dtype=np.float32))
    made = _Track(None, steps, channels, ctypes.cast(times, _Reals), rows)
    made.lent = lines, rows, times
    return made
