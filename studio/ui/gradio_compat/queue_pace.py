"""How often Gradio's queue looks for events. It has no wake-up, so it looks 1,100 times a second,
which costs a twelfth of a core all the time; here only while events come.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import gradio as gr

from studio.ui.gradio_compat.turns import OrderedQueue

# s between two looks: events come, a page is in use, nobody is there. A press may wait for one.
BUSY, USED, IDLE = 0.001, 0.005, 0.02
PROGRESS_BUSY, PROGRESS_IDLE = 0.01, 0.1
PAUSE, REST = 2.0, 30.0  # s without an event


class PacedQueue(OrderedQueue):
    _used = 0.0  # monotonic time of the last look that found an event

    def _rested(self) -> float:
        """Seconds since then."""
        now = time.monotonic()
        if len(self) or any(self.active_jobs):
            self._used = now
        return now - self._used

    @property
    def sleep_when_free(self) -> float:  # type: ignore[override]
        rested = self._rested()
        return BUSY if rested < PAUSE else USED if rested < REST else IDLE

    @property
    def progress_update_sleep_when_free(self) -> float:  # type: ignore[override]
        return PROGRESS_BUSY if self._rested() < PAUSE else PROGRESS_IDLE


def pace(blocks: gr.Blocks, refused: Callable[[str], str]) -> None:
    """Called before the queue starts. `refused`: as `OrderedQueue` has it."""
    queue: Any = blocks._queue
    for name in ("sleep_when_free", "progress_update_sleep_when_free"):
        vars(queue).pop(name)
    queue.__class__ = PacedQueue
    queue.refused = refused
