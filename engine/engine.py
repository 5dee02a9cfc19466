"""The engine in this process: one thread that runs steps, and methods for every other thread.

Requests are checked and turned into ids in the caller's thread; the loop is reached through its
command queue. Knows no torch: the worker is passed in.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Mapping
from concurrent.futures import Future, wait
from dataclasses import replace
from functools import partial

from engine.config import EngineSettings
from engine.errors import EngineClosed, EngineError
from engine.loop import Loop
from engine.messages import Message
from engine.plan import Checkpoint, Worker
from engine.requests.output_queue import Output
from engine.requests.registry import Check
from engine.requests.sequence import Sequence, TextPiece
from engine.scheduler.admission import Admission
from engine.speech_engine import CLOSED, SpeechEngine
from engine.stats import Counters, Stats
from engine.types import Clone, Waveform
from engine.voices.routing import cloner, restrict
from engine.watchdog import Watchdog

STUCK = Message("The engine got stuck and is starting anew. Try again in a minute.")
JOIN_SECONDS = 10.0  # for the last step when the engine closes
MAX_REPLACEMENTS = 3  # workers in a row that got stuck before they completed a step

log = logging.getLogger("timbre")


class Engine(SpeechEngine):
    """Serves many requests at the same time. Use it in a `with` block, or close it."""

    def __init__(
        self,
        worker: Worker,
        checkpoints: Mapping[str, Checkpoint],
        settings: EngineSettings | None = None,
        clock: Callable[[], float] = time.monotonic,
        start: bool = True,
        rebuild: Callable[[Mapping[str, Checkpoint]], Worker] | None = None,
    ) -> None:
        """`start` False: no thread is started, the caller calls `loop.run_once`.

        `rebuild` makes a new worker after a step that never returns; None: the engine closes.
        """
        super().__init__(checkpoints, settings or EngineSettings(), clock)
        self._worker, self._rebuild = worker, rebuild
        self._replaced_at: list[int] = []  # completed steps, at each replacement of the worker
        self._started = start
        self._model_changes = threading.Lock()  # one at a time: slots go by a model's place
        self._watchdog = Watchdog(
            lambda: self.loop.ticks, self._on_stuck, self.settings.step_timeout
        )
        self._start_worker(worker)
        if start:
            self._watchdog.start()

    # Requests.

    @property
    def admission(self) -> Admission:
        return self.loop.scheduler.admission

    def start(self, sequence: Sequence, output: Output, check: Check) -> None:
        self._registry.register(sequence, output, check)
        self.loop.commands.post(partial(self.loop.begin, sequence))

    def add_text(self, sequence: Sequence, piece: TextPiece) -> None:
        self.loop.commands.post(partial(self.loop.add_text, sequence, piece))

    def note_lag(self, seconds: float) -> None:
        self.loop.commands.post(partial(self.loop.note_lag, seconds))

    def cancel(self, sequence: Sequence, output: Output) -> None:
        if not output.end:
            self.loop.commands.post(partial(self.loop.cancel, sequence))

    def clone(self, audio: Waveform, transcript: str = "", model: str | None = None) -> Clone:
        self._registry.check_open()
        name = cloner(self._checkpoints, model)
        return replace(self._worker.encode(name, audio, transcript), model=name)

    # Models.

    def load(self, model: str) -> None:
        restrict(self._checkpoints, model)
        self._call(partial(self.loop.models.load, model))

    def unload(self, model: str) -> None:
        restrict(self._checkpoints, model)
        self._call(partial(self.loop.models.unload, model))

    def exchange(self, out: str, name: str, checkpoint: Checkpoint) -> None:
        with self._model_changes:
            self._check_new(name)
            self.unload(out)
            self._worker.exchange(out, name, checkpoint)
            self._replace_checkpoints(self._exchanged(out, name, checkpoint))

    def add(self, name: str, checkpoint: Checkpoint) -> None:
        with self._model_changes:
            self._check_new(name)
            self._worker.add(name, checkpoint)
            try:
                self._call(partial(self.loop.models.load, name))
            except Exception:
                self._worker.remove(name)
                raise
            self._replace_checkpoints({**self._checkpoints, name: checkpoint})

    def remove(self, model: str) -> None:
        with self._model_changes:
            before = self._checkpoints
            self._replace_checkpoints(self._without(model))  # first: no new request may want it
            try:
                self._call(partial(self.loop.models.unload, model))
                self._worker.remove(model)
            except Exception:
                self._replace_checkpoints(before)
                raise

    def stats(self) -> Stats:
        return self.loop.stats(self._worker.memory(), self._registry.refused)

    # The end.

    def close(self) -> None:
        self._registry.close(CLOSED)
        if self._started:
            self.loop.commands.post(self.loop.stop)
            self._thread.join(JOIN_SECONDS)  # a stuck thread ends with the process
            self._watchdog.stop()
        else:
            self._worker.close()
        self._registry.end_all(CLOSED)

    # The worker and its thread.

    def _start_worker(self, worker: Worker, counters: Counters | None = None) -> None:
        """Start a loop and its thread on a worker."""
        self._worker = worker
        self.loop = Loop(worker, self.settings, self._clock, self._registry)
        self.loop.counters = counters or self.loop.counters
        for name in self._checkpoints:
            self.loop.models.register(name, worker.slots(name))
        self._thread = threading.Thread(target=self._run, name="timbre-engine", daemon=True)
        if self._started:
            self._thread.start()

    def _run(self) -> None:
        reason, loop, worker = CLOSED, self.loop, self._worker
        try:
            while not loop.stopping:
                loop.run_once()
        except Exception as error:
            log.critical("The engine has stopped.", exc_info=error)
            reason = Message("The engine has stopped ({error}). Start it again.", error=error)
        finally:
            if not loop.abandoned:
                self._watchdog.stop()
                self._registry.end_all(reason)
            worker.close()

    def _on_stuck(self) -> None:
        """A step never returned: end the open requests and replace the worker."""
        stuck = self.loop
        log.critical("A step has not returned for %g s.", self.settings.step_timeout)
        self._registry.pause(STUCK)
        stuck.counters.failed_steps += 1
        stuck.stopping = stuck.abandoned = True  # its thread ends if the step ever returns
        try:
            self._replace_worker(stuck)
        except Exception as error:
            log.critical("The engine has stopped.", exc_info=error)
            self._watchdog.stop()
            self._registry.end_all(
                Message("The engine got stuck ({error}). Start it again.", error=error)
            )

    def _replace_worker(self, stuck: Loop) -> None:
        """Raises if there is no replacement, or if replacements got stuck as well."""
        steps = stuck.counters.steps
        self._replaced_at = [each for each in self._replaced_at if each == steps]
        self._replaced_at.append(steps)
        exhausted = len(self._replaced_at) > MAX_REPLACEMENTS
        if not self._rebuild or self._registry.is_closed or exhausted:
            raise EngineError("a step never returned")
        loaded = stuck.models.loaded
        self._start_worker(self._rebuild(self._checkpoints), stuck.counters)
        for name in loaded:
            self.loop.commands.post(partial(self.loop.models.request, name))
        if self._registry.is_closed:  # meanwhile
            self.loop.commands.post(self.loop.stop)
        self._registry.resume()

    # Calls into the loop.

    def _call(self, command: Callable[[Future[None]], None]) -> None:
        """Run a command in the loop and wait for it, unless the engine stops first."""
        done: Future[None] = Future()
        loop = self.loop
        loop.commands.post(partial(command, done))
        while not wait([done], timeout=0.25).done:
            self._registry.check_open()
            if loop.abandoned:
                raise EngineClosed(STUCK)
        done.result()
