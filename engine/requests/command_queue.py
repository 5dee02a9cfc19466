"""What other threads ask of the engine's thread: calls, made there in order.

`post` never blocks and may be called from a finaliser in the middle of anything, which is
why this is a SimpleQueue and no lock of our own.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from queue import Empty, SimpleQueue
from typing import TypeAlias

Call: TypeAlias = Callable[[], None]


class CommandQueue:
    """Posted by anybody, taken by one thread."""

    def __init__(self) -> None:
        self._calls: SimpleQueue[Call] = SimpleQueue()

    def post(self, call: Call) -> None:
        self._calls.put(call)

    def take(self, wait: bool, timeout: float | None = None) -> Iterator[Call]:
        """Everything posted so far; with `wait` at least one call, unless time runs out.

        What these calls post comes next time: one that asks again lets the loop turn first.
        """
        try:
            first = self._calls.get(wait, timeout)
        except Empty:
            return
        behind = self._calls.qsize()
        yield first
        for _ in range(behind):
            yield self._calls.get_nowait()
