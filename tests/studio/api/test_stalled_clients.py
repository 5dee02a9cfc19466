"""A client that reads nothing of its answer: its connection is given back, not only its place."""

from __future__ import annotations

import json
import socket
from collections.abc import Callable, Iterator
from contextlib import closing

import pytest
import uvicorn

from engine import Engine, Library
from studio.api import ApiSettings, create_api
from studio.server import connections
from studio.server.serving import configure, listen
from tests.studio.api.websocket.test_websocket_faults import unread
from tests.studio.api.websocket.ws_client import DONE, LONG, config
from tests.support.serving import running, wait_until

ENDLESS = {"max_new_tokens": 2500, "ignore_eos": True}  # 200 s: 9.6 MB


@pytest.fixture
def server(
    engine: Engine, library: Library, monkeypatch: pytest.MonkeyPatch
) -> Iterator[uvicorn.Server]:
    monkeypatch.setattr(connections, "LAST_SECONDS", 0.3)
    api = create_api(engine, library, ApiSettings(stall_timeout=0.3))
    with closing(listen("127.0.0.1", 0)) as address, running(configure(api), [address]) as server:
        yield server


def over_http(place: tuple[str, int]) -> socket.socket:
    body = json.dumps({"input": "x" * 400, "response_format": "pcm", **ENDLESS}).encode()
    head = f"POST /v1/audio/speech HTTP/1.1\r\nHost: x\r\nContent-Length: {len(body)}\r\n"
    wire = socket.socket()
    wire.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    wire.connect(place)
    wire.sendall(head.encode() + b"Content-Type: application/json\r\n\r\n" + body)
    return wire


def on_a_socket(place: tuple[str, int]) -> socket.socket:
    return unread(f"http://{place[0]}:{place[1]}", config(**ENDLESS), LONG, DONE)


@pytest.mark.parametrize("send", [over_http, on_a_socket])
def test_who_reads_nothing_is_cut_off(
    engine: Engine, server: uvicorn.Server, send: Callable[[tuple[str, int]], socket.socket]
) -> None:
    (listening,) = server.servers[0].sockets
    with closing(send(listening.getsockname())):
        wait_until(lambda: engine.stats().ended)
        wait_until(lambda: not server.server_state.connections)
