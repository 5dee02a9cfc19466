"""Decodes recordings of requests: few at a time, beside the engine's steps.

A minute of sound takes a core for a while. Without a bound, a flood of uploads would take all
cores from the engine, and all threads from other requests. Knows no routes and no voices.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from functools import partial
from typing import Final, TypeVar

from engine import lower_thread_priority
from studio.api.errors import too_many

PARALLEL: Final = 2  # one is decoded while another waits for the engine's encoder
WAITING: Final = 16  # each holds up to `audio_bytes`
RETRY_AFTER: Final = 5.0  # seconds

Result = TypeVar("Result")


class RecordingQueue:
    """Runs work in threads of low priority; the queue is short, and who comes later is refused."""

    def __init__(self) -> None:
        self._pool = ThreadPoolExecutor(PARALLEL, "recordings", lower_thread_priority)
        self._count = 0

    async def run(self, work: Callable[[], Result]) -> Result:
        """Raises ApiError if too many wait. Work that has not begun is cancelled with its task."""
        if self._count >= PARALLEL + WAITING:
            problem = f"{WAITING} recordings wait to be read already. Try again in a few seconds."
            raise too_many(problem, "recordings_full", RETRY_AFTER)
        self._count += 1
        try:
            within = copy_context()  # so that the answer includes what the work reports
            loop = asyncio.get_running_loop()
            return await loop.run_in_executor(self._pool, partial(within.run, work))
        finally:
            self._count -= 1
