"""The proxies' retry of speech that nobody has heard, without Ray."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterable

import pytest
from starlette.types import Message, Receive, Scope, Send

from studio.cluster.proxy_retry import LARGEST, SPEECH, TRIES, ProxyRetry

BODY = [b"the ", b"text"]


class Proxy:
    """Answers like Serve's proxy; each try with the next of these statuses.

    0: the replica dies while it is heard. 1: before, of which the proxy says nothing.
    """

    def __init__(self, statuses: Iterable[int]) -> None:
        self._statuses = iter(statuses)
        self.bodies: list[bytes] = []

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        body, more = b"", True
        while more:
            message = await receive()
            body, more = body + message["body"], message["more_body"]
        self.bodies.append(body)
        status = next(self._statuses)
        if status == 1:
            return
        await send({"type": "http.response.start", "status": status or 200, "headers": []})
        await send({"type": "http.response.body", "body": b"audio", "more_body": not status})
        if not status:
            raise RuntimeError("the replica died while it was heard")


def ask(proxy: Proxy, path: str = SPEECH[0], pieces: list[bytes] = BODY) -> list[Message]:
    reports: list[Message] = []
    left = list(pieces)

    async def receive() -> Message:
        return {"type": "http.request", "body": left.pop(0), "more_body": bool(left)}

    async def send(message: Message) -> None:
        reports.append(message)

    scope = {"type": "http", "path": path, "method": "POST", "headers": []}
    asyncio.run(ProxyRetry(proxy, pause=0)(scope, receive, send))
    return reports


def status(messages: list[Message]) -> int:
    starts = [each["status"] for each in messages if each["type"] == "http.response.start"]
    assert len(starts) == 1
    return starts[0]


@pytest.mark.parametrize("lost", range(TRIES))
@pytest.mark.parametrize("answered", [1, 503])
@pytest.mark.parametrize("path", [SPEECH[0], f"{SPEECH[1]}ryan/stream"])
def test_a_request_that_nobody_heard_is_sent_again_as_it_was(
    path: str, lost: int, answered: int
) -> None:
    proxy = Proxy([answered] * lost + [200])
    assert status(ask(proxy, path)) == 200
    assert proxy.bodies == [b"".join(BODY)] * (lost + 1)


def test_the_last_error_is_told() -> None:
    proxy = Proxy([503] * 10)
    assert status(ask(proxy)) == 503
    assert len(proxy.bodies) == TRIES


def test_who_gets_no_answer_at_all_is_told_to_try_again() -> None:
    proxy = Proxy([1] * 10)
    start, body = ask(proxy)
    assert start["status"] == 503
    assert (b"retry-after", b"5") in start["headers"]
    assert json.loads(body["body"])["error"]["code"] == "replica_lost"
    assert len(proxy.bodies) == TRIES


def test_who_has_left_is_not_spoken_to() -> None:
    reports: list[Message] = []

    async def proxy(scope: Scope, receive: Receive, send: Send) -> None:
        await receive()

    async def receive() -> Message:
        return {"type": "http.disconnect"}

    async def send(message: Message) -> None:
        reports.append(message)

    asyncio.run(ProxyRetry(proxy, pause=0)({"type": "http", "path": SPEECH[0]}, receive, send))
    assert not reports


@pytest.mark.parametrize("code", [200, 400, 429, 500])
def test_what_a_replica_says_is_passed_on(code: int) -> None:
    proxy = Proxy([code])
    assert status(ask(proxy)) == code
    assert len(proxy.bodies) == 1


def test_who_has_heard_a_part_gets_no_other() -> None:
    proxy = Proxy([0, 200])
    with pytest.raises(RuntimeError):
        ask(proxy)
    assert len(proxy.bodies) == 1


@pytest.mark.parametrize(
    ("path", "pieces"),
    [("/v1/audio/voices", BODY), ("/", BODY), (SPEECH[0], [b"x" * LARGEST, b"x"])],
    ids=["saves", "page", "large"],
)
def test_what_may_not_be_sent_twice_is_not(path: str, pieces: list[bytes]) -> None:
    proxy = Proxy([503, 200])
    assert status(ask(proxy, path, pieces)) == 503
    assert len(proxy.bodies) == 1
