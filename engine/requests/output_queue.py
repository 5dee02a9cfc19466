"""The queue of a stream's chunks between the engine's thread and the reader.

The engine's thread puts and never waits: a request's frames are bounded, so the queue needs no
limit. One reader takes, from any thread or event loop. Nothing is accepted after the end.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable
from typing import Protocol

from engine.types import Chunk, End


class Output(Protocol):
    """Where the engine's thread puts chunks: a queue of this process, or of another one."""

    end: End | None

    def put(self, item: Chunk | End) -> None: ...


class OutputQueue:
    """Chunks in order, then one end."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._chunks: deque[Chunk] = deque()
        self._wake: Callable[[], object] | None = None
        self._patient = False  # only the end wakes
        self.end: End | None = None

    def __len__(self) -> int:
        """Chunks that were not taken."""
        return len(self._chunks)

    def put(self, item: Chunk | End) -> None:
        with self._lock:
            if self.end:
                return
            if isinstance(item, End):
                self.end = item
            else:
                self._chunks.append(item)
            if self._patient and not self.end:
                return
            wake, self._wake = self._wake, None
        if wake:
            wake()

    def take(self) -> Chunk | None:
        """The next chunk, if there is one."""
        return self._chunks.popleft() if self._chunks else None

    def notify(self, wake: Callable[[], object], at_end: bool = False) -> None:
        """Call `wake` once at the next put, or at once if the queue is not empty.

        `at_end`: chunks do not count. The latest call replaces those before it.
        """
        with self._lock:
            self._patient = at_end
            if not self.end and (at_end or not self._chunks):
                self._wake = wake
                return
        wake()
