"""An engine whose device is lent for one request at a time, to another process, as by ZeroGPU.

    here    ZeroGpuEngine.submit ──▶ thread ──▶ speak(request) ─┐ forked
    there   an engine without a thread ◀── spoken(request) ◀─┘
            chunks as they are made, then the end, go the same way back

Here requests are checked and streams handed out; no device is ever touched. There, an engine that
nobody else turns is turned until the request has ended. Whoever lends decorates the two functions.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Generator, Mapping
from contextlib import closing
from contextvars import copy_context
from dataclasses import replace
from functools import lru_cache, partial
from math import ceil
from queue import SimpleQueue
from typing import Any, NoReturn, TypeAlias

from engine.config import EngineSettings
from engine.engine import Engine
from engine.errors import EngineError, NotCapable, TimbreError
from engine.plan import Checkpoint, StepHandle, StepPlan
from engine.requests.output_queue import OutputQueue
from engine.requests.sequence import Sequence
from engine.stream import Handles, SpeechStream
from engine.types import Chunk, Clone, End, SpeechRequest, Waveform
from engine.voices.routing import cloner

STARTING = 25  # seconds to ask for beside the speech: a process, the weights, the first kernels
LONGEST = 120  # seconds of a device that are lent at a time
LETTERS, IDEOGRAMS = 15, 4  # a second, spoken slowly
_WIDE = 0x2E7F  # scripts from here on are written in ideograms or syllables
_LEAVE = 3  # turns after which a request that was left has no slot

Parts: TypeAlias = Generator[Chunk | End, None, None]
Lend: TypeAlias = Callable[..., Any]  # lend(function, duration=…) runs it where the device is


class ZeroGpuEngine(Engine):
    """Serves each request by a call of its own. `make` is called there, once in each process."""

    def __init__(
        self,
        checkpoints: Mapping[str, Checkpoint],
        settings: EngineSettings,
        make: Callable[[], Engine],
        lend: Lend,
    ) -> None:
        super().__init__(_Nowhere(), checkpoints, settings, start=False)
        there = lru_cache(maxsize=1)(make)

        def speak(request: SpeechRequest) -> Parts:
            yield from spoken(there(), request)

        def hear(audio: Waveform, transcript: str, model: str) -> Clone | TimbreError:
            return heard(there(), audio, transcript, model)

        self._speak = lend(speak, duration=seconds_to_ask)
        self._hear = lend(hear, duration=STARTING)
        self._telling = threading.Lock()

    def submit(self, request: SpeechRequest) -> SpeechStream:
        """As of any engine; text that is still being written is not taken."""
        self._roster.check()
        if request.open_text:
            raise NotCapable("Text that is still being written cannot be spoken here. Send it all.")
        seat = self.doorman()
        sequence, mailbox = self._intake.take(request).sequence, OutputQueue()
        self._enter(sequence, mailbox)
        left: SimpleQueue[None] = SimpleQueue()  # a finaliser may put into it
        handles = Handles(partial(left.put, None), None)
        stream = SpeechStream(mailbox, sequence, handles, self.finish)
        seat(stream)
        work = partial(self._relay, replace(request, seed=sequence.seed), sequence, left)
        context = copy_context()  # whoever lends finds the visitor in it
        threading.Thread(target=context.run, args=(work,), name="lent", daemon=True).start()
        return stream

    def clone(self, audio: Waveform, transcript: str = "", model: str | None = None) -> Clone:
        self._roster.check()
        try:
            clone = self._hear(audio, transcript, cloner(self._checkpoints, model))
        except Exception as error:
            raise _told(error) from error
        if isinstance(clone, TimbreError):
            raise clone
        assert isinstance(clone, Clone)
        return clone

    def load(self, model: str) -> NoReturn:
        raise NotCapable("Models are loaded for each request here.")

    unload = load

    def _relay(self, request: SpeechRequest, sequence: Sequence, left: SimpleQueue[None]) -> None:
        """In a thread of its own: what comes from there, to the listener here."""
        try:
            with closing(self._speak(request)) as parts:
                end = self._pass_on(parts, sequence, left)
        except Exception as error:
            end = End("error", sequence.delivered, sequence.seed, _told(error))
        self._tell(sequence, end)

    def _pass_on(self, parts: Parts, sequence: Sequence, left: SimpleQueue[None]) -> End:
        for part in parts:
            if isinstance(part, End):
                return part
            sequence.delivered += part.frames
            self._tell(sequence, part)
            if not left.empty():
                return End("cancelled", sequence.delivered, sequence.seed)
        raise EngineError("The device was taken away before the end. Try again.")

    def _tell(self, sequence: Sequence, item: Chunk | End) -> None:
        with self._telling:
            self.loop.deliver([(sequence, item)])


def spoken(engine: Engine, request: SpeechRequest) -> Parts:
    """Turn an engine without a thread until the request has ended. Left early, it is cancelled."""
    try:
        stream = engine.submit(request)
    except TimbreError as error:
        yield End("error", 0, request.seed or 0, error)
        return
    try:
        while stream.end is None:
            engine.loop.turn()
            yield from stream.ready()
        yield stream.end
    finally:
        stream.cancel()
        for _ in range(_LEAVE):
            engine.loop.turn(wait=False)


def heard(engine: Engine, audio: Waveform, transcript: str, model: str) -> Clone | TimbreError:
    """A refusal is returned: what is raised there would lose its words on the way."""
    try:
        return engine.clone(audio, transcript, model)
    except TimbreError as error:
        return error


def seconds_to_ask(request: SpeechRequest) -> int:
    """Of the device, for one request, as if it spoke no faster than people do."""
    wide = sum(ord(mark) > _WIDE for mark in request.text)
    speech = wide / IDEOGRAMS + (len(request.text) - wide) / LETTERS
    return min(LONGEST, ceil(STARTING + speech))


def _told(error: Exception) -> TimbreError:
    """Whoever lends has errors of its own; some have their words aside."""
    if isinstance(error, TimbreError):
        return error
    return EngineError(str(getattr(error, "message", error)) or type(error).__name__)


class _Nowhere:
    """The worker of an engine that has no device."""

    def slots(self, talker: str) -> range:
        return range(0)

    def load(self, talker: str) -> range:
        return range(0)

    def timings(self, talker: str) -> Mapping[int, float]:
        return {}

    def unload(self, talker: str) -> None: ...

    def exchange(self, out: str, name: str, checkpoint: Checkpoint) -> None: ...

    def launch(self, plan: StepPlan) -> StepHandle:
        raise EngineError("There is no device here.")

    def encode(self, talker: str, audio: Waveform, transcript: str) -> Clone:
        raise EngineError("There is no device here.")

    def reset(self) -> None: ...

    def memory(self) -> int:
        return 0

    def close(self) -> None: ...
