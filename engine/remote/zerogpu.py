"""A device that ZeroGPU lends for one call at a time, in another process.

    here    LentDevice.speak ──▶ thread ──▶ run(sequence) ─┐ forked
    there   an Engine without a thread ◀── run_request() ◀─┘
            chunks as they are generated, then the end, come back

There, the loop of an engine without a thread runs until the request has ended. `lend` decorates the
two functions that need a device.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Generator
from contextlib import closing
from contextvars import copy_context
from dataclasses import replace
from functools import lru_cache, partial
from math import ceil
from typing import Any, TypeAlias

from engine.engine import Engine
from engine.errors import EngineError, NotCapable, TimbreError
from engine.remote.protocol import as_timbre_error
from engine.remote.remote_engine import Transport
from engine.requests.sequence import Sequence
from engine.scheduler.admission import Admission
from engine.stats import Counters, Stats, add_up
from engine.text.sentences import LETTERS_PER_SECOND
from engine.types import Chunk, Clone, End, Waveform

START_SECONDS = 25  # overhead of a call: a process, the weights, the first kernels
MAX_SECONDS = 120  # the longest call
WITH_SPACES = 1.25  # characters of a text, for each of its letters
RELEASE_STEPS = 3  # steps after which a cancelled request has no slot
LOOK_SECONDS = 0.25  # between two looks at whether a request was cancelled

Parts: TypeAlias = Generator[Chunk | End | None, None, None]  # None: nothing yet
Lend: TypeAlias = Callable[..., Any]  # lend(function, duration=…) runs it in a device process


class LentDevice(Transport):
    """The transport of a `RemoteEngine`: a call for each request, and a thread here."""

    open_text = False

    def __init__(self, make: Callable[[], Engine], lend: Lend) -> None:
        """`make` is called once in each device process."""
        there = lru_cache(maxsize=1)(make)

        def run(sequence: Sequence) -> Parts:
            yield from run_request(there(), sequence)

        def encode(audio: Waveform, transcript: str, model: str) -> Clone | TimbreError:
            return encode_reference(there(), audio, transcript, model)

        self._run = lend(run, duration=seconds_to_lend)
        self._encode = lend(encode, duration=START_SECONDS)

    @property
    def admission(self) -> Admission:
        """The platform has a queue."""
        return Admission(places=1, retry=5.0)

    def speak(self, sequence: Sequence, avoid: frozenset[str]) -> None:
        context = copy_context()  # ZeroGPU reads the visitor from it
        work = partial(context.run, self._relay, sequence)
        threading.Thread(target=work, name="zerogpu", daemon=True).start()

    def call(self, method: str, *arguments: Any) -> Any:
        if method != "clone":
            raise NotCapable("Models are loaded for each request here.")
        try:
            clone = self._encode(*arguments)
        except Exception as error:
            raise as_timbre_error(error) from error
        if isinstance(clone, TimbreError):
            raise clone
        return clone

    def stats(self, here: Counters, refused: int) -> Stats:
        """No device is held between requests, so slots and steps are 0."""
        return replace(
            add_up({}, here, refused),
            realtime_capacity=1,
            ended=dict(here.ended),
            audio_seconds=here.audio_seconds,
            gaps=here.gaps,
        )

    def _relay(self, sequence: Sequence) -> None:
        """Pass chunks and the end from the device's process on."""
        try:
            with closing(self._run(sequence)) as parts:
                end = self._pass_on(parts, sequence)
        except Exception as error:
            end = End("error", sequence.delivered, sequence.seed, as_timbre_error(error))
        self.near.hear(sequence.id, end)

    def _pass_on(self, parts: Parts, sequence: Sequence) -> End:
        for part in parts:
            if isinstance(part, End):
                return part
            if part:
                self.near.hear(sequence.id, part)
            if sequence.left:
                return End("cancelled", sequence.delivered, sequence.seed)
        raise EngineError("The device was taken away before the end. Try again.")


def run_request(engine: Engine, sequence: Sequence) -> Parts:
    """Run the loop of an engine without a thread until the request has ended.

    Closing the generator early cancels the request; while there is no audio, as in a file, it
    yields None from time to time, so that it can be closed.
    """
    try:
        stream = engine.take(sequence)
    except TimbreError as error:
        yield End("error", 0, sequence.seed, error)
        return
    try:
        looked = time.monotonic()
        while stream.end is None:
            engine.loop.run_once()
            yield from stream.ready()
            if time.monotonic() > looked + LOOK_SECONDS:
                yield None
                looked = time.monotonic()
        yield stream.end
    finally:
        stream.cancel()
        for _ in range(RELEASE_STEPS):
            engine.loop.run_once(wait=False)


def encode_reference(
    engine: Engine, audio: Waveform, transcript: str, model: str
) -> Clone | TimbreError:
    """Errors are returned, not raised: an exception would lose its message between processes."""
    try:
        return engine.clone(audio, transcript, model)
    except TimbreError as error:
        return error


def seconds_to_lend(sequence: Sequence) -> int:
    """How long a request needs the device if its speech is slow."""
    letters = sum(group.letters for group in sequence.groups)
    speaking = letters * WITH_SPACES / LETTERS_PER_SECOND
    return min(MAX_SECONDS, ceil(START_SECONDS + speaking))
