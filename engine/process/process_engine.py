"""An engine whose thread runs in a process of its own.

    here     ProcessEngine.submit ─▶ Begin ─▶ EngineHost ─▶ Engine     there, the one that speaks
             SpeechStream ◀─ output queue ◀─ Deliver ◀─ Outbox

Whatever else this process does (pages, uploads, JSON, strangers' requests) shares no lock of Python
with the steps. Requests are checked and turned into ids here; there they only wait and run. A
process that ends is started again: its requests end with an error, later ones are served.
"""

from __future__ import annotations

import logging
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Future, wait
from contextlib import suppress
from dataclasses import replace
from itertools import count
from threading import Lock, Thread
from typing import Any

from engine.base_engine import CLOSED, LocalEngine
from engine.engine import Engine
from engine.errors import EngineClosed, EngineError, TimbreError
from engine.messages import Message
from engine.plan import Checkpoint
from engine.process.channel import (
    AddText,
    Begin,
    Call,
    Cancel,
    Channel,
    Close,
    Deliver,
    Failed,
    Lag,
    Ready,
    Reply,
    Report,
)
from engine.process.returned_blocks import return_large_blocks
from engine.requests.output_queue import Output
from engine.requests.registry import Check
from engine.requests.sequence import Sequence, TextPiece
from engine.scheduler.admission import Admission
from engine.stats import Stats
from engine.stream import LAG
from engine.types import Chunk, Clone, End, Waveform
from engine.voices.routing import cloner, restrict

LOST = Message("The engine's process has ended and is starting anew. Try again in a minute.")
GONE = Message("The engine's process ends again and again. Look at the log and start it again.")
MOST_LOSSES = 3  # processes in a row that ended before they had spoken anything
STOP_SECONDS = 15.0  # for the last step when the engine closes
CALL_POLL = 0.25  # seconds between two looks at whether a call can still be answered
STATS_SECONDS = 2.0  # after which the last ones are told again

# Python's path is this process's, so that both run the same files.
BOOT = "import sys; sys.path[:] = {path!r}; from engine.process.engine_host import main; main({fd})"

Make = Callable[[Mapping[str, Checkpoint]], Engine]

log = logging.getLogger("timbre")


class ProcessEngine(LocalEngine):
    """Serves many requests at the same time. Use it in a `with` block, or close it."""

    def __init__(self, make: Make, clock: Callable[[], float] = time.monotonic) -> None:
        """`make` runs in the new process: with no checkpoints at first, and with those that were
        there when it is started again. It is pickled by its name.

        Raises what `make` raises, if it is a TimbreError.
        """
        self._make = make
        self._sequences: dict[int, Sequence] = {}
        self._calls: dict[int, Future[Any]] = {}
        self._numbers, self._lock = count(1), Lock()
        self._model_changes = Lock()  # one at a time
        self._losses, self._closing = 0, False
        return_large_blocks()
        ready, messages = self._start({})
        super().__init__(ready.checkpoints, ready.settings, clock)
        self._reader = Thread(
            target=self._read, args=(messages,), name="timbre-reader", daemon=True
        )
        self._reader.start()
        self._stats: Stats = self._call("stats")

    # Requests.

    @property
    def admission(self) -> Admission:
        return self._report.admission

    def start(self, sequence: Sequence, output: Output, check: Check) -> None:
        """Start a request that was checked. Raises EngineClosed, and what `check` raises."""
        self._sequences[sequence.id] = sequence
        try:
            self._registry.register(sequence, output, check)
        except TimbreError:
            self._sequences.pop(sequence.id, None)
            raise
        self._channel.post(Begin(sequence))

    def add_text(self, sequence: Sequence, piece: TextPiece) -> None:
        sequence.append(piece, self._clock())  # counts its ids
        self._channel.post(AddText(sequence.id, piece))

    def cancel(self, sequence: Sequence, output: Output) -> None:
        if not output.end:
            self._channel.post(Cancel(sequence.id))

    def note_lag(self, seconds: float) -> None:
        self._channel.post(Lag(seconds))

    def clone(self, audio: Waveform, transcript: str = "", model: str | None = None) -> Clone:
        """Make a voice from checked reference audio; the caller waits."""
        self._registry.check_open()
        name = cloner(self._checkpoints, model)
        clone: Clone = self._call("clone", audio, transcript, name)
        return clone

    # Models.

    def load(self, model: str) -> None:
        """Load a checkpoint's talker, and wait for it."""
        restrict(self._checkpoints, model)
        self._call("load", model)

    def unload(self, model: str) -> None:
        """Free the memory of a talker that no request uses."""
        restrict(self._checkpoints, model)
        self._call("unload", model)

    def exchange(self, out: str, name: str, checkpoint: Checkpoint) -> None:
        """Replace a checkpoint that no request uses with another one, which is not loaded."""
        with self._model_changes:
            self._check_new(name)
            restrict(self._checkpoints, out)
            self._call("exchange", out, name, checkpoint)
            self._replace_checkpoints(self._exchanged(out, name, checkpoint))

    def add(self, name: str, checkpoint: Checkpoint) -> None:
        """Add a checkpoint and load it. If that fails, nothing has changed."""
        with self._model_changes:
            self._call("add", name, checkpoint)
            self._replace_checkpoints({**self._checkpoints, name: checkpoint})

    # State.

    @property
    def alive(self) -> bool:
        return super().alive and self._report.alive

    @property
    def ended(self) -> bool:
        return super().ended or self._report.ended

    def stats(self) -> Stats:
        """Those of the process; the last ones while it does not answer."""
        with suppress(EngineError, TimeoutError):
            self._stats = self._call("stats", timeout=STATS_SECONDS)
        return replace(self._stats, refused=self._registry.refused)

    def close(self) -> None:
        """Stop now; open requests end with an error."""
        self._closing = True
        super().close()
        self._channel.post(Close())
        self._reader.join(STOP_SECONDS)
        if self._reader.is_alive():
            self._process.kill()
            self._reader.join()

    # The process.

    def _start(self, checkpoints: Mapping[str, Checkpoint]) -> tuple[Ready, Iterator[Any]]:
        here, there = socket.socketpair()
        with there:
            boot = BOOT.format(path=sys.path, fd=there.fileno())
            self._process = subprocess.Popen(
                [sys.executable, "-c", boot], stdin=subprocess.DEVNULL, pass_fds=[there.fileno()]
            )
        channel = Channel(here.detach())
        channel.post((self._make, checkpoints))
        self._channel, messages = channel, channel.receive()
        first: Ready | Failed | None = next(messages, None)
        if isinstance(first, Ready):
            self._report = Report()
            return first, messages
        self._channel.close()
        code = self._process.wait()
        if first:
            raise first.error
        raise EngineError("The engine's process ended while it started ({code}).", code=code)

    def _read(self, messages: Iterator[Any]) -> None:
        """Deliver what comes from the process; start another one if it ends by itself."""
        while True:
            for message in messages:
                self._take(message)
            self._channel.close()
            code = self._process.wait()
            self._end_all(EngineClosed(CLOSED if self._closing else LOST))
            if self._closing:
                return
            log.critical("The engine's process has ended (%s).", code)
            self._losses += 1
            try:
                if self._losses > MOST_LOSSES:
                    raise EngineError(GONE)
                ready, messages = self._start(self._checkpoints)
            except Exception as error:
                log.critical("The engine has stopped.", exc_info=error)
                self._registry.end_all(_reason(error))
                return
            self._replace_checkpoints(ready.checkpoints)
            self._registry.resume()
            if self._closing:  # `close` may have told the process before
                self._channel.post(Close())

    def _take(self, message: Deliver | Reply | Report) -> None:
        if isinstance(message, Deliver):
            self._deliver(message.id, message.item)
            lag = time.monotonic() - message.at
            if lag > LAG:
                self.note_lag(lag)
        elif isinstance(message, Reply):
            with self._lock:
                done = self._calls.pop(message.number, None)
            if done and message.error:
                done.set_exception(message.error)
            elif done:
                done.set_result(message.value)
        else:
            self._report = message
            for id, (position, estimate) in message.requests.items():
                if sequence := self._sequences.get(id):
                    sequence.placed = position is None
                    sequence.position, sequence.estimate = position, estimate

    def _deliver(self, id: int, item: Chunk | End) -> None:
        sequence = self._sequences.get(id)
        if sequence is None:  # it has ended here
            if isinstance(item, Chunk):
                self._channel.post(Cancel(id))
            return
        if isinstance(item, End):
            del self._sequences[id]
        else:
            sequence.placed, sequence.position, self._losses = True, None, 0
            sequence.delivered += item.frames
        self._registry.deliver(sequence, item)

    def _end_all(self, error: EngineClosed) -> None:
        """End the open requests and calls: the process is gone."""
        self._registry.pause(error.message)
        self._sequences.clear()
        with self._lock:
            calls, self._calls = self._calls, {}
        for done in calls.values():
            done.set_exception(error)

    # Calls into the process.

    def _call(self, method: str, *arguments: Any, timeout: float | None = None) -> Any:
        """Call a method of the engine there, and wait for it."""
        done: Future[Any] = Future()
        number = next(self._numbers)
        with self._lock:
            self._calls[number] = done
        self._channel.post(Call(number, method, arguments))
        try:
            while not wait([done], timeout or CALL_POLL).done:
                if timeout is not None:
                    raise TimeoutError
                self._registry.check_served()  # an engine that drains still answers
        finally:
            with self._lock:
                self._calls.pop(number, None)
        return done.result()


def _reason(error: Exception) -> Message:
    """Why no process could be started."""
    if isinstance(error, TimbreError):
        return error.message
    return Message("The engine has stopped ({error}). Start it again.", error=error)
