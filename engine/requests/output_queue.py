"""Where a stream's chunks wait for its reader.

The engine's thread puts and never waits: frames are bounded, so the queue is not. One reader takes,
from any thread or event loop. The queue takes one end and nothing after it.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable

from engine.types import Chunk, End


class OutputQueue:
    """Chunks in order, then the end."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._chunks: deque[Chunk] = deque()
        self._wake: Callable[[], object] | None = None
        self.end: End | None = None

    def __len__(self) -> int:
        """Chunks that were not taken yet."""
        return len(self._chunks)

    def put(self, item: Chunk | End) -> None:
        with self._lock:
            if self.end:
                return
            if isinstance(item, End):
                self.end = item
            else:
                self._chunks.append(item)
            wake, self._wake = self._wake, None
        if wake:
            wake()

    def take(self) -> Chunk | None:
        """The next chunk, if there is one."""
        return self._chunks.popleft() if self._chunks else None

    def notify(self, wake: Callable[[], object]) -> None:
        """Call `wake` once when something new is put, at once if something is there."""
        with self._lock:
            if not self._chunks and not self.end:
                self._wake = wake
                return
        wake()
