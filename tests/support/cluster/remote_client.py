"""Starlette's TestClient for a server that runs elsewhere, as far as the API's tests use it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import httpx
from starlette.websockets import WebSocketDisconnect
from websockets.exceptions import ConnectionClosed
from websockets.sync.client import ClientConnection, connect


class RemoteSocket:
    """A WebSocket with the methods of Starlette's test session."""

    def __init__(self, connection: ClientConnection) -> None:
        self._connection = connection

    def send_text(self, text: str) -> None:
        self._connection.send(text)

    def send_bytes(self, data: bytes) -> None:
        self._connection.send(data)

    def send_json(self, data: Any) -> None:
        self.send_text(json.dumps(data))

    def receive(self) -> dict[str, Any]:
        try:
            got = self._connection.recv(timeout=30)
        except ConnectionClosed as error:
            code, reason = (error.rcvd.code, error.rcvd.reason) if error.rcvd else (1006, "")
            return {"type": "websocket.close", "code": code, "reason": reason}
        kind = "text" if isinstance(got, str) else "bytes"
        return {"type": "websocket.send", kind: got}

    def receive_text(self) -> str:
        message = self.receive()
        if message["type"] == "websocket.close":
            raise WebSocketDisconnect(message["code"], message["reason"])
        text: str = message["text"]
        return text

    def receive_json(self) -> Any:
        return json.loads(self.receive_text())

    def close(self) -> None:
        self._connection.close()


class RemoteClient(httpx.Client):
    @contextmanager
    def websocket_connect(self, path: str, **_: Any) -> Iterator[RemoteSocket]:
        address = str(self.base_url.join(path)).replace("http", "ws", 1)
        with connect(address, max_size=None) as connection:
            yield RemoteSocket(connection)
