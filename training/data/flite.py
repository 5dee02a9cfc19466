"""Calls Debian's flite as a library: text in, speech and its phones out.

The shared objects come from the packages named in training/README.md, unpacked anywhere.
This module knows voices by flite's names only; speakers and axes live in training.data.speakers.
"""

from __future__ import annotations

import ctypes
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from training.data.phones import PHONES

VOICES = ("slt", "rms", "awb", "kal16")
RATE = 16_000
NO_WORD = -1
_PHONE_ID = {name: index for index, name in enumerate(PHONES)}
_WORD = b"R:SylStructure.parent.parent.R:Token.parent"  # of a phone
_LIBRARIES = ("libflite", "libflite_usenglish", "libflite_cmulex")


@dataclass(frozen=True, eq=False)
class Spoken:
    """flite's output: samples, and for each phone its end in seconds and its word."""

    samples: NDArray[np.int16]
    rate: int
    phones: NDArray[np.uint8]  # [phones]
    ends: NDArray[np.float32]  # [phones]
    words: NDArray[np.int16]  # [phones] numbers of words between spaces, NO_WORD in pauses


class Wave(ctypes.Structure):
    _fields_ = (
        ("type", ctypes.c_char_p),
        ("sample_rate", ctypes.c_int),
        ("num_samples", ctypes.c_int),
        ("num_channels", ctypes.c_int),
        ("samples", ctypes.POINTER(ctypes.c_short)),
    )


class _Voice(ctypes.Structure):
    _fields_ = (("name", ctypes.c_char_p), ("features", ctypes.c_void_p))


def folder() -> Path:
    """Where the packages were unpacked: FLITE_ROOT, or the system's root."""
    return Path(os.environ.get("FLITE_ROOT", "/")) / "usr/lib/x86_64-linux-gnu"


@lru_cache(maxsize=1)
def library() -> ctypes.CDLL:
    for name in _LIBRARIES:
        ctypes.CDLL(str(folder() / f"{name}.so.1"), mode=ctypes.RTLD_GLOBAL)
    flite = ctypes.CDLL(str(folder() / "libflite.so.1"), mode=ctypes.RTLD_GLOBAL)
    pointer, text, real = ctypes.c_void_p, ctypes.c_char_p, ctypes.c_float
    signatures = {
        "flite_synth_text": (pointer, (text, pointer)),
        "utt_wave": (ctypes.POINTER(Wave), (pointer,)),
        "utt_relation": (pointer, (pointer, text)),
        "relation_head": (pointer, (pointer,)),
        "item_next": (pointer, (pointer,)),
        "path_to_item": (pointer, (pointer, text)),
        "item_feat_string": (text, (pointer, text)),
        "item_feat_float": (real, (pointer, text)),
        "delete_utterance": (None, (pointer,)),
        "feat_set_float": (None, (pointer, text, real)),
    }
    declare(flite, signatures)
    flite.flite_init()
    return flite


def declare(library: ctypes.CDLL, signatures: dict[str, tuple[Any, tuple[Any, ...]]]) -> None:
    """Set result and argument types of its functions."""
    for name, (result, arguments) in signatures.items():
        function = getattr(library, name)
        function.restype, function.argtypes = result, list(arguments)


@lru_cache(maxsize=8)
def _voice(name: str) -> int:
    library()
    spoken = ctypes.CDLL(str(folder() / f"libflite_cmu_us_{name}.so.1"), mode=ctypes.RTLD_GLOBAL)
    register = getattr(spoken, f"register_cmu_us_{name}")
    register.restype, register.argtypes = ctypes.c_void_p, [ctypes.c_char_p]
    return int(register(None))


def speak(text: str, voice: str, pitch: float, spread: float, stretch: float) -> Spoken:
    """Speak `text` with this mean pitch and spread in Hz, `stretch` times as long."""
    with utterance(text, voice, pitch, spread, stretch) as said:
        return read(said)


@contextmanager
def utterance(text: str, voice: str, pitch: float, spread: float, stretch: float) -> Iterator[int]:
    """A pointer to flite's utterance, valid inside the block."""
    flite, handle = library(), _voice(voice)
    features = ctypes.cast(handle, ctypes.POINTER(_Voice)).contents.features
    settings = {
        b"int_f0_target_mean": pitch,
        b"int_f0_target_stddev": spread,
        b"duration_stretch": stretch,
    }
    for name, value in settings.items():
        flite.feat_set_float(features, name, value)
    said = flite.flite_synth_text(text.encode("ascii", "ignore"), handle)
    try:
        yield said
    finally:
        flite.delete_utterance(said)


def read(utterance: int) -> Spoken:
    flite = library()
    wave = flite.utt_wave(utterance).contents
    samples = np.ctypeslib.as_array(wave.samples, (wave.num_samples,)).copy()
    numbers = {item: index for index, item in enumerate(_items(flite, utterance, b"Token"))}
    phones, ends, words = [], [], []
    for item in _items(flite, utterance, b"Segment"):
        phones.append(_PHONE_ID.get(flite.item_feat_string(item, b"name").decode(), 0))
        ends.append(flite.item_feat_float(item, b"end"))
        words.append(numbers.get(flite.path_to_item(item, _WORD), NO_WORD))
    return Spoken(samples, wave.sample_rate, np.uint8(phones), np.float32(ends), np.int16(words))


def _items(flite: ctypes.CDLL, utterance: int, relation: bytes) -> Iterator[int]:
    item = flite.relation_head(flite.utt_relation(utterance, relation))
    while item:
        yield item
        item = flite.item_next(item)
