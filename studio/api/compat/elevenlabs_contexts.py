"""ElevenLabs' multi-stream-input: several texts over one WebSocket, each in a context of its own.

A context begins with its first text. It is closed when somebody interrupts: what was flushed is
still said, the rest is not. The contexts are spoken at the same time.
"""

from __future__ import annotations

from typing import Annotated, Any, Final

import anyio
from anyio.abc import TaskGroup
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
from studio.api.errors import too_many
from studio.api.rates import address_of
from studio.api.websocket.ws_inbox import WsInbox, run_together

router = APIRouter(tags=["elevenlabs"])
MOST_OPEN: Final = 5  # contexts of a socket, as there
MOST: Final = 10  # with those that are closed and still say what was flushed
UNNAMED: Final = "default"


class ContextMessage(Body):
    """Text for a context, or what is to be done with it; an empty text only keeps it."""

    text: Annotated[str, Field(max_length=100_000)] = ""
    context_id: Annotated[str, Field(max_length=128)] = UNNAMED
    flush: bool = False
    close_context: bool = False
    close_socket: bool = False
    voice_settings: VoiceSettings | None = None
    generation_config: dict[str, Any] | None = None


@router.websocket("/v1/text-to-speech/{voice}/multi-stream-input")
async def multi_stream_input(socket: WebSocket, voice: str) -> None:
    context = context_of(socket)
    with context.sockets.place(address_of(socket.scope)):
        await socket.accept()
        await ContextSession(socket, context, voice).run()


class ContextSession:
    """One WebSocket, from acceptance to close."""

    def __init__(self, socket: WebSocket, context: ApiContext, voice: str) -> None:
        self._socket, self._context, self._voice = socket, context, voice
        self._outlet = ElevenLabsOutlet(socket, context.settings.stall_timeout)
        self._open: dict[str, SpokenText] = {}  # contexts that take text
        self._all: set[SpokenText] = set()  # also those that are closed and not yet silent
        self._closing = False  # of the socket
        self._silent = anyio.Event()  # it is closing, and all is said
        self._tasks: TaskGroup
        patience = context.settings.idle_timeout
        self._inbox = WsInbox(socket, self._outlet, patience, self._speaking, self._outlet.refuse)

    def _speaking(self) -> bool:
        return any(text.speaks_alone for text in self._all)

    async def run(self) -> None:
        """Serve until the client closes the socket or leaves, or something fails."""
        async with anyio.create_task_group() as self._tasks:
            await run_together(self._close, self._listen)
            self._tasks.cancel_scope.cancel()

    async def _close(self) -> None:
        await self._silent.wait()
        await self._outlet.close(DONE, "")

    async def _listen(self) -> None:
        most = self._context.settings.message_bytes
        await listen(self._inbox, self._outlet, most, self._take)

    async def _take(self, fields: Any) -> None:
        message = ContextMessage.model_validate(fields)
        if self._closing:
            return
        text = self._open.get(message.context_id)
        if text is None and message.text:
            text = await self._begin(message)
        elif text and message.voice_settings:
            await text.configure(self._voice, message.voice_settings)
        if text:
            await text.feed(message.text)
            if message.flush:
                text.flush()
            if message.close_context:
                await self._end(message.context_id)
        if message.close_socket:
            self._closing = True
            for name in [*self._open]:
                await self._end(name)
            self._check_silence()

    async def _begin(self, message: ContextMessage) -> SpokenText:
        if len(self._open) >= MOST_OPEN or len(self._all) >= MOST:
            problem = f"A socket has at most {MOST_OPEN} contexts. Close one before the next."
            raise too_many(problem, "max_active_contexts", 1)
        name = message.context_id
        text = SpokenText(self._socket, self._context, self._outlet, contextId=name)
        await text.configure(self._voice, message.voice_settings or VoiceSettings())
        self._open[name] = text
        self._all.add(text)
        self._tasks.start_soon(self._speak, name, text)
        return text

    async def _end(self, name: str) -> None:
        """Close a context: another one may have its name from now on."""
        text = self._open.pop(name)
        text.drop_open()
        await text.complete()

    async def _speak(self, name: str, text: SpokenText) -> None:
        try:
            await text.speak()
            await self._outlet.json({"audio": None, "isFinal": True, "contextId": name})
        except Exception as error:
            if not is_gone(error):  # else the listening half sees it too
                await self._outlet.end(error, FAILED)
        finally:
            text.cancel()
            self._all.discard(text)
            self._check_silence()

    def _check_silence(self) -> None:
        if self._closing and not self._all:
            self._silent.set()
