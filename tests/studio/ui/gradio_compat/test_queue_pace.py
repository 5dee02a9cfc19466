"""Gradio's queue rests where nobody uses the page, and is as quick as ever where somebody does."""

from __future__ import annotations

import asyncio
from typing import Any

import gradio as gr
import pytest
from gradio import queueing

from studio.ui.gradio_compat import queue_pace
from studio.ui.gradio_compat.queue_pace import (
    BUSY,
    IDLE,
    PAUSE,
    PROGRESS_BUSY,
    PROGRESS_IDLE,
    REST,
    USED,
    pace,
)


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The time, to be set."""
    now = [1000.0]
    monkeypatch.setattr(queue_pace.time, "monotonic", lambda: now[0])
    return now


@pytest.fixture
def slept(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """What the queue's loops ask to sleep."""
    calls: list[float] = []
    plain = asyncio.sleep

    async def sleep(seconds: float) -> None:
        calls.append(seconds)
        await plain(0)

    monkeypatch.setattr(queueing.asyncio, "sleep", sleep)
    return calls


def looks(queue: Any, slept: list[float], work: str) -> set[float]:
    """The pauses of a loop that looks a few times."""

    async def some() -> None:
        task = asyncio.ensure_future(getattr(queue, work)())
        while len(slept) < 5:
            await asyncio.Event().wait() if task.done() else await asyncio.sleep(0)
        task.cancel()

    slept.clear()
    asyncio.run(some())
    return {seconds for seconds in slept if seconds}


@pytest.fixture
def queue() -> Any:
    async def made() -> Any:
        with gr.Blocks(analytics_enabled=False) as blocks:
            gr.Textbox()
        blocks.queue()
        pace(blocks, str)
        return blocks._queue

    found = asyncio.run(made())
    found.active_jobs = [None]
    return found


def test_an_idle_queue_looks_seldom(queue: Any, slept: list[float], clock: list[float]) -> None:
    assert looks(queue, slept, "start_processing") == {IDLE}
    queue.stopped = False  # it was stopped with its loop
    assert looks(queue, slept, "start_progress_updates") == {PROGRESS_IDLE}


def test_a_used_queue_looks_often_and_rests_some_time_after(
    queue: Any, slept: list[float], clock: list[float]
) -> None:
    queue.active_jobs = [[], None]
    queue.active_jobs[0] = [type("Event", (), {"progress_pending": False, "progress": None})()]
    assert looks(queue, slept, "start_progress_updates") == {PROGRESS_BUSY}
    queue.active_jobs = [None, None]
    for seconds, pause in ((PAUSE - 1, BUSY), (REST - PAUSE, USED), (2, IDLE)):
        clock[0] += seconds
        assert looks(queue, slept, "start_processing") == {pause}
        queue.stopped = False  # it was stopped with its loop
