"""Speaks text on a server while it is read, over a WebSocket."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from typing import Any

import numpy as np
from websockets.exceptions import ConnectionClosed, InvalidHandshake, InvalidStatus, InvalidURI
from websockets.sync.client import ClientConnection, connect

from engine import InvalidText, Pcm
from studio.cli.connection import Connection, ServerError
from studio.cli.console import Reporter, Words, feed

PATH = "/v1/audio/speech/stream"
STILL = 10.0  # seconds without messages after which a keep-alive is sent


class WebSocketSpeech:
    """One utterance of open text; `held` closes the socket."""

    def __init__(
        self,
        connection: Connection,
        fields: dict[str, Any],
        words: Words,
        held: ExitStack,
        tell: Reporter,
    ) -> None:
        self._connection, self._voice_fields, self._words = connection, fields, words
        self._held, self._tell = held, tell
        self._said = False
        self.seed: int | None = fields.get("seed")
        self.reason = "cancelled"

    def __iter__(self) -> Iterator[Pcm]:
        with self._explained_errors():
            socket = self._held.enter_context(self._connect())
            _send(socket, "session.config", **self._voice_fields)
            self._feed(socket)
            while self.reason == "cancelled":
                message = _receive(socket)
                if isinstance(message, bytes):
                    yield np.frombuffer(message, "<i2").astype(np.int16)
                else:
                    self._read_message(json.loads(message))

    def _feed(self, socket: ClientConnection) -> None:
        def append(text: str) -> None:
            self._said = self._said or bool(text.strip())
            _send(socket, "input.text", text=text)

        def close() -> None:
            _send(socket, "input.done" if self._said else "session.close")

        feed(self._words, append, close, self._tell)

    def _read_message(self, message: dict[str, Any]) -> None:
        if message["type"] == "audio.start":
            self.seed = message["seed"]
        elif message["type"] == "session.done":
            self.reason = message["finish_reason"]
        elif message["type"] == "error":
            raise ServerError(message["message"])

    def _connect(self) -> ClientConnection:
        address = self._connection.base.replace("http", "ws", 1) + PATH
        headers = self._connection.headers
        return connect(address, additional_headers=headers, max_size=None, close_timeout=1)

    @contextmanager
    def _explained_errors(self) -> Iterator[None]:
        """Convert errors of the socket to ServerError."""
        try:
            yield
        except InvalidURI as error:
            raise self._connection.invalid_address() from error
        except InvalidStatus as error:
            answer = error.response
            raise self._connection.refusal(answer.status_code, bytes(answer.body or b"")) from error
        except ConnectionClosed as error:
            if not self._said:
                raise InvalidText("There is nothing to say. Give some words.") from error
            raise self._connection.interrupted() from error
        except (InvalidHandshake, OSError) as error:
            raise self._connection.unreachable(error) from error


def _send(socket: ClientConnection, type: str, **fields: Any) -> None:
    with suppress(ConnectionClosed):  # the receiving side raises it
        socket.send(json.dumps({"type": type, **fields}))


def _receive(socket: ClientConnection) -> str | bytes:
    """The next message; an empty text is sent as keep-alive while waiting."""
    while True:
        try:
            return socket.recv(STILL)
        except TimeoutError:
            _send(socket, "input.text", text="")
