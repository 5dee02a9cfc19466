"""An engine for ZeroGPU: a device is allocated for one call at a time, in another process.

    here    ZeroGpuEngine.start ──▶ thread ──▶ run(sequence) ─┐ forked
    there   an Engine without a thread ◀── run_request() ◀────┘
            chunks as they are generated, then the end, come back

Here requests are checked and streams returned; no device is touched. There, the loop of an engine
without a thread runs until the request has ended. `lend` decorates the two functions.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Generator, Mapping
from contextlib import closing
from contextvars import copy_context
from functools import lru_cache, partial
from math import ceil
from typing import Any, NoReturn, TypeAlias

from engine.base_engine import LocalEngine
from engine.config import EngineSettings
from engine.engine import Engine
from engine.errors import Busy, EngineError, NotCapable, TimbreError
from engine.plan import Checkpoint
from engine.requests.output_queue import Output
from engine.requests.registry import Check
from engine.requests.sequence import Sequence, TextPiece
from engine.scheduler.admission import Admission
from engine.stats import Counters, Stats
from engine.stream import SpeechStream
from engine.text.sentences import LETTERS_PER_SECOND
from engine.types import Chunk, Clone, End, SpeechRequest, Waveform
from engine.voices.routing import cloner

START_SECONDS = 25  # overhead of a call: a process, the weights, the first kernels
FIRST_GUESS = 5.0  # seconds after which a place may be free
MAX_SECONDS = 120  # the longest call
WITH_SPACES = 1.25  # characters of a text, for each of its letters
RELEASE_STEPS = 3  # steps after which a cancelled request has no slot
LOOK_SECONDS = 0.25  # between two looks at whether a request was cancelled

Parts: TypeAlias = Generator[Chunk | End | None, None, None]  # None: nothing yet
Lend: TypeAlias = Callable[..., Any]  # lend(function, duration=…) runs it in a device process


class ZeroGpuEngine(LocalEngine):
    """Serves each request by its own call. `make` is called once in each device process."""

    def __init__(
        self,
        checkpoints: Mapping[str, Checkpoint],
        settings: EngineSettings,
        make: Callable[[], Engine],
        lend: Lend,
    ) -> None:
        super().__init__(checkpoints, settings, time.monotonic)
        self._counters = Counters()
        self._delivering = threading.Lock()
        self._cancelled: set[int] = set()
        there = lru_cache(maxsize=1)(make)

        def run(sequence: Sequence) -> Parts:
            yield from run_request(there(), sequence)

        def encode(audio: Waveform, transcript: str, model: str) -> Clone | TimbreError:
            return encode_reference(there(), audio, transcript, model)

        self._run = lend(run, duration=seconds_to_lend)
        self._encode = lend(encode, duration=START_SECONDS)

    # Requests.

    def submit(self, request: SpeechRequest) -> SpeechStream:
        """Start a request and return at once; open text is refused."""
        if request.open_text:
            self._registry.check_open()
            raise NotCapable("Text that is still being written cannot be spoken here. Send it all.")
        return super().submit(request)

    @property
    def admission(self) -> Admission:
        return Admission()

    def _check_admission(self, new: Sequence) -> Check:
        return self._check

    def start(self, sequence: Sequence, output: Output, check: Check) -> None:
        """Start a request that was checked. Raises Busy and EngineClosed."""
        self._registry.register(sequence, output, check)
        context = copy_context()  # ZeroGPU reads the visitor from it
        work = partial(context.run, self._relay, sequence)
        threading.Thread(target=work, name="zerogpu", daemon=True).start()

    def add_text(self, sequence: Sequence, piece: TextPiece) -> NoReturn:
        raise NotImplementedError  # open text is refused

    def cancel(self, sequence: Sequence, output: Output) -> None:
        if not output.end:
            self._cancelled.add(sequence.id)

    def note_lag(self, seconds: float) -> None:
        """Nobody there adjusts to it."""

    def _check(self, ahead: list[Sequence]) -> None:
        """Each request has a call of its own, and the platform a queue."""
        if len(ahead) >= self.settings.max_waiting:
            raise Busy(len(ahead), FIRST_GUESS)

    def clone(self, audio: Waveform, transcript: str = "", model: str | None = None) -> Clone:
        self._registry.check_open()
        try:
            clone = self._encode(audio, transcript, cloner(self._checkpoints, model))
        except Exception as error:
            raise _as_ours(error) from error
        if isinstance(clone, TimbreError):
            raise clone
        assert isinstance(clone, Clone)
        return clone

    # Models.

    def load(self, model: str) -> NoReturn:
        raise NotCapable("Models are loaded for each request here.")

    unload = load

    def exchange(self, out: str, name: str, checkpoint: Checkpoint) -> NoReturn:
        self.load(name)

    def add(self, name: str, checkpoint: Checkpoint) -> NoReturn:
        self.load(name)

    def stats(self) -> Stats:
        """No device is held between requests, so slots and steps are 0."""
        counters = self._counters
        return Stats(
            running=0,
            waiting=0,
            slots=0,
            talkers=(),
            realtime_capacity=1,
            step_seconds=0.0,
            steps=0,
            failed_steps=0,
            refused=self._registry.refused,
            retried=0,
            ended=dict(counters.ended),
            audio_seconds=counters.audio_seconds,
            gaps=counters.gaps,
            first_audio=counters.first_audio(),
            lowest_lead=None,
            memory=0,
        )

    # One thread per request.

    def _relay(self, sequence: Sequence) -> None:
        """Pass chunks and the end from the device's process to the stream."""
        try:
            with closing(self._run(sequence)) as parts:
                end = self._pass_on(parts, sequence)
        except Exception as error:
            end = End("error", sequence.delivered, sequence.seed, _as_ours(error))
        self._deliver(sequence, end)
        self._cancelled.discard(sequence.id)

    def _pass_on(self, parts: Parts, sequence: Sequence) -> End:
        for part in parts:
            if isinstance(part, End):
                return part
            if part:
                self._deliver(sequence, sequence.deliver(part, self._clock(), excused=False))
            if sequence.id in self._cancelled:
                return End("cancelled", sequence.delivered, sequence.seed)
        raise EngineError("The device was taken away before the end. Try again.")

    def _deliver(self, sequence: Sequence, item: Chunk | End) -> None:
        with self._delivering:
            self._counters.record(sequence, item)
            self._registry.deliver(sequence, item)


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


def _as_ours(error: Exception) -> TimbreError:
    """ZeroGPU raises its own errors; some keep their message in an attribute."""
    if isinstance(error, TimbreError):
        return error
    return EngineError(str(getattr(error, "message", error)) or type(error).__name__)
