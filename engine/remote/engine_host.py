"""The process of the engine: answers a `ProcessEngine` elsewhere on an engine of its own.

It ends when the other side is gone. Signals of a terminal or a supervisor are for the other side,
which lets the requests end first. Knows no checkpoint and no device: how the engine is made is
told by the first message.
"""

from __future__ import annotations

import gc
import os
import signal
import time
from collections.abc import Callable, Iterator
from functools import partial
from threading import Event, Thread
from typing import Any

from engine.engine import Engine
from engine.errors import EngineError, TimbreError
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
from engine.requests.sequence import Sequence
from engine.types import Chunk, End

BEAT_SECONDS = 1.0  # of silence, at most
REPORT_SECONDS = 0.25  # between two looks at what the other side should know


class Outbox:
    """An output queue whose reader is in the other process."""

    def __init__(self, id: int, host: EngineHost) -> None:
        self._id, self._host = id, host
        self.end: End | None = None

    def put(self, item: Chunk | End) -> None:
        if self.end:
            return
        if isinstance(item, End):
            self.end = item
            self._host.forget(self._id)
        self._host.channel.post(Deliver(self._id, item, time.monotonic()))


class EngineHost:
    """Runs what the other side asks for. Messages are read by one thread."""

    engine: Engine  # once it is loaded

    def __init__(self, channel: Channel) -> None:
        self.channel = channel
        self._open: dict[int, tuple[Sequence, Outbox]] = {}
        self._left = Event()

    def load(self, make: Callable[[], Engine]) -> None:
        """Open the engine. The other side hears meanwhile that this process runs."""
        Thread(target=self._report, name="timbre-report", daemon=True).start()
        self.engine = make()
        gc.collect()
        gc.freeze()  # what is loaded stays; a full collection would hold up a step
        self.channel.post(Ready(self.engine.settings, self.engine.checkpoints()))

    def serve(self, messages: Iterator[Any]) -> None:
        """Until the other side is gone."""
        for message in messages:
            if isinstance(message, Close):
                break
            self._answer(message)
        self._left.set()

    def forget(self, id: int) -> None:
        self._open.pop(id, None)

    def _answer(self, message: Begin | AddText | Cancel | Lag | Call) -> None:
        if isinstance(message, Begin):
            self._begin(message.sequence)
        elif isinstance(message, Call):
            Thread(target=self._call, args=(message,), name="timbre-call", daemon=True).start()
        elif isinstance(message, Lag):
            self.engine.note_lag(message.seconds)
        elif message.id in self._open:
            sequence, outbox = self._open[message.id]
            if isinstance(message, Cancel):
                self.engine.cancel(sequence, outbox)
            else:
                self.engine.add_text(sequence, message.piece)

    def _begin(self, sequence: Sequence) -> None:
        if sequence.id in self._open:  # begun again, when this process was started
            return
        outbox = Outbox(sequence.id, self)
        self._open[sequence.id] = sequence, outbox
        try:
            self.engine.start(sequence, outbox, lambda ahead: None)  # admitted there
        except TimbreError as error:
            outbox.put(End("error", 0, sequence.seed, error))

    def _call(self, call: Call) -> None:
        try:
            value = getattr(self.engine, call.method)(*call.arguments)
        except Exception as error:
            self.channel.post(Reply(call.number, None, _as_timbre_error(error)))
        else:
            self.channel.post(Reply(call.number, value))

    def _report(self) -> None:
        """Say what has changed, and each second that this process runs."""
        last, silent = None, 0.0
        while not self._left.is_set():
            report = self._state()
            if report != last or silent >= BEAT_SECONDS:
                self.channel.post(report)
                last, silent = report, 0.0
            if self.channel.gone and not hasattr(self, "engine"):
                os._exit(1)  # loading, a download included, would go on for nobody
            self._left.wait(REPORT_SECONDS)
            silent += REPORT_SECONDS

    def _state(self) -> Report:
        if not hasattr(self, "engine"):
            return Report()
        requests = {
            id: (None if sequence.runs else sequence.position, sequence.estimate)
            for id, (sequence, _) in tuple(self._open.items())
            if sequence.runs or sequence.position is not None
        }
        return Report(self.engine.alive, self.engine.ended, self.engine.admission, requests)


def _as_timbre_error(error: Exception) -> TimbreError:
    """The error as the other side can read it."""
    if isinstance(error, TimbreError):
        return error
    return EngineError("{kind}: {error}", kind=type(error).__name__, error=str(error))


def main(handle: int) -> None:
    """The life of the process; `handle` is its end of the socket."""
    for each in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(each, signal.SIG_IGN)
    channel = Channel(handle)
    messages = channel.receive()
    make, checkpoints = next(messages)
    host = EngineHost(channel)
    try:
        host.load(partial(make, checkpoints))
    except Exception as error:
        channel.post(Failed(_as_timbre_error(error)))
    else:
        with host.engine:
            host.serve(messages)
    channel.close()
    os._exit(0)  # a call that still runs, or a step that never returns, does not hold it up
