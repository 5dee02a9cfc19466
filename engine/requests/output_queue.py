"""Where a stream's chunks wait for their listener.

The engine's thread puts and never waits: frames are bounded, so the box is not. One listener
takes, from any thread or event loop. The box takes one end and nothing after it.
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

    @property
    def waiting(self) -> int:
        """Chunks that have not been taken."""
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
        """The next chunk, if it is here."""
        return self._chunks.popleft() if self._chunks else None

    def listen(self, wake: Callable[[], object]) -> None:
        """Call `wake` once as soon as there is something new, at once if there is already."""
        with self._lock:
            if not self._chunks and not self.end:
                self._wake = wake
                return
        wake()
