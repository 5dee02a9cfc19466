"""An engine whose thread runs in a process of its own.

Whatever else this process does (pages, uploads, JSON, strangers' requests) shares no lock of Python
with the steps. A process that ends, or has said nothing for too long, is replaced by another one.
"""

from __future__ import annotations

import gc
import logging
import os
import signal
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Future
from concurrent.futures import TimeoutError as Late
from contextlib import suppress
from dataclasses import dataclass, field, replace
from importlib import import_module
from itertools import count
from threading import Event, Lock, Thread
from typing import Any, TypeAlias

from engine.config import EngineSettings
from engine.engine import Engine
from engine.errors import EngineClosed, EngineError, TimbreError
from engine.messages import Message
from engine.plan import Checkpoint
from engine.remote.boot import BootedProcess
from engine.remote.channel import Channel
from engine.remote.protocol import Part, Taken, as_timbre_error
from engine.remote.remote_engine import RemoteEngine, Transport
from engine.remote.returned_blocks import return_large_blocks
from engine.requests.sequence import Sequence, TextPiece
from engine.scheduler.admission import Admission
from engine.speech_engine import CLOSED
from engine.stats import Counters, Stats
from engine.stream import LAG
from engine.types import Chunk, End

LOST = Message("The engine's process has ended and is starting anew. Try again in a minute.")
SILENT = Message("The engine's process did not answer any more while it started.")
TOO_LONG = Message("The engine's process was not loaded within an hour. Look at the log.")
GONE = Message("The engine's process ends again and again. Look at the log and start it again.")
BEAT_SECONDS = 1.0  # of silence, at most
REPORT_SECONDS = 0.25  # between two looks at what the other side should know
MOST_LOSSES = 3  # processes in a row that ended before they had spoken anything
LOOK_SECONDS = 1.0  # between two looks at whether the process says anything
NOTICED = 3  # looks without a word after which it counts as stopped
MOST_SILENT = 10  # after which it is killed
MOST_SILENT_LOADING = 60  # reading a library from a slow disk may hold Python's lock for long
MOST_LOADING = 3600  # looks until it is loaded, a download included
STOP_SECONDS = 15.0  # for the last step when the engine closes
ENDED = 3  # how a process exits whose engine has stopped for good
STATS_SECONDS = 2.0  # after which the last ones are sent again

Make: TypeAlias = Callable[[Mapping[str, Checkpoint]], Engine]
OnLoss: TypeAlias = Callable[[], None]

log = logging.getLogger("timbre")


def process_engine(
    make: Make, booted: BootedProcess | None = None, on_loss: OnLoss | None = None
) -> RemoteEngine:
    """`make` runs in the new process: with no checkpoints at first, and with those that were there
    when it is started again. It is pickled by its name. `booted`: a process that waits for it.
    `on_loss` is called where the process has ended by itself, before anybody hears of it.

    Raises what `make` raises, if it is a TimbreError.
    """
    process = EngineProcess(make, booted, on_loss)
    return RemoteEngine(process.checkpoints, process.settings, process)


@dataclass(frozen=True)
class Report:
    """Sent when it changes, and each second; all defaults while the engine loads."""

    alive: bool = True
    ended: bool = False
    admission: Admission = field(default_factory=Admission)
    taken: Mapping[int, Taken] = field(default_factory=dict)  # requests that are open


class EngineProcess(Transport):
    """The near side: calls over a socket, and a watch on the process."""

    settings: EngineSettings
    checkpoints: Mapping[str, Checkpoint]  # as it was opened

    def __init__(
        self, make: Make, booted: BootedProcess | None = None, on_loss: OnLoss | None = None
    ) -> None:
        return_large_blocks()
        self._make, self._booted, self._on_loss = make, booted, on_loss
        self._report = Report()
        self._calls: dict[int, Future[Any]] = {}
        self._numbers, self._lock = count(1), Lock()
        self._lost: EngineClosed | None = None  # while there is no process
        self._losses = 0
        self._failure: TimbreError | None = None  # why the last one could not be started
        self._heard = 0  # calls of the process
        self._silent = False  # for longer than usual
        self._closed = Event()
        self._reader = Thread(
            target=self._read, args=(self._start(),), name="timbre-reader", daemon=True
        )

    # For the engine.

    @property
    def alive(self) -> bool:
        return self._report.alive and not self._silent

    @property
    def ended(self) -> bool:
        return self._report.ended

    @property
    def admission(self) -> Admission:
        return self._report.admission

    def connect(self, near: RemoteEngine) -> None:
        super().connect(near)
        self._reader.start()
        self._stats: Stats = self.call("stats")

    def speak(self, sequence: Sequence, avoid: frozenset[str]) -> None:
        self._channel.post(ProcessHost.speak, sequence)

    def append(self, id: int, piece: TextPiece) -> None:
        self._channel.post(ProcessHost.append, id, piece)

    def cancel(self, id: int) -> None:
        self._channel.post(ProcessHost.cancel, id)

    def note_lag(self, seconds: float) -> None:
        self._channel.post(ProcessHost.note_lag, seconds)

    def call(self, method: str, *arguments: Any, timeout: float | None = None) -> Any:
        done: Future[Any] = Future()
        number = next(self._numbers)
        with self._lock:
            if self._lost:
                raise self._lost
            self._calls[number] = done
        self._channel.post(ProcessHost.call, number, method, arguments)
        try:
            return done.result(timeout)
        finally:
            with self._lock:
                self._calls.pop(number, None)

    def stats(self, here: Counters, refused: int) -> Stats:
        """The process's statistics; the last known ones while it does not answer."""
        with suppress(EngineError, Late):
            if not self._silent:
                self._stats = self.call("stats", timeout=STATS_SECONDS)
        return replace(self._stats, refused=refused)

    def close(self) -> None:
        self._closed.set()
        self._channel.post(ProcessHost.leave)
        self._reader.join(STOP_SECONDS)
        if self._reader.is_alive():
            self._process.kill()
            self._reader.join()

    # What the process calls.

    def opened(self, settings: EngineSettings, checkpoints: Mapping[str, Checkpoint]) -> None:
        self.settings, self.checkpoints = settings, checkpoints
        self._report, self._loading, self._silent = Report(), False, False

    def failed(self, error: TimbreError) -> None:
        self._failure = error

    def hear(self, id: int, part: Part, at: float) -> None:
        if isinstance(part, Chunk):
            self._losses = 0
        self.near.hear(id, part)
        lag = time.monotonic() - at
        if lag > LAG:
            self.note_lag(lag)

    def answer(self, number: int, value: Any, error: TimbreError | None) -> None:
        with self._lock:
            done = self._calls.pop(number, None)
        if done and error:
            done.set_exception(error)
        elif done:
            done.set_result(value)

    def report(self, report: Report) -> None:
        self._report = report
        for id, taken in report.taken.items():
            self.near.hear(id, taken)

    # The process.

    def _start(self) -> Iterator[None]:
        """Start it and wait until it is loaded; what it calls afterwards."""
        self._loading, self._failure = True, None
        served = self.near.checkpoints() if hasattr(self, "near") else {}
        booted, self._booted = self._booted or BootedProcess(), None
        self._process = booted.process
        watch = Thread(target=self._watch, args=(self._process,), name="timbre-heartbeat")
        watch.daemon = True
        watch.start()
        channel = Channel(booted.take())
        channel.post(ProcessHost.open, self._make, served)
        self._channel, calls = channel, self._received(channel)
        for _ in calls:
            if not self._loading:
                return calls
        channel.close()
        code = self._process.wait()
        raise self._failure or EngineError(
            "The engine's process ended while it started ({code}).", code=code
        )

    def _received(self, channel: Channel) -> Iterator[None]:
        for _ in channel.receive(self):
            self._heard += 1
            yield

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
                self._failure = EngineError(SILENT if mute else TOO_LONG)
                log.critical("The engine's process %d does not answer: killed.", process.pid)
                process.kill()
                break

    def _read(self, calls: Iterator[None]) -> None:
        """Do what the process calls for; start another one if it ends by itself."""
        while True:
            for _ in calls:
                pass
            self._channel.close()
            code = self._process.wait()
            if not self._closed.is_set():
                log.critical("The engine's process has ended (%s).", code)
                if self._on_loss:
                    self._on_loss()
            self._lose(EngineClosed(CLOSED if self._closed.is_set() else LOST))
            if self._closed.is_set():
                return
            self._losses += 1
            try:
                if self._losses > MOST_LOSSES:
                    raise EngineError(GONE)
                calls = self._start()
            except Exception as error:
                log.critical("The engine has stopped.", exc_info=error)
                self.near.end(_reason(error))
                return
            self._lost = None
            self.near.resume(self.checkpoints)
            if self._closed.is_set():  # `close` may have told the process before
                self._channel.post(ProcessHost.leave)

    def _lose(self, error: EngineClosed) -> None:
        """The process is gone: end the open calls."""
        with self._lock:
            self._lost = error
            calls, self._calls = self._calls, {}
        self.near.lose(error)
        for done in calls.values():
            done.set_exception(error)


def _reason(error: Exception) -> Message:
    """Why no process could be started."""
    if isinstance(error, TimbreError):
        return error.message
    return Message("The engine has stopped ({error}). Start it again.", error=error)


class Outbox:
    """An output queue whose reader is in the other process."""

    def __init__(self, id: int, host: ProcessHost) -> None:
        self._id, self._host = id, host
        self.end: End | None = None

    def put(self, item: Chunk | End) -> None:
        if self.end:
            return
        if isinstance(item, End):
            self.end = item
            self._host.forget(self._id)
        self._host.channel.post(EngineProcess.hear, self._id, item, time.monotonic())


class ProcessHost:
    """The life of that process: does what the other side calls for, in one thread.

    It ends when the other side is gone. Signals of a terminal or a supervisor are for the other
    side, which lets the requests end first.
    """

    def __init__(self, channel: Channel) -> None:
        self.channel = channel
        self.engine: Engine | None = None  # once it is loaded
        self._open: dict[int, tuple[Sequence, Outbox]] = {}
        self._left = Event()

    def run(self, first: str = "") -> None:
        """Serve until the other side is gone; meanwhile report to it that this process runs.

        `first`: a module that is imported before anything is heard.
        """
        Thread(target=self._report, name="timbre-report", daemon=True).start()
        if first:
            import_module(first)
            gc.freeze()  # what was imported need not be looked at when the engine is loaded
        for _ in self.channel.receive(self):
            if self._left.is_set():
                break
        self._left.set()
        if self.engine:
            self.engine.close()
        self.channel.close()

    def open(self, make: Make, checkpoints: Mapping[str, Checkpoint]) -> None:
        try:
            self.engine = make(checkpoints)
        except Exception as error:
            self.channel.post(EngineProcess.failed, as_timbre_error(error))
            self.leave()
        else:
            gc.enable()
            gc.collect()
            gc.freeze()  # what is loaded stays; a full collection would hold up a step
            self.channel.post(EngineProcess.opened, self.engine.settings, self.engine.checkpoints())

    def speak(self, sequence: Sequence) -> None:
        if sequence.id in self._open:  # begun again, when this process was started
            return
        outbox = Outbox(sequence.id, self)
        self._open[sequence.id] = sequence, outbox
        try:
            self._running.start(sequence, outbox, lambda ahead: None)  # admitted there
        except TimbreError as error:
            outbox.put(End("error", 0, sequence.seed, error))

    def append(self, id: int, piece: TextPiece) -> None:
        if stream := self._open.get(id):  # the engine's thread may end it meanwhile
            self._running.add_text(stream[0], piece)

    def cancel(self, id: int) -> None:
        if stream := self._open.get(id):
            self._running.cancel(*stream)

    def note_lag(self, seconds: float) -> None:
        self._running.note_lag(seconds)

    def call(self, number: int, method: str, arguments: tuple[Any, ...]) -> None:
        call = (number, method, arguments)
        Thread(target=self._call, args=call, name="timbre-call", daemon=True).start()

    def leave(self) -> None:
        self._left.set()

    def forget(self, id: int) -> None:
        self._open.pop(id, None)

    @property
    def _running(self) -> Engine:
        assert self.engine  # nobody calls before it is opened
        return self.engine

    def _call(self, number: int, method: str, arguments: tuple[Any, ...]) -> None:
        try:
            value = getattr(self._running, method)(*arguments)
        except Exception as error:
            self.channel.post(EngineProcess.answer, number, None, as_timbre_error(error))
        else:
            self.channel.post(EngineProcess.answer, number, value, None)

    def _report(self) -> None:
        """Say what has changed, and each second that this process runs."""
        last, silent = None, 0.0
        while not self._left.is_set():
            report = self._state()
            if report.ended and not self._left.is_set():
                os._exit(ENDED)  # what broke may be this process's alone, like a card's context
            if report != last or silent >= BEAT_SECONDS:
                self.channel.post(EngineProcess.report, report)
                last, silent = report, 0.0
            if self.channel.gone and not self.engine:
                os._exit(1)  # loading, a download included, would go on for nobody
            self._left.wait(REPORT_SECONDS)
            silent += REPORT_SECONDS

    def _state(self) -> Report:
        engine = self.engine
        if not engine:
            return Report()
        taken = {
            id: Taken(
                None if sequence.runs else sequence.position, sequence.estimate, made=sequence.made
            )
            for id, (sequence, _) in tuple(self._open.items())
            if sequence.runs or sequence.position is not None
        }
        return Report(engine.alive, engine.ended, engine.admission, taken)


def main(handle: int, first: str = "") -> None:
    """The life of the process; `handle` is its end of the socket, `first` as in `run`."""
    for each in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(each, signal.SIG_IGN)
    gc.disable()  # while it is loaded: what is imported stays
    ProcessHost(Channel(handle)).run(first)
    os._exit(0)  # a call that still runs, or a step that never returns, does not hold it up
