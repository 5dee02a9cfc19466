"""Loading and unloading talkers while others speak.

One load at a time runs in a thread of its own and reports to the engine's thread through the
inbox. When the device has no room, an idle talker goes, the least recently used first. While
none is idle, requests younger than the oldest one for the new talker wait, so that it gets
its turn. Everything here but `_load` runs on the engine's thread.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Callable
from concurrent.futures import Future
from functools import partial

from engine.errors import EngineError, OutOfMemory, TimbreError
from engine.plan import Worker
from engine.requests.command_queue import CommandQueue
from engine.scheduler.scheduler import Delivery, Scheduler


class ModelManager:
    """Which talkers are on the device, and which are on their way."""

    def __init__(
        self,
        worker: Worker,
        scheduler: Scheduler,
        inbox: CommandQueue,
        deliver: Callable[[list[Delivery]], None],
    ) -> None:
        self._worker = worker
        self._scheduler = scheduler
        self._inbox = inbox
        self._deliver = deliver
        self._used: list[str] = []  # on the device, least recently used first
        self._line: dict[str, list[Future[None]]] = {}  # to be loaded, in this order
        self._loading = False
        self._no_room: Exception | None = None  # what the first in line was told

    @property
    def loaded(self) -> tuple[str, ...]:
        return tuple(self._used)

    def adopt(self, name: str, slots: range) -> None:
        """The worker has loaded it before."""
        if slots:
            self._put(name, slots)

    def use(self, name: str) -> None:
        """Somebody wants it: load it unless it is there or on its way."""
        if name in self._used:
            self._used.remove(name)
            self._used.append(name)
        else:
            self._line.setdefault(name, [])

    def load(self, name: str, done: Future[None]) -> None:
        """Load it and resolve the future."""
        self.use(name)
        if name in self._used:
            done.set_result(None)
        else:
            self._line[name].append(done)

    def unload(self, name: str, done: Future[None]) -> None:
        """Drop it unless somebody speaks or waits to speak with it."""
        if any(sequence.talker == name for sequence in self._scheduler.active.values()):
            done.set_exception(
                EngineError("{name} is speaking. Try again when it is idle.", name=name)
            )
        elif not self._scheduler.slots.settled(name):
            self._inbox.post(partial(self.unload, name, done))  # after the next step
        else:
            if name in self._used:
                self._drop(name)
            done.set_result(None)

    def advance(self) -> None:
        """Go on with the first in line, if it can."""
        if self._loading or not self._line:
            return
        name = next(iter(self._line))
        self._scheduler.horizon = self._oldest(name) if self._no_room else math.inf
        if self._no_room is None or self._evict():
            self._loading, self._no_room = True, None
            self._scheduler.horizon = math.inf
            threading.Thread(target=self._load, args=(name,), name="loader", daemon=True).start()
        elif self._oldest(name) == math.inf or not self._used:
            self._give_up(name, self._no_room)

    def _load(self, name: str) -> None:
        """In a thread of its own."""
        try:
            slots = self._worker.load(name)
        except Exception as error:
            self._inbox.post(partial(self._failed, name, error))
        else:
            self._inbox.post(partial(self._loaded, name, slots))

    def _loaded(self, name: str, slots: range) -> None:
        self._loading = False
        self._put(name, slots)
        for done in self._line.pop(name, []):
            done.set_result(None)

    def _put(self, name: str, slots: range) -> None:
        self._scheduler.slots.add(name, slots)
        self._used.append(name)
        if timings := self._worker.timings(name):
            self._scheduler.pace.frames.anchor(timings)

    def _failed(self, name: str, error: Exception) -> None:
        self._loading = False
        if isinstance(error, OutOfMemory):
            self._no_room = error
        else:
            self._give_up(name, error)

    def _give_up(self, name: str, error: Exception) -> None:
        self._no_room, self._scheduler.horizon = None, math.inf
        if not isinstance(error, TimbreError):
            error = EngineError(
                "{name} could not be loaded ({error}). Look at the log.", name=name, error=error
            )
        self._deliver(self._scheduler.fail_waiting(name, error))
        for done in self._line.pop(name, []):
            done.set_exception(error)

    def _evict(self) -> bool:
        """Unload the least recently used idle talker; who still waits for it stands in line."""
        idle = next((name for name in self._used if self._idle(name)), None)
        if idle is None:
            return False
        waited_for = self._oldest(idle) < math.inf
        self._drop(idle)
        if waited_for:
            self.use(idle)
        return True

    def _idle(self, name: str) -> bool:
        """Nobody speaks with it, or waits who may still start."""
        active = self._scheduler.active.values()
        speaking = any(sequence.talker == name and sequence.run for sequence in active)
        settled = not speaking and self._scheduler.slots.settled(name)
        return settled and self._oldest(name, ready=True) >= self._scheduler.horizon

    def _oldest(self, name: str, ready: bool = False) -> float:
        """The first turn of those who wait for it; `ready`: of those who have text to begin."""
        waiting = (each for each in self._scheduler.waiting if each.talker == name)
        turns = (each.turn for each in waiting if not (ready and each.hungry))
        return min(turns, default=math.inf)

    def _drop(self, name: str) -> None:
        self._used.remove(name)
        self._scheduler.slots.remove(name)
        self._worker.unload(name)
