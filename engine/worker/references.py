"""Recordings into voices, and the shelf that keeps what was dear to make.

Encoding runs beside the engine's steps, on whatever thread asks for it. Equal recordings are
encoded once; the shelf forgets the ones that were not used for longest.
"""

from __future__ import annotations

import hashlib
import threading
from collections import OrderedDict
from collections.abc import Callable
from typing import Generic, TypeVar

import numpy as np
import torch

from engine.model.encoder import CodecEncoder
from engine.model.speaker import SpeakerEncoder
from engine.types import SAMPLE_RATE, Clone, Codes, Vector, Waveform
from engine.worker.prompts import to_device

Key = TypeVar("Key")
Value = TypeVar("Value")


class Shelf(Generic[Key, Value]):
    """Values by key, the latest used, up to some bytes in all. Any thread."""

    def __init__(self, limit: int) -> None:
        self._limit, self.bytes = limit, 0
        self._kept: OrderedDict[Key, tuple[Value, int]] = OrderedDict()
        self._lock = threading.Lock()

    def get(self, key: Key, make: Callable[[], Value], size: Callable[[Value], int]) -> Value:
        """The value of a key, made when it is not here (outside the lock)."""
        with self._lock:
            if key in self._kept:
                self._kept.move_to_end(key)
                return self._kept[key][0]
        value = make()
        with self._lock:
            self._put(key, value, size(value))
        return value

    def _put(self, key: Key, value: Value, size: int) -> None:
        _, before = self._kept.pop(key, (None, 0))  # another thread may have been quicker
        self._kept[key] = value, size
        self.bytes += size - before
        while self.bytes > self._limit and len(self._kept) > 1:
            self.bytes -= self._kept.popitem(last=False)[1][1]


class Listener:
    """Makes clones from recordings with the networks it is given."""

    def __init__(self, encoder: CodecEncoder, limit: int, silence: float) -> None:
        self._encoder = encoder
        self._device = next(encoder.parameters()).device
        # Without a pause at its end, the reference's last word is echoed at the start.
        self._pause = np.zeros(round(silence * SAMPLE_RATE), np.float32)
        self._codes: Shelf[str, Codes] = Shelf(limit)
        self._vectors: Shelf[tuple[str, str], Vector] = Shelf(limit)
        self._turn = threading.Lock()  # one recording at a time: memory is for the steps

    def clone(
        self, talker: str, speaker: SpeakerEncoder, audio: Waveform, transcript: str
    ) -> Clone:
        """The voice of a checked recording; codes only where there is a transcript for them."""
        name = hashlib.sha256(np.ascontiguousarray(audio, np.float32).tobytes()).hexdigest()
        with self._turn:
            vector = self._vectors.get(
                (talker, name), lambda: self._listen(speaker, audio), lambda made: made.nbytes
            )
            if not transcript:
                return Clone(vector)
            codes = self._codes.get(name, lambda: self._encode(audio), lambda made: made.nbytes)
        return Clone(vector, transcript, codes)

    def warm(self, speaker: SpeakerEncoder) -> None:
        """Listen to a second of silence: the first recording takes libraries half a second more."""
        silence = np.zeros(SAMPLE_RATE, np.float32)
        with self._turn:
            self._listen(speaker, silence)
            self._encode(silence)

    def _listen(self, speaker: SpeakerEncoder, audio: Waveform) -> Vector:
        wave = to_device(audio, self._device, torch.float32)[None]
        return speaker.embed(wave)[0].float().cpu().numpy()

    def _encode(self, audio: Waveform) -> Codes:
        wave = to_device(np.concatenate((audio, self._pause)), self._device, torch.float32)[None]
        return self._encoder.encode(wave)[0].cpu().numpy().astype(np.int64)
