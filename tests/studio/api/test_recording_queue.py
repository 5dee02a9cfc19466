"""Recordings are read a few at a time; a flood of them is refused, and others are served."""

from __future__ import annotations

import asyncio
import os
import sys
import threading

import pytest

from studio.api.errors import ApiError
from studio.api.recording_queue import PARALLEL, WAITING, RecordingQueue


def test_a_flood_is_refused_and_the_queue_goes_on() -> None:
    asyncio.run(_flood())


async def _flood() -> None:
    queue, gate, running = RecordingQueue(), threading.Event(), list[int]()

    def read() -> int:
        running.append(1)
        gate.wait(120)
        return len(running)

    waiting = [asyncio.ensure_future(queue.run(read)) for _ in range(PARALLEL + WAITING)]
    while len(running) < PARALLEL:
        await asyncio.sleep(0.005)
    await asyncio.sleep(0.05)  # for one more, if there were one
    assert len(running) == PARALLEL
    with pytest.raises(ApiError) as refused:
        await queue.run(read)
    assert (refused.value.status, refused.value.retry_after) == (429, 5)
    waiting.pop().cancel()  # its client has left
    await asyncio.sleep(0)
    waiting.append(asyncio.ensure_future(queue.run(read)))
    gate.set()
    await asyncio.gather(*waiting)
    assert len(running) == PARALLEL + WAITING
    assert await queue.run(lambda: 7) == 7


@pytest.mark.skipif(sys.platform != "linux", reason="priorities per thread are Linux's")
def test_reading_yields_to_the_engine() -> None:
    def priority() -> int:
        return os.getpriority(os.PRIO_PROCESS, threading.get_native_id())

    before = priority()
    assert before < asyncio.run(RecordingQueue().run(priority)) or before == 19
