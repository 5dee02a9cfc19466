"""The open requests of an engine, and whether new ones are admitted.

Every registered request gets exactly one end, even if the engine's thread dies: an engine that
stops ends all of them here and admits none afterwards. Thread-safe.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import TypeAlias

from engine.errors import Busy, EngineClosed
from engine.requests.output_queue import Output
from engine.requests.sequence import Sequence
from engine.types import Chunk, End

Check: TypeAlias = Callable[[list[Sequence]], None]


class RequestRegistry:
    """Output queues by request id."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._open: dict[int, tuple[Sequence, Output]] = {}
        self._closed: str | None = None  # the reason; permanent
        self._paused: str | None = None  # the reason; until `resume`
        self.refused = 0
        self.is_ended = False  # for good: nothing is served any more

    @property
    def is_open(self) -> bool:
        return not (self._closed or self._paused)

    @property
    def is_closed(self) -> bool:
        return self._closed is not None

    def register(self, sequence: Sequence, output: Output, check: Check) -> None:
        """Raises EngineClosed when closed, and what `check` raises for the open requests: Busy."""
        with self._changed:
            self.check_open()
            try:
                check([each for each, _ in self._open.values()])
            except Busy:
                self.refused += 1
                raise
            self._open[sequence.id] = (sequence, output)

    def check_open(self) -> None:
        """Raises EngineClosed while no request is admitted."""
        reason = self._closed or self._paused
        if reason:
            raise EngineClosed(reason)

    def sequence(self, id: int) -> Sequence | None:
        """The request, while it is open."""
        sequence, _ = self._open.get(id, (None, None))
        return sequence

    def sequences(self) -> tuple[Sequence, ...]:
        """The open requests."""
        return tuple(sequence for sequence, _ in tuple(self._open.values()))

    def holds(self, sequence: Sequence) -> bool:
        """Whether it was registered and has not ended."""
        return sequence.id in self._open

    def deliver(self, sequence: Sequence, item: Chunk | End) -> None:
        """Put into the request's output queue; an end also removes the request."""
        entry = self._open.get(sequence.id)
        if entry is None:
            return
        if isinstance(item, End):
            with self._changed:
                self._open.pop(sequence.id, None)
                self._changed.notify_all()
        entry[1].put(item)

    def close(self, reason: str) -> None:
        """Admit no new request; open ones continue. The first reason is kept."""
        with self._changed:
            self._closed = self._closed or reason

    @property
    def is_paused(self) -> bool:
        return self._paused is not None

    def hold(self, reason: str) -> None:
        """Admit no new request until `resume`; open ones stay."""
        with self._changed:
            self._paused = reason

    def pause(self, reason: str) -> None:
        """As `hold`, and end the open ones."""
        self.hold(reason)
        self._end_open(reason)

    def resume(self) -> None:
        with self._changed:
            self._paused = None

    def wait_empty(self, seconds: float) -> bool:
        """Whether all requests have ended within this time."""
        with self._changed:
            return self._changed.wait_for(lambda: not self._open, seconds)

    def end_all(self, reason: str) -> None:
        """Close, and end the open requests with the same reason."""
        self.close(reason)
        self.is_ended = True
        self._end_open(reason)

    def _end_open(self, reason: str) -> None:
        for sequence in self.sequences():
            error = EngineClosed(reason)
            self.deliver(sequence, End("error", sequence.delivered, sequence.seed, error))
