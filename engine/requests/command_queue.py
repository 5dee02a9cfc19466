"""Commands from other threads to the engine's thread, run there in order.

`post` never blocks and may be called from a finaliser at any point, which is why this is a
SimpleQueue without a lock of our own.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from queue import Empty, SimpleQueue
from typing import TypeAlias

Command: TypeAlias = Callable[[], None]


class CommandQueue:
    """Posted to by any thread, drained by one."""

    def __init__(self) -> None:
        self._commands: SimpleQueue[Command] = SimpleQueue()

    def post(self, command: Command) -> None:
        self._commands.put(command)

    def drain(self, wait: bool, timeout: float | None = None) -> Iterator[Command]:
        """Everything posted so far; with `wait` at least one command, unless it times out.

        What these commands post comes with the next call, so that a command may repost itself.
        """
        try:
            first = self._commands.get(wait, timeout)
        except Empty:
            return
        remaining = self._commands.qsize()
        yield first
        for _ in range(remaining):
            yield self._commands.get_nowait()
