"""ElevenLabs' stream-input: text in pieces over a WebSocket, audio and the times of characters out.

Speech begins with the first words, so `try_trigger_generation` and `chunk_length_schedule` change
nothing. A flush ends a part: its last words are spoken without waiting for more, and then its
characters have their times. An error ends the socket, as there.
"""

from __future__ import annotations

import asyncio
import logging
from base64 import b64encode
from collections import deque
from dataclasses import replace
from typing import Annotated, Any, Final

import anyio.to_thread
from fastapi import APIRouter, WebSocket
from pydantic import Field, ValidationError
from starlette.websockets import WebSocketDisconnect

from engine import SAMPLE_RATE, SpeechRequest, TimbreError
from studio.api.api_context import ApiContext, context_of
from studio.api.bodies.json_body import parse
from studio.api.bodies.schemas import Body, SpeechBody
from studio.api.compat.alignment import align
from studio.api.compat.elevenlabs import (
    DEFAULT_FORMAT,
    SpeechText,
    VoiceSettings,
    speech_body,
)
from studio.api.errors import UNFORESEEN, ApiError, explain
from studio.api.rates import address_of
from studio.api.responses.audio_output import KeptRender
from studio.api.responses.streaming_response import pieces
from studio.api.websocket.ws_inbox import WsInbox, run_together
from studio.api.websocket.ws_sender import STALLED, WsOutlet
from studio.api.websocket.ws_utterance import Flowing, Part

log = logging.getLogger(__name__)
router = APIRouter(tags=["elevenlabs"])
DONE: Final = 1000
REFUSED: Final = 1008
FAILED: Final = 1011
QUERY: Final = ("model_id", "language_code", "seed", "apply_text_normalization")


class PieceOfText(Body):
    """A message: the first one has the settings; an empty text is the end."""

    text: Annotated[str, Field(max_length=100_000)]
    flush: bool = False
    try_trigger_generation: bool = True
    voice_settings: VoiceSettings = VoiceSettings()
    generation_config: dict[str, Any] | None = None


@router.websocket("/v1/text-to-speech/{voice}/stream-input")
async def stream_input(socket: WebSocket, voice: str) -> None:
    context = context_of(socket)
    with context.sockets.place(address_of(socket.scope)):
        await socket.accept()
        await ElevenLabsSession(socket, context, voice).run()


class ElevenLabsSession:
    """One WebSocket, from acceptance to close."""

    def __init__(self, socket: WebSocket, context: ApiContext, voice: str) -> None:
        self._socket, self._context, self._voice = socket, context, voice
        self._outlet = WsOutlet(socket, context.settings.stall_timeout)
        self._how: SpeechBody | None = None  # of the first message
        self._request: SpeechRequest | None = None
        self._open: Flowing | None = None  # the part that takes text
        self._parts: deque[Flowing] = deque()  # the first one is spoken
        self._changed = asyncio.Condition()
        self._complete = False  # all text is there
        patience = context.settings.idle_timeout
        self._inbox = WsInbox(socket, self._outlet, patience, self._speaking, self._refuse)

    def _speaking(self) -> bool:
        return bool(self._parts) and self._open is None

    async def run(self) -> None:
        """Until everything is spoken, the client leaves, or something fails."""
        try:
            await run_together(self._speak, self._listen)
        finally:
            for part in self._parts:
                part.cancel()

    # What comes.

    async def _listen(self) -> None:
        while (text := await self._inbox.next()) is not None:
            try:
                await self._take(self._read(text))
            except (TimbreError, ApiError, ValidationError) as error:
                refusal = explain(error)
                await self._refuse(refusal)
                return await self._outlet.close(REFUSED, refusal.code)
        return None

    def _read(self, text: str) -> PieceOfText:
        if len(text) > self._context.settings.message_bytes:
            raise ApiError(413, "This message is too long. Send the text in pieces.", "too_large")
        return PieceOfText.model_validate(parse(text))

    async def _take(self, piece: PieceOfText) -> None:
        if self._complete:
            return  # the last text was there already
        if self._how is None:
            await self._configure(piece.voice_settings)
        if piece.text.strip() or self._open:
            await self._feed(piece.text)
        if piece.flush or not piece.text:
            await self._end_part()
        if not piece.text:
            async with self._changed:
                self._complete = True
                self._changed.notify_all()

    async def _configure(self, voice_settings: VoiceSettings) -> None:
        """Raises ApiError, ValidationError or an error of the engine."""
        query = self._socket.query_params
        fields = {name: query[name] for name in QUERY if query.get(name)}
        asked = SpeechText.model_validate({"text": "", **fields})
        asked = asked.model_copy(update={"voice_settings": voice_settings})
        format = query.get("output_format", "") or DEFAULT_FORMAT
        self._how = speech_body(self._voice, asked, format[:64])
        self._request = await self._context.request(self._how, "")

    async def _feed(self, text: str) -> None:
        if self._open:
            return await self._open.feed(text)
        assert self._request  # configured
        async with self._changed:
            most = self._context.settings.utterances
            await self._changed.wait_for(lambda: len(self._parts) < most)
        self._context.charge(self._socket)
        request = replace(self._request, text=text, open_text=True)
        stream = await self._context.submit(request)
        self._request = replace(self._request, seed=stream.seed)
        self._open = Flowing(stream, text)
        async with self._changed:
            self._parts.append(self._open)
            self._changed.notify_all()
        return None

    async def _end_part(self) -> None:
        if self._open:
            self._open.close()
            self._open = None

    # What goes.

    async def _speak(self) -> None:
        try:
            while await self._next():
                await self._speak_part(self._parts[0])
                async with self._changed:
                    self._parts.popleft()
                    self._changed.notify_all()
            await self._outlet.json({"audio": None, "isFinal": True})
            await self._outlet.close(DONE, "")
        except TimeoutError:
            await self._outlet.close(STALLED, "nothing was taken for too long")
        except WebSocketDisconnect:
            raise
        except Exception as error:
            refusal = explain(error)
            if refusal is UNFORESEEN:
                log.exception("a part of a text failed")
            await self._refuse(refusal)
            await self._outlet.close(FAILED, refusal.code)

    async def _next(self) -> bool:
        """Whether there is a part to speak; False at the end."""
        async with self._changed:
            await self._changed.wait_for(lambda: self._parts or self._complete)
        return bool(self._parts)

    async def _speak_part(self, own: Flowing) -> None:
        assert self._how  # configured
        render, told = KeptRender(self._how.output), 0
        watch = self._context.metrics.watch("socket", self._how.response_format)
        async for part in own.parts():
            async with part.stream:
                try:
                    async for piece in pieces(part.stream, render):
                        watch.first()
                        await self._tell(b64encode(piece).decode(), None)
                        self._outlet.plays((render.samples - told) / SAMPLE_RATE)
                        told = render.samples
                finally:
                    watch.end(part.stream.end)
            await self._tell("", await self._times(own, part, render))

    async def _times(self, own: Flowing, part: Part, render: KeptRender) -> dict[str, Any]:
        assert self._how
        asked = (own.text_of(part), render.heard(), self._how.speed)
        return (await anyio.to_thread.run_sync(align, *asked)).milliseconds()

    async def _tell(self, audio: str, times: dict[str, Any] | None) -> None:
        both = {"normalizedAlignment": times, "alignment": times}
        await self._outlet.json({"audio": audio, "isFinal": None, **both})

    async def _refuse(self, error: ApiError) -> None:
        told = {"message": error.message, "error": error.code, "code": REFUSED}
        await self._outlet.json({**told, "param": error.param})
