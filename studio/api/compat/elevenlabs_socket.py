"""ElevenLabs' stream-input: text in pieces over a WebSocket, audio and the times of characters out.

Speech begins with the first words, so `try_trigger_generation` and `chunk_length_schedule` change
nothing.
"""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, WebSocket
from pydantic import Field

from studio.api.api_context import ApiContext, context_of
from studio.api.bodies.schemas import Body
from studio.api.compat.elevenlabs import VoiceSettings
from studio.api.compat.elevenlabs_text import (
    DONE,
    FAILED,
    ElevenLabsOutlet,
    SpokenText,
    is_gone,
    listen,
)
from studio.api.rates import address_of
from studio.api.websocket.ws_inbox import WsInbox, run_together

router = APIRouter(tags=["elevenlabs"])


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
        self._context, self._voice = context, voice
        self._outlet = ElevenLabsOutlet(socket, context.settings.stall_timeout)
        self._text = SpokenText(socket, context, self._outlet)
        self._configured = False
        self._complete = False
        patience = context.settings.idle_timeout
        self._inbox = WsInbox(
            socket, self._outlet, patience, lambda: self._text.speaks_alone, self._outlet.refuse
        )

    async def run(self) -> None:
        """Serve until everything is spoken, the client leaves, or something fails."""
        try:
            await run_together(self._speak, self._listen)
        finally:
            self._text.cancel()

    async def _listen(self) -> None:
        most = self._context.settings.message_bytes
        await listen(self._inbox, self._outlet, most, self._take)

    async def _take(self, fields: Any) -> None:
        piece = PieceOfText.model_validate(fields)
        if self._complete:
            return  # the last text was there already
        if not self._configured:
            await self._text.configure(self._voice, piece.voice_settings)
            self._configured = True
        await self._text.feed(piece.text)
        if piece.flush:
            self._text.flush()
        if not piece.text:
            self._complete = True
            await self._text.complete()

    async def _speak(self) -> None:
        try:
            await self._text.speak()
            await self._outlet.json({"audio": None, "isFinal": True})
            await self._outlet.close(DONE, "")
        except Exception as error:
            if is_gone(error):
                raise
            await self._outlet.end(error, FAILED)
