"""Notices a step that never comes back.

It counts its own ticks, not the clock's seconds: neither a clock that jumps nor a machine that
slept looks like a wedged step. Knows no steps and no engine, only what to look at and whom to
call.
"""

from __future__ import annotations

import threading
from collections.abc import Callable

TICKS = 8  # looks at the same step, before it counts as wedged


class Watchdog:
    """Calls `bite` when `beats` stands still at an odd number for so many seconds."""

    def __init__(self, beats: Callable[[], int], bite: Callable[[], None], seconds: float) -> None:
        self._beats, self._bite = beats, bite
        self._pause = seconds / TICKS
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._watch, name="timbre-watchdog", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        self._over.set()

    def _watch(self) -> None:
        last, still = self._beats(), 0
        while not self._over.wait(self._pause):
            now = self._beats()
            still = still + 1 if now == last and now % 2 else 0
            last = now
            if still >= TICKS:
                still = 0
                self._bite()
