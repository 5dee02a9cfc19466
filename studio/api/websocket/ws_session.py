"""The receiving half of a WebSocket session.

`ws_sender` sends. A cancel ends the current and all waiting utterances, and the next text starts a
new one on the same socket (barge-in). docs/api.md describes the messages.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Literal

from pydantic import ValidationError
from starlette.websockets import WebSocket

from engine import SpeechRequest, TimbreError
from studio.api.api_context import ApiContext
from studio.api.bodies.inline_reference import is_data_url
from studio.api.bodies.json_body import parse
from studio.api.bodies.schemas import Body, Configuration
from studio.api.errors import ApiError, explain
from studio.api.websocket.ws_inbox import WsInbox, run_together
from studio.api.websocket.ws_sender import Turn, WsOutlet, WsSender
from studio.api.websocket.ws_utterance import Flowing, Split, Utterance

DONE = 1000


class InputText(Body):
    type: Literal["input.text"]
    text: str


class InputDone(Body):
    type: Literal["input.done"]


class InputCancel(Body):
    type: Literal["input.cancel"]


class SessionClose(Body):
    type: Literal["session.close"]


Message = Configuration | InputText | InputDone | InputCancel | SessionClose
_MESSAGES: dict[str, type[Message]] = {
    "session.config": Configuration,
    "input.text": InputText,
    "input.done": InputDone,
    "input.cancel": InputCancel,
    "session.close": SessionClose,
}


class WsSession:
    """One WebSocket, from acceptance to close."""

    def __init__(self, socket: WebSocket, context: ApiContext) -> None:
        self._socket, self._context = socket, context
        self._outlet = WsOutlet(socket, context.settings.stall_timeout)
        self._sender = WsSender(self._outlet, context.metrics)
        self._how = Configuration(type="session.config")
        self._request: SpeechRequest | None = None  # None: not built yet
        self._configured = True  # false after a refused session.config
        self._open: Turn | None = None  # the turn that takes text
        self._cancelled = False  # the open text was cancelled, so its input.done is ignored
        self._refused = False  # some of the text was, so the rest of it is not spoken
        self._count = 0
        patience = context.settings.idle_timeout
        self._inbox = WsInbox(socket, self._outlet, patience, self._speaking, self._outlet.error)

    def _speaking(self) -> bool:
        turns = self._sender.turns
        return bool(turns) and not (self._open and turns[0].heard)

    async def run(self) -> None:
        """Serve until the client leaves, or has read nothing for too long."""
        try:
            await run_together(self._sender.run, self._listen)
        finally:
            self._sender.cancel()

    async def _listen(self) -> None:
        while (text := await self._inbox.next()) is not None:
            try:
                message = self._parse(text)
                if isinstance(message, SessionClose):
                    return await self._outlet.close(DONE, "")
                await self._take(message)
            except (TimbreError, ApiError, ValidationError) as error:
                await self._outlet.error(explain(error))
        return None

    def _parse(self, text: str) -> Message:
        try:
            fields = parse(text)
            kind = _MESSAGES[fields["type"]]
        except (ApiError, KeyError, TypeError) as error:
            if isinstance(error, ApiError) and error.code != "invalid_json":
                raise
            known = ", ".join(_MESSAGES)
            problem = f"A message is a JSON object whose type is one of {known}."
            raise ApiError(400, problem, "invalid_message", "type") from None
        if kind is not Configuration and len(text) > self._context.settings.message_bytes:
            raise ApiError(413, "This message is too long. Send the text in pieces.", "too_large")
        if kind is Configuration:
            self._configured = False  # until it is accepted
        return kind.model_validate(fields)

    async def _take(self, message: Message) -> None:
        """Handle a message."""
        if isinstance(message, Configuration):
            if is_data_url(message.ref_audio or ""):
                self._context.charge(self._socket)  # it is decoded, whatever follows
            self._request = await self._context.request(message, "")
            self._how, self._configured = message, True
            self._refused = self._refused and self._open is not None
        elif isinstance(message, InputText):
            await self._take_text(message.text)
        elif isinstance(message, InputDone):
            await self._finish_text()
        elif isinstance(message, InputCancel):
            self._sender.cancel()
            self._outlet.played = 0.0
            self._cancelled, self._open = self._open is not None, None
            self._refused = False

    async def _take_text(self, text: str) -> None:
        """After a piece that is refused the others have lost their meaning."""
        if not self._configured and not self._open:
            problem = "The last session.config was refused. Send a valid one before more text."
            raise ApiError(409, problem, "not_configured")
        if self._refused:
            problem = "Text before this was refused. Send input.done, then the whole of it again."
            raise ApiError(409, problem, "text_refused")
        self._refused = True
        await self._feed(text)
        self._refused = False

    async def _feed(self, text: str) -> None:
        if self._open:  # one that has ended early drops the rest of its text
            return await self._open.utterance.feed(text)
        if self._request is None:
            self._request = await self._context.request(self._how, "")
        return await self._begin(self._request, text) if text.strip() else None

    async def _begin(self, request: SpeechRequest, text: str) -> None:
        if self._sender.crowded(self._context.settings.utterances):
            problem = "Too many utterances are waiting. Cancel, or wait for the next session.done."
            raise ApiError(429, problem, "too_many_utterances", headers={"Retry-After": "1"})
        self._context.charge(self._socket)
        utterance: Utterance
        if self._how.split_granularity != "none":
            engine = self._context.engine
            utterance = Split(request, engine.submit, text, engine.settings.max_text)
        else:
            opened = replace(request, text=text, open_text=True)
            utterance = Flowing(await self._context.submit(opened), text)
        self._open = Turn(self._count, utterance, self._how)
        self._count += 1
        self._sender.add(self._open)

    async def _finish_text(self) -> None:
        if self._open:
            self._open.utterance.close()
        elif not self._cancelled:  # an empty utterance
            await self._outlet.tell(
                "session.done",
                utterance_index=self._count,
                total_sentences=0,
                finish_reason="error" if self._refused else "finished",
                sentences=[],
            )
            self._count += 1
        self._cancelled, self._open, self._refused = False, None, False
