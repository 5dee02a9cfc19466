"""Speaks a complete text on a server: POST /v1/audio/speech with server-sent events."""

from __future__ import annotations

import json
from base64 import b64decode
from collections.abc import Iterator
from contextlib import ExitStack
from typing import Any

import numpy as np

from engine import Pcm
from studio.cli.connection import Connection, ServerError

PATH = "/v1/audio/speech"


class HttpSpeech:
    """The request is sent when iteration starts; `held` closes the connection."""

    def __init__(self, connection: Connection, body: dict[str, Any], held: ExitStack) -> None:
        self._connection, self._held = connection, held
        self._body = {**body, "stream_format": "sse"}
        self.seed: int | None = body.get("seed")
        self.reason = "cancelled"

    def __iter__(self) -> Iterator[Pcm]:
        with self._connection.plainly():
            client = self._held.enter_context(self._connection.client())
            answer = self._held.enter_context(client.stream("POST", PATH, json=self._body))
            self._connection.check(answer)
            for line in answer.iter_lines():
                if line.startswith("data: "):
                    yield from self._heard(json.loads(line[6:]))
        if self.reason == "cancelled":
            raise self._connection.broken()

    def _heard(self, event: dict[str, Any]) -> Iterator[Pcm]:
        if event["type"] == "speech.audio.delta":
            yield np.frombuffer(b64decode(event["audio"]), "<i2").astype(np.int16)
        elif event["type"] == "speech.audio.done":
            self.seed, self.reason = event["seed"], event["finish_reason"]
        elif event["type"] == "speech.audio.error":
            raise ServerError(event["error"]["message"])
