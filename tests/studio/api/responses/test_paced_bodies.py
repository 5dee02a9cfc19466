"""Bodies in pieces are the same bodies."""

from __future__ import annotations

import asyncio
import sys
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from starlette.types import Message, Receive, Scope, Send

from studio.api.responses.paced_bodies import PIECE, PacedBodies

SIZES = st.sampled_from([0, 1, PIECE - 1, PIECE, PIECE + 1, 2 * PIECE, 3 * PIECE + 7])


def answered(*messages: Message, stalls: bool = False, fails: bool = False) -> list[Message]:
    """What a server receives from an application that sends these messages."""
    sent = list[Message]()

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        for message in messages:
            await send(message)
        if fails:
            raise TimeoutError

    async def send(message: Message) -> None:
        if stalls:
            await asyncio.sleep(60)
        sent.append(message)

    async def receive() -> Any: ...

    asyncio.run(PacedBodies(app, 0.01 if stalls else 60.0)({"type": "http"}, receive, send))
    return sent


@given(sizes=st.lists(SIZES, min_size=1, max_size=3))
@settings(deadline=None, max_examples=40)
def test_pieces_make_the_body_and_only_the_last_ends_it(sizes: list[int]) -> None:
    start: Message = {"type": "http.response.start", "status": 200, "headers": []}
    bodies = [bytes([number]) * size for number, size in enumerate(sizes)]
    ends = [False] * (len(sizes) - 1) + [True]
    requested = [
        {"type": "http.response.body", "body": body, "more_body": not end}
        for body, end in zip(bodies, ends, strict=True)
    ]
    first, *rest = answered(start, *requested)
    assert first == start
    assert b"".join(each["body"] for each in rest) == b"".join(bodies)
    assert [each["more_body"] for each in rest] == [True] * (len(rest) - 1) + [False]
    assert all(len(each["body"]) <= PIECE for each in rest)


def test_a_client_who_reads_nothing_is_left_and_other_timeouts_are_told() -> None:
    whole: Message = {"type": "http.response.body", "body": b"x", "more_body": False}
    assert answered(whole, stalls=True) == []
    with pytest.raises(TimeoutError):
        answered(whole, fails=True)


def paced_by(*pauses: float, leaves: bool = False) -> list[str]:
    """What becomes of sends that take so many seconds, by the loop's own clock, with 10 s for each.
    `leaves`: somebody else cancels the last one when its time is up."""
    told = list[str]()

    async def run() -> None:
        loop, own = asyncio.get_running_loop(), asyncio.current_task()
        assert own
        clock = loop.time()
        loop.time = lambda: clock  # type: ignore[method-assign]

        async def send(message: Message) -> None:
            nonlocal clock
            clock += pauses[len(told)]
            if leaves:
                loop.call_soon(own.cancel)
            for _ in range(5):  # timers that are due run meanwhile
                await asyncio.sleep(0)
            told.append("sent")

        async def app(scope: Scope, receive: Receive, send: Send) -> None:
            try:
                for _ in pauses:
                    await send({"type": "http.response.body", "body": b"x"})
            except BaseException as error:
                told.append(type(error).__name__)
                raise

        async def receive() -> Any: ...

        await PacedBodies(app, 10.0)({"type": "http"}, receive, send)
        assert own.cancelling() == 0 if hasattr(own, "cancelling") else True

    try:
        asyncio.run(run())
    except asyncio.CancelledError:
        told.append("cancelled")
    return told


def test_each_piece_has_its_own_time() -> None:
    assert paced_by(9.0, 9.0, 9.0) == ["sent", "sent", "sent"]
    assert paced_by(9.0, 4.0, 11.0, 1.0) == ["sent", "sent", "TimeoutError"]


@pytest.mark.skipif(sys.version_info < (3, 11), reason="tasks do not count who cancels them")
def test_who_is_cancelled_by_others_too_is_cancelled() -> None:
    assert paced_by(11.0, leaves=True) == ["CancelledError", "cancelled"]
