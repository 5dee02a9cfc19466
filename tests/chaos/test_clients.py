"""Clients that disconnect and reconnect again and again: no slot stays taken."""

from __future__ import annotations

import json
import socket
import struct
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
from websockets.sync.client import connect

from engine import Engine, EngineSettings, Library
from engine.testing import Costs, FakeEngine
from studio.api import create_api
from tests.support.serving import serving, wait_until

TIMES = 40
BODY = {"input": "x" * 300, "response_format": "pcm"}


@pytest.fixture
def engine() -> Iterator[Engine]:
    """Two slots: one that stayed taken would soon be missed."""
    with FakeEngine(settings=EngineSettings(max_num_seqs=2), costs=Costs(step=0.01)) as engine:
        yield engine


@pytest.fixture
def url(engine: Engine, tmp_path: Path) -> Iterator[str]:
    with serving(create_api(engine, Library(tmp_path / "voices"))) as url:
        yield url


def idle(engine: Engine) -> bool:
    stats = engine.stats()
    return stats.running == stats.waiting == 0


def slam(url: str, after: int) -> None:
    """Send a request, read so many bytes of the answer, and reset the connection."""
    place, body = httpx.URL(url), json.dumps(BODY).encode()
    with socket.create_connection((place.host, place.port)) as wire:
        head = f"POST /v1/audio/speech HTTP/1.1\r\nHost: x\r\nContent-Length: {len(body)}\r\n"
        wire.sendall(f"{head}Content-Type: application/json\r\n\r\n".encode() + body)
        if after:
            wire.recv(after)
        wire.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))


@pytest.mark.parametrize("after", [0, 1, 10_000])
def test_connections_that_are_slammed(engine: Engine, url: str, after: int) -> None:
    for _ in range(TIMES):
        slam(url, after)
    wait_until(lambda: idle(engine))
    answers: list[httpx.Response] = []

    def admitted() -> bool:
        """Requests whose client has gone may arrive only now, and fill the queue for a moment."""
        json_body = {**BODY, "input": "Hello."}
        answers.append(httpx.post(f"{url}/v1/audio/speech", json=json_body))
        return answers[-1].status_code != httpx.codes.TOO_MANY_REQUESTS

    wait_until(admitted)
    assert len(answers[-1].content) == len("Hello.") * 1920 * 2


def test_sockets_that_come_back_at_once(engine: Engine, url: str) -> None:
    address = url.replace("http", "ws") + "/v1/audio/speech/stream"
    for number in range(TIMES):
        with connect(address) as wire:
            wire.send(json.dumps({"type": "input.text", "text": "A long story. " * 20}))
            if number % 2:
                wire.recv()
            if number % 3 == 0:
                wire.socket.shutdown(socket.SHUT_RDWR)
    wait_until(lambda: idle(engine))
    with connect(address) as wire:
        wire.send(json.dumps({"type": "input.text", "text": "Hello."}))
        wire.send(json.dumps({"type": "input.done"}))
        while not done(wire.recv(timeout=60)):
            pass


def done(message: str | bytes) -> bool:
    return isinstance(message, str) and json.loads(message)["type"] == "session.done"


def test_half_a_request_is_no_work(engine: Engine, url: str) -> None:
    """Headers without a body, and bodies that never end, cost no slot."""
    place = httpx.URL(url)
    wires = [socket.create_connection((place.host, place.port)) for _ in range(TIMES)]
    try:
        for number, wire in enumerate(wires):
            wire.sendall(b"POST /v1/audio/speech HTTP/1.1\r\nHost: x\r\n")
            if number % 2:
                wire.sendall(b"Content-Type: application/json\r\nContent-Length: 900\r\n\r\n{")
        assert idle(engine)
        answer = httpx.post(f"{url}/v1/audio/speech", json={**BODY, "input": "Hello."})
        assert answer.status_code == 200
    finally:
        for wire in wires:
            wire.close()
