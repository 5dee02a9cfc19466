"""What other threads ask of the engine's thread: calls, made there in order.

`post` never blocks and may be called from a finaliser in the middle of anything, which is
why this is a SimpleQueue and no lock of our own.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from queue import Empty, SimpleQueue
from typing import TypeAlias

Call: TypeAlias = Callable[[], None]


class Inbox:
    """Posted by anybody, taken by one thread."""

    def __init__(self) -> None:
        self._calls: SimpleQueue[Call] = SimpleQueue()

    def post(self, call: Call) -> None:
        self._calls.put(call)

    def take(self, wait: bool, timeout: float | None = None) -> Iterator[Call]:
        """Everything posted so far; with `wait` at least one call, unless time runs out."""
        try:
            yield self._calls.get(wait, timeout)
            while True:
                yield self._calls.get_nowait()
        except Empty:
            return
