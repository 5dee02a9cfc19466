"""Recordings into voices, and the shelf that keeps what was dear to make.

Encoding runs beside the engine's steps, in one thread of its own that stands behind them where
they share cores: streams go first, and memory for more than one recording is the steps'. Equal
recordings are encoded once; the shelf forgets the ones that were not used for longest. On a GPU
all that wait are encoded together; on CPUs that was measured to be no gain (docs/log.md).
"""

from __future__ import annotations

import hashlib
import os
import sys
import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from itertools import islice
from operator import attrgetter
from typing import Any, Generic, TypeVar

import numpy as np
import torch
from torch import Tensor

from engine.types import FRAME_SAMPLES, SAMPLE_RATE, Clone, Codes, Vector, Waveform
from engine.worker.reference.encoder_graphs import ROWS, EncoderRunner

Key = TypeVar("Key", bound=Hashable)
Value = TypeVar("Value")

BEHIND = 10  # a thread's niceness above the steps': it takes what they leave of a core


class LRUCache(Generic[Key, Value]):
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

    def known(self, key: Key) -> Value | None:
        with self._lock:
            return self._kept[key][0] if key in self._kept else None

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


@dataclass(eq=False)
class Ask:
    """A recording that waits for a network."""

    hearing: EncoderRunner
    audio: Waveform
    keep: Callable[[Tensor], Any]  # puts on a shelf what is wanted of it
    known: Callable[[], Any]  # what is there by now, or None
    answer: Future[Any] = field(default_factory=Future)
    begun: bool = False


class ReferenceEncoder:
    """Makes clones from recordings with the networks it is given.

    `stream`: where a GPU does it. There the host's part is to launch, and does not stand behind:
    the steps' launches would wait for it.
    """

    def __init__(
        self,
        encoder: EncoderRunner,
        limit: int,
        silence: float,
        stream: torch.cuda.Stream | None = None,
    ) -> None:
        self._encoder, self._stream = encoder, stream
        # Without a pause at its end, the reference's last word is echoed at the start.
        self._pause = np.zeros(round(silence * SAMPLE_RATE), np.float32)
        self._codes: LRUCache[str, Codes] = LRUCache(limit)
        self._vectors: LRUCache[tuple[str, str], Vector] = LRUCache(limit)
        self._thread = ThreadPoolExecutor(1, "listener", None if stream else stand_behind)
        self._asks: dict[Hashable, Ask] = {}  # until they are answered
        self._lock = threading.Lock()

    def clone(self, talker: str, speaker: EncoderRunner, audio: Waveform, transcript: str) -> Clone:
        """The voice of a checked recording; codes only where there is a transcript for them."""
        name = hashlib.sha256(np.ascontiguousarray(audio, np.float32).tobytes()).hexdigest()
        vector = self._once(self._vectors, (talker, name), speaker, audio, _vector)
        if not transcript:
            return Clone(vector)
        whole = np.concatenate((audio, self._pause))
        codes = partial(_codes, -(-len(whole) // FRAME_SAMPLES))
        return Clone(vector, transcript, self._once(self._codes, name, self._encoder, whole, codes))

    def warm(self, speaker: EncoderRunner) -> None:
        """Before the first recording comes."""
        for each in (speaker, self._encoder):
            self._thread.submit(self._warm, each).result()

    def _once(
        self,
        shelf: LRUCache[Key, Value],
        key: Key,
        hearing: EncoderRunner,
        audio: Waveform,
        told: Callable[[Tensor], Value],
    ) -> Value:
        """What is known already waits for nobody; equal recordings wait for the same answer."""
        size = attrgetter("nbytes")
        keep = partial(_kept, shelf, key, told, size)
        ask = Ask(hearing, audio, keep, partial(shelf.known, key))
        return shelf.get(key, lambda: self._asked((id(shelf), key), ask).result(), size)

    def _asked(self, place: Hashable, ask: Ask) -> Future[Any]:
        with self._lock:
            known = self._asks.setdefault(place, ask)
            if known is ask:
                try:
                    self._thread.submit(self._answer)
                except RuntimeError:  # the end of the program
                    del self._asks[place]
                    raise
        return known.answer

    def _answer(self) -> None:
        """The oldest, and on a GPU others that wait for the same network."""
        if asks := self._taken():
            try:
                if fresh := [ask for ask in asks.values() if not _settled(ask)]:
                    self._listen(fresh)
            finally:
                with self._lock:
                    for place in asks:
                        del self._asks[place]
                for ask in asks.values():
                    if not ask.answer.done():
                        ask.answer.set_exception(RuntimeError("Nobody listens any more."))

    def _taken(self) -> dict[Hashable, Ask]:
        with self._lock:
            waiting = {place: ask for place, ask in self._asks.items() if not ask.begun}
            first = next(iter(waiting.values()), None)
            alike = ((place, ask) for place, ask in waiting.items() if ask.hearing is first.hearing)
            taken = dict(islice(alike, ROWS[-1] if self._stream else 1)) if first else {}
            for ask in taken.values():
                ask.begun = True
        return taken

    def _listen(self, asks: Sequence[Ask]) -> None:
        """One's fault is not the others'."""
        try:
            for ask, made in zip(asks, self._heard(asks), strict=True):
                ask.answer.set_result(made)
            return
        except Exception as error:
            if len(asks) == 1:
                asks[0].answer.set_exception(error)
                return
        for ask in asks:
            self._listen([ask])

    def _heard(self, asks: Sequence[Ask]) -> list[Any]:
        with self._aside():
            heard = asks[0].hearing([ask.audio for ask in asks])
            return [ask.keep(made) for ask, made in zip(asks, heard, strict=True)]

    def _warm(self, each: EncoderRunner) -> None:
        with self._aside():
            each.warm()

    @contextmanager
    def _aside(self) -> Iterator[None]:
        with torch.inference_mode(), torch.cuda.stream(self._stream):
            yield


def _kept(
    shelf: LRUCache[Key, Value],
    key: Key,
    told: Callable[[Tensor], Value],
    size: Callable[[Value], int],
    made: Tensor,
) -> Value:
    return shelf.get(key, lambda: told(made), size)


def _settled(ask: Ask) -> bool:
    """Somebody else's answer came since it was asked."""
    known = ask.known()
    if known is not None:
        ask.answer.set_result(known)
    return known is not None


def _vector(made: Tensor) -> Vector:
    return made.float().cpu().numpy()


def _codes(frames: int, made: Tensor) -> Codes:
    return made[:frames].cpu().numpy().astype(np.int64)
