"""The open requests of an engine, and the door in front of them.

Whoever is on the roster gets exactly one end, whatever becomes of the engine's thread: an
engine that stops ends everybody here, and lets nobody in afterwards. Thread-safe.
"""

from __future__ import annotations

import threading

from engine.errors import Busy, EngineClosed
from engine.requests.output_queue import OutputQueue
from engine.requests.sequence import Sequence
from engine.types import Chunk, End


class RequestRegistry:
    """Mailboxes by the number of their request."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._open: dict[int, tuple[Sequence, OutputQueue]] = {}
        self._refusal: str | None = None  # for good
        self._pause: str | None = None  # for now
        self.refused = 0

    @property
    def is_open(self) -> bool:
        return not (self._refusal or self._pause)

    @property
    def lasting(self) -> bool:
        """It is not shut for good."""
        return self._refusal is None

    def enter(
        self, sequence: Sequence, mailbox: OutputQueue, slots: int, queue: int, service: float
    ) -> None:
        """Raises Busy when `queue` requests wait beyond the slots, EngineClosed after the end.

        `service`: seconds until a slot is free on average.
        """
        with self._changed:
            self.check()
            waiting = len(self._open) - slots
            if waiting >= queue:
                self.refused += 1
                raise Busy(max(0, waiting), service * (1 + max(0, waiting - queue)))
            self._open[sequence.id] = (sequence, mailbox)

    def check(self) -> None:
        """Raises EngineClosed while the door is shut."""
        refusal = self._refusal or self._pause
        if refusal:
            raise EngineClosed(refusal)

    def put(self, sequence: Sequence, item: Chunk | End) -> None:
        """To the listener; an end also takes the request off the roster."""
        entry = self._open.get(sequence.id)
        if entry is None:
            return
        if isinstance(item, End):
            with self._changed:
                self._open.pop(sequence.id, None)
                self._changed.notify_all()
        entry[1].put(item)

    def shut(self, refusal: str) -> None:
        """Let nobody in any more; who is here stays. The first reason is kept."""
        with self._changed:
            self._refusal = self._refusal or refusal

    def pause(self, refusal: str) -> None:
        """Let nobody in until `resume`; everybody who is here is told."""
        with self._changed:
            self._pause = refusal
        self._end_open(refusal)

    def resume(self) -> None:
        with self._changed:
            self._pause = None

    def wait_empty(self, seconds: float) -> bool:
        """Everybody has left, or time is up."""
        with self._changed:
            return self._changed.wait_for(lambda: not self._open, seconds)

    def end_all(self, refusal: str) -> None:
        """Shut the door and tell everybody the same."""
        self.shut(refusal)
        self._end_open(refusal)

    def _end_open(self, refusal: str) -> None:
        for sequence, _ in tuple(self._open.values()):
            error = EngineClosed(refusal)
            self.put(sequence, End("error", sequence.delivered, sequence.seed, error))
