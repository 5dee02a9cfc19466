"""Calls of one kind that come at the same time share one result."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Generic, TypeVar

import anyio.to_thread

Result = TypeVar("Result")


class SingleFlight(Generic[Result]):
    """Calls in a thread. Who asks while one runs waits for its result: a flood takes one thread,
    and leaves those that encode audio."""

    def __init__(self) -> None:
        self._call: asyncio.Future[Result] | None = None

    async def __call__(self, work: Callable[[], Result]) -> Result:
        if self._call is None or self._call.done():
            self._call = asyncio.ensure_future(anyio.to_thread.run_sync(work))
        return await asyncio.shield(self._call)  # who leaves takes it from nobody
