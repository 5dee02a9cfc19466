"""A session of OpenAI's Realtime, its speech half: text comes in, responses are spoken.

Responses of the conversation come one at a time, as there; those beside it (`conversation: none`)
wait for their turn. What is listening is refused. docs/api.md describes the events.
"""

from __future__ import annotations

import asyncio
from typing import Any, Final

from pydantic import ValidationError
from starlette.websockets import WebSocket, WebSocketDisconnect

from engine import InvalidSetting, SpeechRequest, TimbreError
from studio.api.api_context import ApiContext
from studio.api.bodies.json_body import parse
from studio.api.bodies.realtime_events import (
    EVENTS,
    FORMATS,
    NOT_OFFERED,
    AudioOutput,
    ClientEvent,
    Item,
    ItemCreate,
    ItemDelete,
    ItemReference,
    ItemRetrieve,
    ItemTruncate,
    ResponseCancel,
    ResponseCreate,
    ResponseOptions,
    Session,
    SessionUpdate,
    Spoken,
)
from studio.api.bodies.schemas import Configuration, VoiceId
from studio.api.errors import ApiError, explain
from studio.api.realtime.conversation import Conversation, Message
from studio.api.realtime.response import Response, new_id
from studio.api.websocket.ws_inbox import WsInbox, run_together
from studio.api.websocket.ws_sender import STALLED, WsOutlet

SPEAKS: Final = {"type": "audio/pcm", "rate": 24_000}


class RealtimeOutlet:
    """Sends events, each with an id of its own."""

    def __init__(self, outlet: WsOutlet) -> None:
        self._outlet = outlet

    async def tell(self, type: str, **fields: Any) -> None:
        await self._outlet.tell(type, event_id=new_id("event"), **fields)

    def played(self, seconds: float) -> None:
        self._outlet.plays(seconds)

    async def error(self, error: ApiError, event_id: str | None = None) -> None:
        """Send an error in OpenAI's form; `event_id` names the client's event that was refused."""
        fields = {**error.body()["error"], "event_id": event_id}
        await self.tell("error", error=fields)


class RealtimeSession:
    """One WebSocket, from acceptance to close."""

    def __init__(
        self, socket: WebSocket, context: ApiContext, session: Session | None = None
    ) -> None:
        self._socket, self._context = socket, context
        self._socket_outlet = WsOutlet(socket, context.settings.stall_timeout)
        self._outlet = RealtimeOutlet(self._socket_outlet)
        self._session = session or Session()
        self._id = new_id("sess")
        self._conversation = Conversation()
        self._responses: list[Response] = []  # the first is being spoken
        self._work = asyncio.Event()
        patience = context.settings.idle_timeout
        self._inbox = WsInbox(
            socket, self._socket_outlet, patience, self._speaking, self._outlet.error
        )

    def _speaking(self) -> bool:
        return bool(self._responses)

    async def run(self) -> None:
        """Serve until the client leaves, or has read nothing for too long."""
        try:
            created = session_fields(self._session, self._id, self._context)
            await self._outlet.tell("session.created", session=created)
            await run_together(self._speak, self._listen)
        except (TimeoutError, WebSocketDisconnect):
            pass  # before the first message
        finally:
            for response in self._responses:
                response.cancel()

    async def _speak(self) -> None:
        try:
            while await self._work.wait():
                self._work.clear()
                while self._responses:
                    await self._responses[0].speak(self._outlet, self._context.metrics)
                    self._responses.pop(0)
        except TimeoutError:
            await self._socket_outlet.close(STALLED, "nothing was taken for too long")

    async def _listen(self) -> None:
        while (text := await self._inbox.next()) is not None:
            event_id: str | None = None
            try:
                fields = self._fields(text)
                sent = fields.get("event_id")
                event_id = sent if isinstance(sent, str) and len(sent) <= 128 else None
                await self._take(_kind(fields["type"]).model_validate(fields))
            except (TimbreError, ApiError, ValidationError) as error:
                await self._outlet.error(explain(error), event_id)

    def _fields(self, text: str) -> dict[str, Any]:
        """An event's fields. Raises ApiError."""
        if len(text) > self._context.settings.message_bytes:
            raise ApiError(413, "This event is too long. Send the text in parts.", "too_large")
        fields = parse(text)
        if not isinstance(fields, dict) or not isinstance(fields.get("type"), str):
            raise ApiError(400, "An event is a JSON object with a type.", "invalid_event", "type")
        checked: dict[str, Any] = fields
        return checked

    async def _take(self, event: ClientEvent) -> None:
        if isinstance(event, SessionUpdate):
            await self._configure(event.session)
        elif isinstance(event, ItemCreate):
            await self._add(event)
        elif isinstance(event, ItemDelete):
            self._conversation.delete(event.item_id)
            await self._outlet.tell("conversation.item.deleted", item_id=event.item_id)
        elif isinstance(event, ItemRetrieve):
            item = self._conversation.get(event.item_id).fields()
            await self._outlet.tell("conversation.item.retrieved", item=item)
        elif isinstance(event, ItemTruncate):
            self._conversation.truncate(event.item_id, event.audio_end_ms / 1000)
            place = {"content_index": 0, "audio_end_ms": event.audio_end_ms}
            await self._outlet.tell("conversation.item.truncated", item_id=event.item_id, **place)
        elif isinstance(event, ResponseCreate):
            await self._respond(event.response)
        else:
            self._cancel(event)

    async def _configure(self, session: Session) -> None:
        """Fields that are sent replace those there; all hold once the voice is known to be here."""
        changed = _merged(self._session, session)
        await _request(_configuration(changed), "", self._context)
        self._session = changed
        fields = session_fields(changed, self._id, self._context)
        await self._outlet.tell("session.updated", session=fields)

    async def _add(self, event: ItemCreate) -> None:
        item_id = event.item.id or new_id("item")
        before = self._conversation.add(item_id, event.item, event.previous_item_id)
        item = self._conversation.get(item_id).fields()
        await self._outlet.tell("conversation.item.added", previous_item_id=before, item=item)
        await self._outlet.tell("conversation.item.done", previous_item_id=before, item=item)

    async def _respond(self, options: ResponseOptions) -> None:
        beside = options.conversation == "none"
        self._check_turn(beside)
        spoken = _merged(self._session, options)
        how = _configuration(spoken)
        text = self._text(options)
        request = await _request(how, text, self._context)
        self._context.charge(self._socket)
        stream = await self._context.submit(request)
        if options.input is None:
            self._conversation.take()
        conversation = None if beside else f"conv_{self._id.removeprefix('sess_')}"
        shown = {
            "audio": {"output": _output(spoken, self._context)},
            "conversation_id": conversation,
            "max_output_tokens": spoken.max_output_tokens or "inf",
            "metadata": options.metadata,
        }
        follow = None if beside else self._follow
        response = Response(stream, text, how.output, shown, follow)
        try:
            await self._outlet.tell("response.created", response=response.fields())
        except BaseException:
            response.cancel()
            raise
        self._responses.append(response)
        self._work.set()

    def _check_turn(self, beside: bool) -> None:
        active = [each for each in self._responses if each.follow and not each.cancelled]
        if active and not beside:
            problem = (
                f"The response {active[0].id} is still spoken. Cancel it, or wait for its end."
            )
            raise ApiError(400, problem, "conversation_already_has_active_response")
        if len(self._responses) >= self._context.settings.utterances:
            problem = "Too many responses are waiting. Wait for a response.done."
            raise ApiError(429, problem, "too_many_utterances", headers={"Retry-After": "1"})

    def _text(self, options: ResponseOptions) -> str:
        """What is spoken. Raises ApiError if there is nothing."""
        if options.input is None:
            text = self._conversation.waiting()
        else:
            text = "\n".join(filter(None, map(self._text_of, options.input)))
        if not text.strip():
            problem = (
                "There is no text to speak: send it by conversation.item.create first, or as the "
                "response's input."
            )
            raise ApiError(400, problem, "no_text", "response.input")
        return text

    def _text_of(self, item: Item | ItemReference) -> str:
        if isinstance(item, ItemReference):
            return self._conversation.get(item.id).text
        return "" if item.role == "system" else item.text

    def _follow(self, message: Message) -> str | None:
        before = self._conversation.last()
        self._conversation.append(message)
        return before

    def _cancel(self, event: ResponseCancel) -> None:
        wanted = event.response_id
        live = [each for each in self._responses if not each.cancelled]
        found = [each for each in live if wanted in (None, each.id) and (wanted or each.follow)]
        if not found:
            problem = "There is no response to cancel."
            raise ApiError(400, problem, "response_cancel_not_active", "response_id")
        self._socket_outlet.played = 0.0
        for each in found:
            each.cancel()


def session_fields(session: Session, id: str, context: ApiContext) -> dict[str, Any]:
    """A session as its client is told of it."""
    return {
        "type": "realtime",
        "object": "realtime.session",
        "id": id,
        "model": session.model or "",
        "output_modalities": ["audio"],
        "instructions": session.instructions or "",
        "max_output_tokens": session.max_output_tokens or "inf",
        "tools": [],
        "tool_choice": "none",
        "audio": {"input": None, "output": _output(session, context)},
    }


def _output(session: Session, context: ApiContext) -> dict[str, Any]:
    output = session.audio.output
    voice = output.voice.id if isinstance(output.voice, VoiceId) else output.voice
    default = next(iter(context.voices.speakers()), "default")
    kind = output.format.type if output.format else "audio/pcm"
    format = SPEAKS if kind == "audio/pcm" else {"type": kind}
    return {"format": format, "voice": voice or default, "speed": output.speed or 1.0}


async def check_session(session: Session, context: ApiContext) -> None:
    """Raises ApiError or an error of the engine. A voice may be named later."""
    how = _configuration(session)
    if how.voice is not None:
        await _request(how, "", context)


async def _request(how: Configuration, text: str, context: ApiContext) -> SpeechRequest:
    """Instructions are first of all for who writes answers, so a voice that follows none is no
    error here."""
    try:
        return await context.request(how, text)
    except InvalidSetting:
        plain = how.model_copy(update={"instructions": ""})
        return await context.request(plain, text)


def _kind(name: str) -> type[ClientEvent]:
    """Raises ApiError for what is not offered."""
    for prefix, reason in NOT_OFFERED.items():
        if name.startswith(prefix):
            raise ApiError(400, reason, "not_supported", "type")
    if name not in EVENTS:
        problem = f"There is no event '{name[:64]}'. There are: {', '.join(EVENTS)}."
        raise ApiError(400, problem, "unknown_event", "type")
    return EVENTS[name]


def _merged(before: Session, new: Spoken) -> Session:
    """The session with what is set in `new`."""
    names = Session.model_fields.keys() & new.model_fields_set - {"audio", "type"}
    changes: dict[str, Any] = {name: getattr(new, name) for name in names}
    old, set_now = before.audio.output, new.audio.output
    output = {name: getattr(set_now, name) for name in set_now.model_fields_set}
    changes["audio"] = before.audio.model_copy(update={"output": old.model_copy(update=output)})
    return before.model_copy(update=changes)


def _configuration(session: Session) -> Configuration:
    """Raises ApiError."""
    output: AudioOutput = session.audio.output
    media_type = output.format.type if output.format else "audio/pcm"
    format, rate = FORMATS[media_type]
    wanted = output.format.rate if output.format else None
    if wanted not in (None, rate):
        problem = f"{media_type} has {rate} samples a second here."
        raise ApiError(400, problem, "invalid_value", "session.audio.output.format")
    limit = session.max_output_tokens
    if isinstance(limit, int) and limit < 1:
        raise ApiError(400, "At least 1, or inf.", "invalid_value", "max_output_tokens")
    fields = {
        "model": session.model,
        "voice": output.voice.model_dump() if isinstance(output.voice, VoiceId) else output.voice,
        "speed": output.speed,
        "instructions": session.instructions,
        "max_new_tokens": limit if isinstance(limit, int) else None,
        "language": session.language,
        "seed": session.seed,
    }
    kept = {name: value for name, value in fields.items() if value is not None}
    return Configuration.model_validate(
        {"type": "session.config", "response_format": format, "sample_rate": rate, **kept}
    )
