"""An engine whose thread runs in a process of its own.

    here     ProcessEngine.submit ─▶ Begin ─▶ EngineHost ─▶ Engine     there, the one that speaks
             SpeechStream ◀─ output queue ◀─ Deliver ◀─ Outbox

Whatever else this process does (pages, uploads, JSON, strangers' requests) shares no lock of Python
with the steps. Requests are checked and turned into ids here; there they only wait and run. A
process that ends, or has said nothing for too long, is replaced by another one. What was heard of
its requests ends with an error; the others are begun again.
"""

from __future__ import annotations

import logging
import socket
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Future, wait
from contextlib import suppress
from dataclasses import replace
from itertools import count
from threading import Event, Lock, Thread
from typing import Any

from engine.base_engine import CLOSED, LocalEngine
from engine.engine import Engine
from engine.errors import EngineClosed, EngineError, TimbreError
from engine.messages import Message
from engine.plan import Checkpoint
from engine.remote.channel import (
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
from engine.remote.returned_blocks import return_large_blocks
from engine.requests.output_queue import Output
from engine.requests.registry import Check
from engine.requests.sequence import Sequence, TextPiece
from engine.scheduler.admission import Admission
from engine.stats import Stats
from engine.stream import LAG
from engine.types import Chunk, Clone, End, Waveform
from engine.voices.routing import cloner, restrict

LOST = Message("The engine's process has ended and is starting anew. Try again in a minute.")
SILENT = Message("The engine's process did not answer any more while it started.")
TOO_LONG = Message("The engine's process was not loaded within an hour. Look at the log.")
GONE = Message("The engine's process ends again and again. Look at the log and start it again.")
MOST_LOSSES = 3  # processes in a row that ended before they had spoken anything
MOST_TRIES = 3  # processes that one request may lose before anybody hears it
LOOK_SECONDS = 1.0  # between two looks at whether the process says anything
NOTICED = 3  # looks without a word after which it counts as stopped
MOST_SILENT = 10  # after which it is killed
MOST_SILENT_LOADING = 60  # reading a library from a slow disk may hold Python's lock for long
MOST_LOADING = 3600  # looks until it is loaded, a download included
STOP_SECONDS = 15.0  # for the last step when the engine closes
CALL_POLL = 0.25  # seconds between two looks at whether a call can still be answered
STATS_SECONDS = 2.0  # after which the last ones are told again

# Python's path is this process's, so that both run the same files.
BOOT = "import sys; sys.path[:] = {path!r}; from {package}.engine_host import main; main({fd})"

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
        self._tries: Counter[int] = Counter()  # processes lost, by request
        self._cancelled: set[int] = set()
        self._text = Lock()  # of open requests: it is sent once, with them or after them
        self._heard = 0  # messages of the process
        self._silent = False  # for longer than usual
        self._closed = Event()
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
        with self._text:
            sequence.append(piece, self._clock())
            self._channel.post(AddText(sequence.id, piece))

    def cancel(self, sequence: Sequence, output: Output) -> None:
        if not output.end:
            self._cancelled.add(sequence.id)
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
        return super().alive and self._report.alive and not self._silent

    @property
    def ended(self) -> bool:
        return super().ended or self._report.ended

    @property
    def restarting(self) -> bool:
        stopped = self._silent or self._registry.is_paused or not self._report.alive
        return stopped and not self.ended

    def stats(self) -> Stats:
        """Those of the process; the last ones while it does not answer."""
        with suppress(EngineError, TimeoutError):
            if not self._silent:
                self._stats = self._call("stats", timeout=STATS_SECONDS)
        return replace(self._stats, refused=self._registry.refused)

    def close(self) -> None:
        """Stop now; open requests end with an error."""
        self._closing = True
        self._closed.set()
        super().close()
        self._channel.post(Close())
        self._reader.join(STOP_SECONDS)
        if self._reader.is_alive():
            self._process.kill()
            self._reader.join()

    # The process.

    def _start(self, checkpoints: Mapping[str, Checkpoint]) -> tuple[Ready, Iterator[Any]]:
        self._loading = True
        self._killed: Message | None = None  # why this side has killed it
        here, there = socket.socketpair()
        with there:
            boot = BOOT.format(path=sys.path, package=__package__, fd=there.fileno())
            self._process = subprocess.Popen(
                [sys.executable, "-c", boot], stdin=subprocess.DEVNULL, pass_fds=[there.fileno()]
            )
        watch = Thread(target=self._watch, args=(self._process,), name="timbre-heartbeat")
        watch.daemon = True
        watch.start()
        channel = Channel(here.detach())
        channel.post((self._make, checkpoints))
        self._channel, messages = channel, self._heard_from(channel)
        first: Ready | Failed | None = None
        for message in messages:
            if not isinstance(message, Report):
                first = message
                break
        if isinstance(first, Ready):
            self._report, self._loading, self._silent = Report(), False, False
            return first, messages
        self._channel.close()
        code = self._process.wait()
        if first:
            raise first.error
        if self._killed:
            raise EngineError(self._killed)
        raise EngineError("The engine's process ended while it started ({code}).", code=code)

    def _heard_from(self, channel: Channel) -> Iterator[Any]:
        for message in channel.receive():
            self._heard += 1
            yield message

    def _watch(self, process: subprocess.Popen[bytes]) -> None:
        """Kill a process that says nothing any more, or takes too long to load.

        Looks are counted, not seconds: a machine that stood still has lost none of them.
        """
        heard = silent = looks = 0
        while process.poll() is None and not self._closed.wait(LOOK_SECONDS):
            silent = 0 if self._heard != heard else silent + 1
            heard, looks = self._heard, looks + 1
            self._silent = silent > NOTICED
            mute = silent > (MOST_SILENT_LOADING if self._loading else MOST_SILENT)
            if mute or (self._loading and looks > MOST_LOADING):
                self._killed = SILENT if mute else TOO_LONG
                log.critical("The engine's process %d does not answer: killed.", process.pid)
                process.kill()
                break

    def _read(self, messages: Iterator[Any]) -> None:
        """Deliver what comes from the process; start another one if it ends by itself."""
        while True:
            for message in messages:
                self._take(message)
            self._channel.close()
            code = self._process.wait()
            self._lose_all(EngineClosed(CLOSED if self._closing else LOST))
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
            self._begin_again()
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
            self._forget(id)
        else:
            sequence.placed, sequence.position, self._losses = True, None, 0
            sequence.delivered += item.frames
        self._registry.deliver(sequence, item)

    def _forget(self, id: int) -> None:
        self._sequences.pop(id, None)
        self._tries.pop(id, None)
        self._cancelled.discard(id)

    def _lose_all(self, error: EngineClosed) -> None:
        """The process is gone: end the open calls, and the requests that cannot be begun again."""
        self._registry.hold(error.message)
        for id, sequence in tuple(self._sequences.items()):
            self._tries[id] += 1
            sequence.placed, sequence.position = False, None
            if id in self._cancelled:
                self._deliver(id, End("cancelled", sequence.delivered, sequence.seed))
            elif self._closing or sequence.delivered or self._tries[id] >= MOST_TRIES:
                self._deliver(id, End("error", sequence.delivered, sequence.seed, error))
        with self._lock:
            calls, self._calls = self._calls, {}
        for done in calls.values():
            done.set_exception(error)

    def _begin_again(self) -> None:
        """Give the requests that nobody has heard to the new process, with all of their text."""
        with self._text:
            for id, sequence in tuple(self._sequences.items()):
                self._channel.post(Begin(sequence))
                if id in self._cancelled:  # while no process could be told
                    self._channel.post(Cancel(id))

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
