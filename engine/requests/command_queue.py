"""Commands from other threads to the engine's thread, which runs them in order.

`post` never blocks and may be called from a finaliser at any point, so this is a SimpleQueue
without further locks.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from queue import Empty, SimpleQueue
from typing import TypeAlias

Command: TypeAlias = Callable[[], None]


class CommandQueue:
    """Any thread posts, one thread drains."""

    def __init__(self) -> None:
        self._commands: SimpleQueue[Command] = SimpleQueue()

    def post(self, command: Command) -> None:
        self._commands.put(command)

    def drain(self, wait: bool, timeout: float | None = None) -> Iterator[Command]:
        """All commands posted so far; with `wait` at least one, unless it times out.

        Commands posted by these are returned by the next call, so a command may repost itself.
        """
        try:
            first = self._commands.get(wait, timeout)
        except Empty:
            return
        remaining = self._commands.qsize()
        yield first
        for _ in range(remaining):
            yield self._commands.get_nowait()
