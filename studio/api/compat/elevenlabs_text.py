"""A text that is spoken while it comes, and what is told of it, for ElevenLabs' WebSockets.

Speech begins with the first words. A flush ends a part: its last words are spoken without waiting
for more, and then its characters have their times. Knows no messages of clients.
"""

from __future__ import annotations

import asyncio
import logging
from base64 import b64encode
from collections import deque
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import replace
from typing import Any, Final

import anyio.to_thread
from pydantic import ValidationError
from starlette.websockets import WebSocket, WebSocketDisconnect

from engine import SAMPLE_RATE, SpeechRequest, TimbreError
from studio.api.api_context import ApiContext
from studio.api.bodies.json_body import parse
from studio.api.bodies.schemas import SpeechBody
from studio.api.compat.alignment import align
from studio.api.compat.elevenlabs import DEFAULT_FORMAT, SpeechText, VoiceSettings, speech_body
from studio.api.errors import UNFORESEEN, ApiError, explain
from studio.api.responses.audio_output import KeptRender
from studio.api.responses.streaming_response import pieces
from studio.api.websocket.ws_inbox import WsInbox
from studio.api.websocket.ws_sender import STALLED, WsOutlet
from studio.api.websocket.ws_utterance import Flowing, Part

log = logging.getLogger(__name__)
DONE: Final = 1000
REFUSED: Final = 1008
FAILED: Final = 1011
QUERY: Final = ("model_id", "language_code", "seed", "apply_text_normalization")


class ElevenLabsOutlet(WsOutlet):
    """Errors in ElevenLabs' form. They end the socket, as there."""

    async def refuse(self, error: ApiError) -> None:
        fields = {"message": error.message, "error": error.code, "code": REFUSED}
        await self.json({**fields, "param": error.param})

    async def end(self, error: Exception, code: int) -> None:
        """Tell why, if anybody is there, and close."""
        if isinstance(error, TimeoutError):
            return await self.close(STALLED, "nothing was taken for too long")
        refusal = explain(error)
        if refusal is UNFORESEEN:
            log.error("a text over a WebSocket failed", exc_info=error)
        with suppress(TimeoutError, WebSocketDisconnect):
            await self.refuse(refusal)
        return await self.close(code, refusal.code)


async def listen(
    inbox: WsInbox, outlet: ElevenLabsOutlet, most: int, take: Callable[[Any], Awaitable[None]]
) -> None:
    """Take every message's JSON, of `most` letters; one that is refused ends the socket."""
    while (text := await inbox.next()) is not None:
        try:
            if len(text) > most:
                problem = "This message is too long. Send the text in pieces."
                raise ApiError(413, problem, "too_large")
            await take(parse(text))
        except (TimbreError, ApiError, ValidationError) as error:
            return await outlet.end(error, REFUSED)
    return None


class SpokenText:
    """`told`: fields of every message about it."""

    def __init__(
        self, socket: WebSocket, context: ApiContext, outlet: ElevenLabsOutlet, **fields: str
    ) -> None:
        self._socket, self._context, self._outlet, self._fields = socket, context, outlet, fields
        self._how: SpeechBody | None = None
        self._request: SpeechRequest | None = None
        self._open: Flowing | None = None  # the part that takes text
        self._parts: deque[tuple[Flowing, SpeechBody]] = deque()  # the first one is spoken
        self._changed = asyncio.Condition()
        self._flush_due = False  # of the open part
        self._heard = False  # some of the first part was sent
        self._complete = False  # all text is there

    @property
    def speaks_alone(self) -> bool:
        """Whether it has something to say without more text, or nothing of it was heard yet."""
        return bool(self._parts) and not (self._open and self._heard)

    async def configure(self, voice: str, settings: VoiceSettings) -> None:
        """Take new settings, from the next part on. Raises ApiError, ValidationError or an error of
        the engine."""
        query = self._socket.query_params
        fields = {name: query[name] for name in QUERY if query.get(name)}
        message = SpeechText.model_validate({"text": "", **fields})
        message = message.model_copy(update={"voice_settings": settings})
        format = query.get("output_format", "") or DEFAULT_FORMAT
        self._how = speech_body(voice, message, format[:64])
        self._request = await self._context.request(self._how, "")

    async def feed(self, text: str) -> None:
        """Raises an error of the engine, or ApiError."""
        if self._open:
            return await self._open.feed(text)
        if not text.strip():
            return None
        assert self._request  # configured
        assert self._how
        self._context.charge(self._socket)
        request = replace(self._request, text=text, open_text=True)
        stream = await self._context.submit(request)
        self._request = replace(self._request, seed=stream.seed)
        self._open = Flowing(stream, text)
        async with self._changed:
            self._parts.append((self._open, self._how))
            self._changed.notify_all()
        return None

    def flush(self) -> None:
        """End the part; while too many of them wait, as soon as one is said."""
        if self._open and len(self._parts) <= self._context.settings.utterances:
            self._close()
        self._flush_due = self._open is not None

    def drop_open(self) -> None:
        """Leave out what was not flushed."""
        if self._open and not self._flush_due:
            self._open.cancel()
            self._open = None

    async def complete(self) -> None:
        """No more text comes."""
        self._close()
        async with self._changed:
            self._complete = True
            self._changed.notify_all()

    async def speak(self) -> None:
        """Speak all of it. Raises as the outlet and the engine do."""
        while await self._next():
            await self._speak_part(*self._parts[0])
            async with self._changed:
                self._parts.popleft()
            if self._flush_due:
                self.flush()

    def cancel(self) -> None:
        for part, _ in self._parts:
            part.cancel()

    def _close(self) -> None:
        if self._open:
            self._open.close()
            self._open = None

    async def _next(self) -> bool:
        """Whether there is a part to speak; False at the end."""
        async with self._changed:
            await self._changed.wait_for(lambda: self._parts or self._complete)
        return bool(self._parts)

    async def _speak_part(self, flowing: Flowing, how: SpeechBody) -> None:
        self._heard, render, sent = False, KeptRender(how.output), 0
        watch = self._context.metrics.watch("socket", how.response_format)
        async for part in flowing.parts():
            async with part.stream:
                try:
                    async for piece in pieces(part.stream, render):
                        watch.first()
                        self._heard = True
                        await self._tell(b64encode(piece).decode(), None)
                        self._outlet.plays((render.samples - sent) / SAMPLE_RATE)
                        sent = render.samples
                finally:
                    watch.end(part.stream.end)
            if part.stream.end and part.stream.end.reason != "cancelled":
                await self._tell("", await _times(flowing, part, render, how.speed))

    async def _tell(self, audio: str, times: dict[str, Any] | None) -> None:
        both = {"normalizedAlignment": times, "alignment": times}
        await self._outlet.json({"audio": audio, "isFinal": None, **both, **self._fields})


async def _times(flowing: Flowing, part: Part, render: KeptRender, speed: float) -> dict[str, Any]:
    spoken = (flowing.text_of(part), render.heard(), speed)
    return (await anyio.to_thread.run_sync(align, *spoken)).milliseconds()


def is_gone(error: Exception) -> bool:
    """Whether nobody is there to be told of an error."""
    return isinstance(error, WebSocketDisconnect)
