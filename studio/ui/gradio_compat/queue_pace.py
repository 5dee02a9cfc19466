"""How often Gradio's queue looks for events. It has no wake-up, so it looks 1,100 times a second,
which costs a twelfth of a core all the time; here only while somebody uses the page.
"""

from __future__ import annotations

import time

import gradio as gr
from gradio.queueing import Queue

BUSY, IDLE = 0.001, 0.02  # s between two looks; IDLE is what the first press after a rest may wait
PROGRESS_BUSY, PROGRESS_IDLE = 0.01, 0.1
REST = 30.0  # s without an event


class PacedQueue(Queue):
    _used = 0.0  # monotonic time of the last look that found an event

    def _pace(self, busy: float, idle: float) -> float:
        now = time.monotonic()
        if len(self) or any(self.active_jobs):
            self._used = now
        return busy if now - self._used < REST else idle

    @property
    def sleep_when_free(self) -> float:  # type: ignore[override]
        return self._pace(BUSY, IDLE)

    @property
    def progress_update_sleep_when_free(self) -> float:  # type: ignore[override]
        return self._pace(PROGRESS_BUSY, PROGRESS_IDLE)


def pace(blocks: gr.Blocks) -> None:
    """Called before the queue starts."""
    queue = blocks._queue
    for name in ("sleep_when_free", "progress_update_sleep_when_free"):
        vars(queue).pop(name)
    queue.__class__ = PacedQueue
