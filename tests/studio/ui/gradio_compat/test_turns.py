"""Events of a page that come in turn: one is answered before the next one is read."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any

import pytest
from gradio.queueing import Queue

from studio.ui.gradio_compat.turns import IN_TURN, OrderedQueue


class Work:
    """What Gradio does with an event; it notes their order, and the first waits for the gate."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.done: list[str] = []
        self.gate = asyncio.Event()
        monkeypatch.setattr(Queue, "process_events", self.process)
        self.queue = OrderedQueue.__new__(OrderedQueue)

    async def process(self, events: list[Any], fails: bool) -> None:
        [event] = events
        if event.name == "first":
            await self.gate.wait()
        assert not fails
        self.done.append(event.name)

    def press(
        self, name: str, page: str = "a page", fails: bool = False, **how: str
    ) -> asyncio.Future[None]:
        given = {"concurrency_id": "its own", **how}
        event = SimpleNamespace(name=name, session_hash=page, **given)
        return asyncio.ensure_future(self.queue.process_events([event], fails))


def test_a_quick_second_press_waits_for_the_first_one(monkeypatch: pytest.MonkeyPatch) -> None:
    async def presses() -> list[str]:
        work = Work(monkeypatch)
        quick = [work.press(name, **IN_TURN) for name in ("first", "second", "third")]
        await work.press("of another page", page="another", **IN_TURN)
        await work.press("without a turn")
        work.gate.set()
        await asyncio.gather(*quick)
        return work.done

    expected = ["of another page", "without a turn", "first", "second", "third"]
    assert asyncio.run(presses()) == expected


def test_one_that_fails_or_is_cancelled_lets_the_next_one_in(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def presses() -> list[str]:
        work = Work(monkeypatch)
        cancelled, failed = work.press("first", **IN_TURN), work.press("", fails=True, **IN_TURN)
        last = work.press("last", **IN_TURN)
        await asyncio.sleep(0)
        cancelled.cancel()
        ends = await asyncio.gather(cancelled, failed, last, return_exceptions=True)
        assert [type(end) for end in ends[:2]] == [asyncio.CancelledError, AssertionError]
        return work.done

    assert asyncio.run(presses()) == ["last"]
