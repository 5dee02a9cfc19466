"""One response of a realtime session: a text that is spoken, told in OpenAI's events."""

from __future__ import annotations

import logging
import re
from base64 import b64encode
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Protocol
from uuid import uuid4

from starlette.websockets import WebSocketDisconnect

from engine import SAMPLE_RATE, SpeechStream, TimbreError
from studio.api.errors import UNFORESEEN, ApiError, explain
from studio.api.metrics import Metrics
from studio.api.realtime.conversation import Message
from studio.api.responses.audio_output import Output, Render
from studio.api.responses.streaming_response import pieces, usage

log = logging.getLogger(__name__)
_DELTAS = re.compile(r"(?s).{1,64}\S*\s*")  # whole words; joined they are the text
PLACE = {"output_index": 0}
PART = {**PLACE, "content_index": 0}


class Outlet(Protocol):
    async def tell(self, type: str, **fields: Any) -> None: ...
    def played(self, seconds: float) -> None: ...


def new_id(kind: str) -> str:
    return f"{kind}_{uuid4().hex[:24]}"


@dataclass(eq=False)
class Response:
    """`shown`: what its events repeat of how it was asked for. `follow`: the id before its item,
    once it is added to the conversation; None: it belongs to none."""

    stream: SpeechStream
    text: str
    output: Output
    shown: dict[str, Any]
    follow: Callable[[Message], str | None] | None
    id: str = field(default_factory=lambda: new_id("resp"))
    message: Message = field(init=False)
    cancelled: bool = False

    def __post_init__(self) -> None:
        words = Message(new_id("item"), "assistant", self.text, spoken=True, status="in_progress")
        self.message = words

    def cancel(self) -> None:
        self.cancelled = True
        self.stream.cancel()

    async def speak(self, outlet: Outlet, metrics: Metrics) -> None:
        """Send all of its events. Raises as the outlet does."""
        error: ApiError | None = None
        await self._begin(outlet)
        try:
            await self._send_audio(outlet, metrics)
        except TimbreError as failure:
            error = explain(failure)
        except (TimeoutError, WebSocketDisconnect):
            raise
        except Exception:
            log.exception("a realtime response failed")
            error = UNFORESEEN
        await self._finish(outlet, error)

    def fields(self, status: str = "in_progress", **changes: Any) -> dict[str, Any]:
        made = [] if status == "in_progress" else [self.message.fields()]
        return {
            "object": "realtime.response",
            "id": self.id,
            "status": status,
            "status_details": None,
            "output": made,
            "output_modalities": ["audio"],
            "usage": None,
            **self.shown,
            **changes,
        }

    async def _begin(self, outlet: Outlet) -> None:
        empty = {**self.message.fields(), "content": []}
        item = {"item_id": self.message.id, "response_id": self.id}
        await outlet.tell("response.output_item.added", response_id=self.id, item=empty, **PLACE)
        if self.follow:
            before = self.follow(self.message)
            await outlet.tell("conversation.item.added", previous_item_id=before, item=empty)
        part = {"type": "audio", "transcript": ""}
        await outlet.tell("response.content_part.added", part=part, **item, **PART)
        for words in _DELTAS.findall(self.text):
            kind = "response.output_audio_transcript.delta"
            await outlet.tell(kind, delta=words, **item, **PART)

    async def _send_audio(self, outlet: Outlet, metrics: Metrics) -> None:
        watch = metrics.watch("realtime", self.output.format)
        render, sent = Render(self.output), 0
        item = {"item_id": self.message.id, "response_id": self.id}
        async with self.stream:
            try:
                async for piece in pieces(self.stream, render):
                    watch.first()
                    data = b64encode(piece).decode()
                    await outlet.tell("response.output_audio.delta", delta=data, **item, **PART)
                    seconds = (render.samples - sent) / SAMPLE_RATE
                    sent = render.samples
                    outlet.played(seconds)
                    self.message.seconds += seconds
            finally:
                watch.end(self.stream.end)

    async def _finish(self, outlet: Outlet, error: ApiError | None) -> None:
        end = self.stream.end
        status, details = self._status(error)
        self.message.status = "completed" if status == "completed" else "incomplete"
        item = {"item_id": self.message.id, "response_id": self.id}
        words = self.message.text
        await outlet.tell("response.output_audio.done", **item, **PART)
        done = "response.output_audio_transcript.done"
        await outlet.tell(done, transcript=words, **item, **PART)
        part = {"type": "audio", "transcript": words}
        await outlet.tell("response.content_part.done", part=part, **item, **PART)
        message = self.message.fields()
        await outlet.tell("response.output_item.done", response_id=self.id, item=message, **PLACE)
        if self.follow:
            await outlet.tell("conversation.item.done", item=message)
        counts = usage(self.stream, end) if end else None
        if counts:
            counts["output_token_details"] = {"audio_tokens": counts["output_tokens"]}
        fields = self.fields(status, status_details=details, usage=counts)
        await outlet.tell("response.done", response=fields)

    def _status(self, error: ApiError | None) -> tuple[str, dict[str, Any] | None]:
        reason = self.stream.end.reason if self.stream.end else "error"
        if error:
            fields = {"type": error.type, "code": error.code, "message": error.message}
            return "failed", {"type": "failed", "error": fields}
        if self.cancelled or reason == "cancelled":
            return "cancelled", {"type": "cancelled", "reason": "client_cancelled"}
        if reason == "length":
            return "incomplete", {"type": "incomplete", "reason": "max_output_tokens"}
        return "completed", None
