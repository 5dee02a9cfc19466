"""Recordings into voices, and the shelf that keeps what was dear to make.

Encoding runs beside the engine's steps, in one thread of its own that stands behind them where
they share cores: streams go first, and memory for more than one recording is the steps'. Equal
recordings are encoded once; the shelf forgets the ones that were not used for longest. Several
recordings as one batch were measured: no gain on CPUs (docs/log.md).
"""

from __future__ import annotations

import hashlib
import os
import sys
import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from operator import attrgetter
from typing import Generic, TypeVar

import numpy as np
import torch

from engine.types import FRAME_SAMPLES, SAMPLE_RATE, Clone, Codes, Vector, Waveform
from engine.worker.hearing import Hearing

Key = TypeVar("Key", bound=Hashable)
Value = TypeVar("Value")

BEHIND = 10  # a thread's niceness above the steps': it takes what they leave of a core


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


def stand_behind() -> None:
    """This thread lets the others go first. Only Linux has a priority for each thread."""
    if sys.platform == "linux":
        this = threading.get_native_id()
        own = os.getpriority(os.PRIO_PROCESS, this)
        os.setpriority(os.PRIO_PROCESS, this, min(own + BEHIND, 19))


class Listener:
    """Makes clones from recordings with the networks it is given.

    `stream`: where a GPU does it. There the host's part is to launch, and does not stand behind:
    the steps' launches would wait for it.
    """

    def __init__(
        self,
        encoder: Hearing,
        limit: int,
        silence: float,
        stream: torch.cuda.Stream | None = None,
    ) -> None:
        self._encoder, self._stream = encoder, stream
        # Without a pause at its end, the reference's last word is echoed at the start.
        self._pause = np.zeros(round(silence * SAMPLE_RATE), np.float32)
        self._codes: Shelf[str, Codes] = Shelf(limit)
        self._vectors: Shelf[tuple[str, str], Vector] = Shelf(limit)
        self._thread = ThreadPoolExecutor(1, "listener", None if stream else stand_behind)

    def clone(self, talker: str, speaker: Hearing, audio: Waveform, transcript: str) -> Clone:
        """The voice of a checked recording; codes only where there is a transcript for them."""
        name = hashlib.sha256(np.ascontiguousarray(audio, np.float32).tobytes()).hexdigest()
        vector = self._once(self._vectors, (talker, name), lambda: self._listen(speaker, audio))
        if not transcript:
            return Clone(vector)
        return Clone(vector, transcript, self._once(self._codes, name, lambda: self._encode(audio)))

    def warm(self, speaker: Hearing) -> None:
        """Before the first recording comes."""
        for each in (speaker, self._encoder):
            self._thread.submit(self._warm, each).result()

    def _once(self, shelf: Shelf[Key, Value], key: Key, make: Callable[[], Value]) -> Value:
        """What is known already waits for nobody; the others look again when it is their turn."""
        size = attrgetter("nbytes")
        return shelf.get(
            key, lambda: self._thread.submit(shelf.get, key, make, size).result(), size
        )

    def _listen(self, speaker: Hearing, audio: Waveform) -> Vector:
        with self._aside():
            return speaker(audio).float().cpu().numpy()

    def _encode(self, audio: Waveform) -> Codes:
        whole = np.concatenate((audio, self._pause))
        frames = -(-len(whole) // FRAME_SAMPLES)
        with self._aside():
            return self._encoder(whole)[:frames].cpu().numpy().astype(np.int64)

    def _warm(self, each: Hearing) -> None:
        with self._aside():
            each.warm()

    @contextmanager
    def _aside(self) -> Iterator[None]:
        with torch.inference_mode(), torch.cuda.stream(self._stream):
            yield
