"""Loads and unloads talkers while others run.

One load or unload at a time runs in a thread of its own and reports to the engine's thread through
the command queue. If the device has too little memory, the least recently used idle talker is
unloaded. While none is idle, requests later than the oldest one for the new talker wait, so that a
talker becomes idle. Everything but `_load` and `_unload` runs on the engine's thread.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Callable
from concurrent.futures import Future
from functools import partial

from engine.errors import EngineError, OutOfMemory, TimbreError
from engine.plan import Worker
from engine.requests.command_queue import Command, CommandQueue
from engine.scheduler.scheduler import Delivery, Scheduler


class ModelManager:
    """Loaded talkers, and the queue of those to be loaded."""

    def __init__(
        self,
        worker: Worker,
        scheduler: Scheduler,
        commands: CommandQueue,
        deliver: Callable[[list[Delivery]], None],
    ) -> None:
        self._worker = worker
        self._scheduler = scheduler
        self._commands = commands
        self._deliver = deliver
        self._loaded: list[str] = []  # least recently used first
        self._queue: dict[str, list[Future[None]]] = {}  # to be loaded, in this order
        self._busy = False  # the worker loads or unloads
        self._afterwards: list[Command] = []
        self._no_room: Exception | None = None  # why the first in the queue could not be loaded

    @property
    def loaded(self) -> tuple[str, ...]:
        return tuple(self._loaded)

    def register(self, name: str, slots: range) -> None:
        """Add a talker that the worker has loaded already."""
        if slots:
            self._add(name, slots)

    def request(self, name: str) -> None:
        """A request needs this talker: load it unless it is loaded or queued."""
        if name in self._loaded:
            self._loaded.remove(name)
            self._loaded.append(name)
        else:
            self._queue.setdefault(name, [])

    def load(self, name: str, done: Future[None]) -> None:
        """Load a talker and resolve the future."""
        self.request(name)
        if name in self._loaded:
            done.set_result(None)
        else:
            self._queue[name].append(done)

    def unload(self, name: str, done: Future[None]) -> None:
        """Unload a talker, unless a request uses it or waits for it."""
        if any(sequence.talker == name for sequence in self._scheduler.active.values()):
            done.set_exception(
                EngineError("{name} is speaking. Try again when it is idle.", name=name)
            )
        elif self._busy:
            self._afterwards.append(partial(self.unload, name, done))
        elif not self._scheduler.slots.is_idle(name):
            self._commands.post(partial(self.unload, name, done))  # after the next step
        elif name in self._loaded:
            self._forget(name)
            self._start(partial(self._unload, name, done))
        else:
            done.set_result(None)

    def load_next(self) -> None:
        """Start the first load of the queue, if possible."""
        if self._busy or not self._queue:
            return
        name = next(iter(self._queue))
        self._scheduler.latest_turn = self._oldest_turn(name) if self._no_room else math.inf
        out = self._evict() if self._no_room else None
        if self._no_room is None or out:
            self._no_room, self._scheduler.latest_turn = None, math.inf
            self._start(partial(self._load, name, out))
        elif self._oldest_turn(name) == math.inf or not self._loaded:
            self._give_up(name, self._no_room)

    def _start(self, work: Callable[[], None]) -> None:
        """No step waits for it."""
        self._busy = True
        threading.Thread(target=work, name="loader", daemon=True).start()

    def _load(self, name: str, out: str | None) -> None:
        """Runs in a thread of its own; `out`: makes room."""
        try:
            if out:
                self._worker.unload(out)
            slots = self._worker.load(name)
        except Exception as error:
            self._commands.post(partial(self._load_failed, name, error))
        else:
            self._commands.post(partial(self._load_done, name, slots))

    def _unload(self, name: str, done: Future[None]) -> None:
        """Runs in a thread of its own."""
        try:
            self._worker.unload(name)
        except Exception as error:
            self._commands.post(partial(self._unload_ended, done, error))
        else:
            self._commands.post(partial(self._unload_ended, done, None))

    def _load_done(self, name: str, slots: range) -> None:
        self._end_work()
        self._add(name, slots)
        for done in self._queue.pop(name, []):
            done.set_result(None)

    def _unload_ended(self, done: Future[None], error: Exception | None) -> None:
        self._end_work()
        if error:
            done.set_exception(error)
        else:
            done.set_result(None)

    def _add(self, name: str, slots: range) -> None:
        self._scheduler.slots.add(name, slots)
        self._loaded.append(name)
        if timings := self._worker.timings(name):
            self._scheduler.step_cost.decode.anchor(timings)

    def _end_work(self) -> None:
        self._busy = False
        while self._afterwards:
            self._commands.post(self._afterwards.pop(0))

    def _load_failed(self, name: str, error: Exception) -> None:
        self._end_work()
        if isinstance(error, OutOfMemory):
            # A new one: the traceback of this one holds frames, and they the loaded weights.
            self._no_room = OutOfMemory(error.message)
        else:
            self._give_up(name, error)

    def _give_up(self, name: str, error: Exception) -> None:
        self._no_room, self._scheduler.latest_turn = None, math.inf
        if not isinstance(error, TimbreError):
            error = EngineError(
                "{name} could not be loaded ({error}). Look at the log.", name=name, error=error
            )
        self._deliver(self._scheduler.fail_waiting(name, error))
        for done in self._queue.pop(name, []):
            done.set_exception(error)

    def _evict(self) -> str | None:
        """The least recently used idle talker, which is to be unloaded; it is queued again if a
        request waits for it."""
        idle = next((name for name in self._loaded if self._is_idle(name)), None)
        if idle is not None:
            self._forget(idle)
            if self._oldest_turn(idle) < math.inf:
                self.request(idle)
        return idle

    def _is_idle(self, name: str) -> bool:
        """Whether no request uses the talker or may start on it before `latest_turn`."""
        active = self._scheduler.active.values()
        running = any(sequence.talker == name and sequence.attempt for sequence in active)
        if running or not self._scheduler.slots.is_idle(name):
            return False
        return self._oldest_turn(name, ready=True) >= self._scheduler.latest_turn

    def _oldest_turn(self, name: str, ready: bool = False) -> float:
        """The earliest turn of the requests that wait for a talker; `ready`: of those with text."""
        waiting = (each for each in self._scheduler.waiting if each.talker == name)
        turns = (each.turn for each in waiting if not (ready and each.needs_text))
        return min(turns, default=math.inf)

    def _forget(self, name: str) -> None:
        self._loaded.remove(name)
        self._scheduler.slots.remove(name)
