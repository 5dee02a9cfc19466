"""Calls of one kind that come at the same time share one result."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Generic, TypeVar

import anyio.to_thread

Result = TypeVar("Result")


class SingleFlight(Generic[Result]):
    """Calls in a thread. A request during a call waits for that call's result, so a flood takes
    one thread and leaves the threads that encode audio free."""

    def __init__(self) -> None:
        self._call: asyncio.Future[Result] | None = None

    async def __call__(self, work: Callable[[], Result]) -> Result:
        if self._call is None or self._call.done():
            self._call = asyncio.ensure_future(anyio.to_thread.run_sync(work))
        return await asyncio.shield(self._call)  # who leaves takes it from nobody
