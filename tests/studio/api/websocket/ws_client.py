"""What both sides of a WebSocket dialogue say."""

from __future__ import annotations

import json
from typing import Any

from starlette.testclient import WebSocketTestSession
from starlette.websockets import WebSocketDisconnect

PATH = "/v1/audio/speech/stream"
TEXT = "The morning train was late again. She read on."


def say(socket: WebSocketTestSession, *messages: dict[str, Any]) -> None:
    for message in messages:
        socket.send_text(json.dumps(message))


def words(text: str) -> list[dict[str, Any]]:
    pieces = [word + " " for word in text.split(" ")]
    pieces[-1] = pieces[-1][:-1]
    return [{"type": "input.text", "text": piece} for piece in pieces]


def config(**fields: Any) -> dict[str, Any]:
    return {"type": "session.config", "seed": 5, **fields}


DONE, CANCEL = {"type": "input.done"}, {"type": "input.cancel"}
LONG = {"type": "input.text", "text": "A word. " * 200}


def hear(socket: WebSocketTestSession, until: str = "session.done") -> tuple[list[Any], bytes]:
    """Messages up to one of a type, and the audio between them."""
    reports: list[Any] = []
    audio = b""
    while not reports or reports[-1]["type"] != until:
        message = socket.receive()
        if message["type"] == "websocket.close":
            raise WebSocketDisconnect(message["code"], str(reports)[:600])
        audio += message.get("bytes") or b""
        if message.get("text"):
            reports.append(json.loads(message["text"]))
    return reports, audio
