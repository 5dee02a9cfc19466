"""Half requests: each has a time, all have a bound, and newcomers are served beside them."""

from __future__ import annotations

import logging
import socket
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, suppress

import httpx
import pytest
from fastapi import FastAPI, Request

from studio.server import connections
from studio.server.process.log_limits import MOST, RepeatFilter
from studio.server.serving import configure, listen
from tests.support.serving import OwnTime, running

HALVES = {
    "nothing": b"",
    "half a head": b"POST /echo HTTP/1.1\r\nHost: x\r\n",
    "a head without its body": b"POST /echo HTTP/1.1\r\nHost: x\r\nContent-Length: 9\r\n\r\n",
    "half a body": b"POST /echo HTTP/1.1\r\nHost: x\r\nContent-Length: 9\r\n\r\nabc",
    "half a piece": b"POST /echo HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n9\r\nab",
}
Connect = Callable[..., socket.socket]


@pytest.fixture
def place() -> Iterator[tuple[str, int]]:
    application = FastAPI()

    @application.post("/echo")
    async def echo(request: Request) -> str:
        return (await request.body()).decode()

    address = listen("127.0.0.1", 0)
    with running(configure(application), [address]):
        yield address.getsockname()
    address.close()


@pytest.fixture
def wire(place: tuple[str, int]) -> Iterator[Connect]:
    with ExitStack() as held:

        def connect(sent: bytes = b"") -> socket.socket:
            made = held.enter_context(socket.create_connection(place))
            made.sendall(sent)
            made.settimeout(30)
            return made

        yield connect


def closed(made: socket.socket) -> bool:
    """Waits for the other side to close."""
    try:
        return made.recv(1000) == b""
    except ConnectionResetError:
        return True


@pytest.mark.parametrize("name", HALVES)
def test_half_a_request_is_waited_for_a_while(
    wire: Connect, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.setattr(connections, "HEAD_SECONDS", 0.3)
    monkeypatch.setattr(connections, "BODY_SECONDS", 0.3)
    started = time.monotonic()
    with OwnTime() as took:
        assert closed(wire(HALVES[name]))
    assert took.seconds < 15  # 20 and 30 without the change
    assert time.monotonic() - started > 0.2


def test_a_head_of_single_bytes_gets_no_more_time(
    wire: Connect, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connections, "HEAD_SECONDS", 0.5)
    made, sent = wire(), 0
    for byte in b"GET / HTTP/1.1\r\nHost: " + b"x" * 1000:
        if is_closed_now(made):
            break
        made.sendall(bytes([byte]))
        sent += 1
        time.sleep(0.05)
    assert sent < 300  # 10 on a machine at rest


def test_a_slow_body_has_the_time_it_needs(wire: Connect, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each byte of a body starts the time anew; so does the next request of a connection."""
    monkeypatch.setattr(connections, "BODY_SECONDS", 1.0)
    monkeypatch.setattr(connections, "HEAD_SECONDS", 1.0)
    assert any(heard_slowly(wire()) for _ in range(5))  # the machine may stand still meanwhile


def heard_slowly(made: socket.socket) -> bool:
    """Whether two requests with slow bodies are answered on one connection."""
    with suppress(BrokenPipeError, ConnectionResetError):
        for _ in range(2):
            made.sendall(HALVES["a head without its body"])
            for piece in (b"bo", b"dy-", b"body"):
                time.sleep(0.4)
                made.sendall(piece)
            answer = b""
            while b"body-body" not in answer and (piece := made.recv(1000)):
                answer += piece
            time.sleep(1.2)  # a silent connection between two requests is not closed
        return b"body-body" in answer
    return False


def test_of_many_half_requests_the_oldest_go(
    place: tuple[str, int], wire: Connect, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connections, "MOST", 20)
    made = [wire(list(HALVES.values())[number % len(HALVES)]) for number in range(200)]
    for _ in range(5):
        answer = httpx.post(f"http://{place[0]}:{place[1]}/echo", content=b"hello", timeout=30)
        assert answer.json() == "hello"
    assert all(closed(each) for each in made[:175])
    assert not is_closed_now(made[-1])


def is_closed_now(made: socket.socket) -> bool:
    made.setblocking(False)
    try:
        return made.recv(1) == b""
    except BlockingIOError:
        return False
    except ConnectionResetError:
        return True
    finally:
        made.settimeout(30)


def test_who_holds_most_loses_first(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connections, "MOST", 10)

    class Wire:
        gone = False
        transport = property(lambda self: self)

        def abort(self) -> None:
            self.gone = True

    waiting = connections.Unanswered()
    friend, crowd = Wire(), [Wire() for _ in range(100)]
    waiting.add(friend, "192.0.2.1")
    for each in crowd:
        waiting.add(each, "198.51.100.1")
    assert not friend.gone
    assert [each.gone for each in crowd] == [True] * 91 + [False] * 9


def test_a_line_that_repeats_is_written_a_few_times(caplog: pytest.LogCaptureFixture) -> None:
    log, limit = logging.getLogger("timbre.test"), RepeatFilter()
    log.addFilter(limit)
    for number in range(1000):
        log.warning("Request %d cannot be read.", number)
    log.warning("Another line.")
    assert len(caplog.records) == MOST + 1
    limit._start -= 100
    log.warning("A minute later.")
    assert "995 lines" in caplog.messages[-1]
