"""Bodies in pieces are the same bodies."""

from __future__ import annotations

import asyncio
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
