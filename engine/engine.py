"""The engine: one thread that speaks, and a door for everybody else.

Any thread may call anything here. Requests are checked and put into ids in the caller's
thread; what the loop must know goes through the inbox. This module knows no torch: the worker
is handed in.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Mapping
from concurrent.futures import Future, wait
from dataclasses import replace
from functools import partial
from typing import TypeAlias

from engine.config import EngineSettings
from engine.errors import EngineClosed, EngineError, InvalidSetting
from engine.loop import Loop
from engine.messages import Message
from engine.plan import Checkpoint, Worker
from engine.requests.input_processor import InputProcessor
from engine.requests.output_queue import OutputQueue
from engine.requests.registry import RequestRegistry
from engine.requests.sequence import Sequence
from engine.stats import Meter, Stats
from engine.stream import Handles, Postprocess, SpeechStream
from engine.types import Capabilities, Clone, SpeechRequest, Voice, Waveform
from engine.voices.routing import Routed, cloner, restrict, route_voice
from engine.watchdog import Watchdog

CLOSED = Message("The engine is closed. Start it again.")
PATIENCE = 10.0  # seconds for the last step at the end
LIVES = 3  # workers in a row that may get stuck before they make a step
WEDGED = Message("The engine got stuck and is starting anew. Try again in a minute.")
DRAINING = Message("The engine is shutting down and takes no new requests. Try again in a minute.")

log = logging.getLogger("timbre")

# Asked before each request, in its caller's thread; may raise Busy. What it returns takes the
# stream, once the request is in.
Doorman: TypeAlias = Callable[[], Callable[[SpeechStream], object]]


def _let_in() -> Callable[[SpeechStream], object]:
    """Everybody."""
    return lambda stream: None


class Engine:
    """Speaks for many at once. Use it in a `with` block, or close it."""

    def __init__(
        self,
        worker: Worker,
        checkpoints: Mapping[str, Checkpoint],
        settings: EngineSettings | None = None,
        clock: Callable[[], float] = time.monotonic,
        start: bool = True,
        rebuild: Callable[[Mapping[str, Checkpoint]], Worker] | None = None,
    ) -> None:
        """`start` False: nobody turns the loop but the caller, by `loop.turn`.

        `rebuild` makes another worker when a step never comes back; None: the engine closes then.
        """
        self.settings = settings or EngineSettings()
        self._worker = worker
        self._checkpoints = dict(checkpoints)
        self._clock, self._rebuild = clock, rebuild
        self._intake = InputProcessor(self._checkpoints, self.settings, clock)
        self._roster = RequestRegistry()
        self.doorman: Doorman = _let_in
        self.finish: Postprocess | None = None  # a watermark, for one
        self._rebuilt: list[int] = []  # the steps that were made before each time
        self._started = start
        self._watchdog = Watchdog(lambda: self.loop.beats, self._bite, self.settings.step_timeout)
        self._employ(worker)
        if start:
            self._watchdog.start()

    # Speaking.

    def submit(self, request: SpeechRequest) -> SpeechStream:
        """Ask for speech. Returns at once.

        Raises RequestError for what cannot be served, Busy when too many wait, EngineClosed.
        """
        self._roster.check()
        seat = self.doorman()
        taken = self._intake.take(request)
        sequence, mailbox = taken.sequence, OutputQueue()
        self._enter(sequence, mailbox)
        self.loop.inbox.post(partial(self.loop.begin, sequence))
        if taken.text:
            taken.text.connect(taken.text_room, partial(self._add_text, sequence))
        handles = Handles(partial(self._cancel, sequence, mailbox), taken.text)
        stream = SpeechStream(mailbox, sequence, handles, self.finish)
        seat(stream)
        return stream

    def clone(self, audio: Waveform, transcript: str = "", model: str | None = None) -> Clone:
        """Make a voice from a checked recording, in the caller's thread."""
        self._roster.check()
        name = cloner(self._checkpoints, model)
        return replace(self._worker.encode(name, audio, transcript), model=name)

    def resolve(self, voice: Voice, model: str | None = None) -> Routed:
        """The checkpoint that would speak a voice, and a blend as the one voice it is."""
        return route_voice(voice, self._checkpoints, model)

    # What there is.

    @property
    def alive(self) -> bool:
        """It takes requests."""
        return self._roster.is_open

    def capabilities(self) -> Mapping[str, Capabilities]:
        """What each checkpoint can do, by its name."""
        return {name: own.capabilities for name, own in self._checkpoints.items()}

    def load(self, model: str) -> None:
        """Bring a checkpoint's talker to the device, and wait for it."""
        restrict(self._checkpoints, model)
        self._ask(partial(self.loop.talkers.load, model))

    def unload(self, model: str) -> None:
        """Free the memory of a talker nobody speaks with."""
        restrict(self._checkpoints, model)
        self._ask(partial(self.loop.talkers.unload, model))

    def checkpoints(self) -> Mapping[str, Checkpoint]:
        """By name, loaded or not."""
        return self._checkpoints

    def exchange(self, out: str, name: str, checkpoint: Checkpoint) -> None:
        """Put another checkpoint in the place of one that nobody speaks with. Unloaded."""
        if name in self._checkpoints:
            raise InvalidSetting("{name} is here already. Load it in the list.", name=name)
        self.unload(out)
        self._worker.exchange(out, name, checkpoint)
        held = self._checkpoints.items()
        self._checkpoints = {
            name if each == out else each: checkpoint if each == out else own for each, own in held
        }
        self._intake.checkpoints = self._checkpoints

    def stats(self) -> Stats:
        return self.loop.stats(self._worker.memory(), self._roster.refused)

    # The end.

    def drain(self, grace: float) -> bool:
        """Take no new requests, let the others finish for `grace` seconds, then close.

        False when somebody was cut off.
        """
        self._roster.shut(DRAINING)
        finished = self._roster.wait_empty(grace)
        self.close()
        return finished

    def close(self) -> None:
        """Stop now. Whoever is still served is told."""
        self._roster.shut(CLOSED)
        if self._thread.is_alive():
            self.loop.inbox.post(self.loop.stop)
            self._thread.join(PATIENCE)  # a wedged one ends with the process
            self._watchdog.stop()
        elif not self._started:
            self._roster.end_all(CLOSED)
            self._worker.close()

    def __enter__(self) -> Engine:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _employ(self, worker: Worker, meter: Meter | None = None) -> None:
        """Have a worker make the steps, in a thread of its own."""
        self._worker = worker
        self.loop = Loop(worker, self.settings, self._clock, self._roster)
        self.loop.meter = meter or self.loop.meter
        for name in self._checkpoints:
            self.loop.talkers.adopt(name, worker.slots(name))
        self._thread = threading.Thread(target=self._run, name="timbre-engine", daemon=True)
        if self._started:
            self._thread.start()

    def _run(self) -> None:
        refusal, loop, worker = CLOSED, self.loop, self._worker
        try:
            while not loop.stopping:
                loop.turn()
        except Exception as error:
            log.critical("The engine has stopped.", exc_info=error)
            refusal = Message("The engine has stopped ({error}). Start it again.", error=error)
        finally:
            if not loop.abandoned:
                self._watchdog.stop()
                self._roster.end_all(refusal)
            worker.close()

    def _bite(self) -> None:
        """A step never came back. Whoever is here is told, and another worker takes over."""
        old = self.loop
        log.critical("A step has not come back for %g s.", self.settings.step_timeout)
        self._roster.pause(WEDGED)
        old.meter.failed_steps += 1
        old.stopping = old.abandoned = True  # its thread ends if ever it wakes up
        try:
            self._take_over(old)
        except Exception as error:
            log.critical("The engine has stopped.", exc_info=error)
            self._watchdog.stop()
            self._roster.end_all(
                Message("The engine got stuck ({error}). Start it again.", error=error)
            )

    def _take_over(self, old: Loop) -> None:
        """Raises when there is nobody to take over, or nobody lasts."""
        self._rebuilt = [steps for steps in self._rebuilt if steps == old.meter.steps]
        self._rebuilt.append(old.meter.steps)
        if not self._rebuild or not self._roster.lasting or len(self._rebuilt) > LIVES:
            raise EngineError("a step never came back")
        wanted = old.talkers.loaded
        self._employ(self._rebuild(self._checkpoints), old.meter)
        for name in wanted:
            self.loop.inbox.post(partial(self.loop.talkers.use, name))
        self._roster.resume()

    def _enter(self, sequence: Sequence, mailbox: OutputQueue) -> None:
        """Past the door, or Busy. Files may fill a part of the queue only."""
        share = 1.0 if sequence.live else self.settings.file_share
        queue = int(self.settings.max_waiting * share)
        scheduler = self.loop.scheduler
        service = scheduler.waiting.seconds(queue, scheduler.places)
        self._roster.enter(sequence, mailbox, scheduler.slots.total, queue, service)

    def _cancel(self, sequence: Sequence, mailbox: OutputQueue) -> None:
        """Called by finalisers too: nothing here may take a lock."""
        if not mailbox.end:
            self.loop.inbox.post(partial(self.loop.cancel, sequence))

    def _add_text(self, sequence: Sequence, ids: tuple[int, ...], closed: bool) -> None:
        self.loop.inbox.post(partial(self.loop.add_text, sequence, ids, closed))

    def _ask(self, call: Callable[[Future[None]], None]) -> None:
        """Have the loop do something, and wait; never for an engine that has stopped."""
        done: Future[None] = Future()
        loop = self.loop
        loop.inbox.post(partial(call, done))
        while not wait([done], timeout=0.25).done:
            self._roster.check()
            if loop.abandoned:
                raise EngineClosed(WEDGED)
        done.result()
