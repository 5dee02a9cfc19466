"""Detects a step that never returns.

It counts its own polls rather than clock time, so a clock that jumps or a machine that slept does
not look like a stuck step. It knows only a counter and a callback.
"""

from __future__ import annotations

import threading
from collections.abc import Callable

LOOKS = 8  # polls at the same value before the step counts as stuck


class Watchdog:
    """Calls `on_stuck` when `ticks` stays at the same odd number for `seconds`."""

    def __init__(
        self, ticks: Callable[[], int], on_stuck: Callable[[], None], seconds: float
    ) -> None:
        self._ticks, self._on_stuck = ticks, on_stuck
        self._pause = seconds / LOOKS
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._watch, name="timbre-watchdog", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        self._stopped.set()

    def _watch(self) -> None:
        last, same = self._ticks(), 0
        while not self._stopped.wait(self._pause):
            now = self._ticks()
            same = same + 1 if now == last and now % 2 else 0
            last = now
            if same >= LOOKS:
                same = 0
                self._on_stuck()
