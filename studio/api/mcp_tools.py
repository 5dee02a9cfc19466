"""Tools for programs that speak MCP, at /mcp: speak, list voices, design, clone with consent.

The package `mcp` knows the protocol (streamable HTTP, each request by itself); limits, keys and
origins are those of every path of the API.
"""

from __future__ import annotations

import asyncio
import logging
from base64 import b64encode
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal

import anyio.to_thread
from pydantic import Field
from starlette.requests import Request
from starlette.types import Message, Receive, Scope, Send

from studio import VERSION
from studio.api.api_context import ApiContext
from studio.api.bodies.inline_reference import audio_of, is_data_url
from studio.api.bodies.json_body import parse
from studio.api.bodies.schemas import Body, DescribedVoice, Language, Name, SpeechBody
from studio.api.errors import UNFORESEEN, ApiError, explain
from studio.api.json_text import to_json
from studio.api.methods import refuse_method
from studio.api.responses.audio_output import render
from studio.api.responses.disconnect import cancel_on_disconnect
from studio.api.responses.encoding import MEDIA_TYPES
from studio.api.responses.streaming_response import watched_whole
from studio.voices.consent import is_consent

if TYPE_CHECKING:
    from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
    from mcp_types import CallToolResult, ContentBlock

log = logging.getLogger(__name__)
PATH: Final = "/mcp"
LONGEST: Final = 5_000  # characters of one call: its audio is one message
GUIDE: Final = (
    "Speaks texts aloud. Ask list_voices first, and give one of its names to speak. A voice may "
    "only be cloned if the person who is heard has agreed to it."
)


class Speak(Body):
    """Speak a text. The answer is the audio."""

    text: Annotated[str, Field(min_length=1, max_length=LONGEST, description="What to say.")]
    voice: Annotated[str, Field(max_length=200, description="A name of list_voices.")] = ""
    language: Language = "auto"
    instructions: Annotated[
        str, Field(max_length=1000, description="How to say it, for voices that follow this.")
    ] = ""
    speed: float = Field(1.0, ge=0.25, le=4.0)
    format: Literal["mp3", "wav", "flac", "opus"] = "mp3"


class ListVoices(Body):
    """The voices that are here, with their kind and the languages that can be spoken."""


class DesignVoice(Body):
    """Make a voice out of a description and keep it. Not every model can."""

    name: Name
    description: Annotated[str, Field(min_length=1, max_length=2000)]


class CloneVoice(Body):
    """Make a voice out of a recording and keep it. Only with the consent of who is heard in it."""

    name: Name
    recording: Annotated[str, Field(description="data:audio/wav;base64,… of 1 to 60 seconds.")]
    consent: Annotated[
        bool, Field(description="true: the person who is heard agrees that the voice is copied.")
    ]
    transcript: Annotated[str, Field(max_length=4000, description="What is said in it.")] = ""


class VoiceTools:
    """The tools as methods."""

    def __init__(self, context: ApiContext) -> None:
        self._context = context
        self.by_name: dict[str, tuple[type[Body], Callable[[Any], Awaitable[Any]]]] = {
            "speak": (Speak, self.speak),
            "list_voices": (ListVoices, self.list_voices),
            "design_voice": (DesignVoice, self.design_voice),
            "clone_voice": (CloneVoice, self.clone_voice),
        }

    async def speak(self, wanted: Speak) -> list[ContentBlock]:
        from mcp_types import AudioContent, TextContent

        body = SpeechBody(
            input=wanted.text,
            voice=wanted.voice or None,
            language=wanted.language,
            instructions=wanted.instructions,
            speed=wanted.speed,
            response_format=wanted.format,
        )
        watch = self._context.metrics.watch("mcp", wanted.format)
        request = await self._context.request(body, body.input, live=False)
        stream = await self._context.submit(request)
        pcm = await watched_whole(stream, watch)
        data = await anyio.to_thread.run_sync(render, pcm, body.output)
        notices = "".join(f" {notice}" for notice in stream.notices)
        summary = f"Spoken with seed {stream.seed}.{notices}"
        sound = AudioContent(
            type="audio", data=b64encode(data).decode(), mime_type=MEDIA_TYPES[wanted.format]
        )
        return [sound, TextContent(type="text", text=summary)]

    async def list_voices(self, wanted: ListVoices) -> dict[str, Any]:
        saved = await anyio.to_thread.run_sync(self._context.library.list)
        presets = [{"name": name, "kind": "preset"} for name in self._context.voices.speakers()]
        kept = [
            {"name": voice.name, "kind": voice.card.kind, "note": voice.card.note}
            for voice in saved
        ]
        able = self._context.engine.capabilities().values()
        languages = dict.fromkeys(each for model in able for each in model.languages)
        return {
            "voices": [*presets, *kept],
            "languages": [*languages],
            "can_design": any(model.design for model in able),
            "can_clone": any(model.clone for model in able),
        }

    async def design_voice(self, wanted: DesignVoice) -> dict[str, Any]:
        body = DescribedVoice(name=wanted.name, prompt=wanted.description)
        saved = await self._context.makers.described(body.name, body.prompt)
        return {"voice": saved.name, "id": saved.id}

    async def clone_voice(self, wanted: CloneVoice) -> dict[str, Any]:
        if not is_consent(wanted.consent):
            message = "Only clone a voice whose owner has agreed, and say so: consent: true."
            raise ApiError(400, message, "consent_missing", "consent")
        if not is_data_url(wanted.recording):
            message = "Send the recording as data:audio/wav;base64,…; nothing is fetched or opened."
            raise ApiError(400, message, "address_refused", "recording")
        name = await self._context.makers.new_name(wanted.name)
        limit = self._context.settings.audio_bytes
        recording = await anyio.to_thread.run_sync(audio_of, wanted.recording, limit, "recording")
        transcript = wanted.transcript.strip()
        voice = await self._context.voices.clone(recording, transcript, None, "recording")
        details = {"consent": True, "made_from": "a recording"}
        saved = await self._context.makers.save(name, voice, None, **details)
        return {"voice": saved.name, "id": saved.id}


class ToolServer:
    """An ASGI application that answers MCP. It begins with the first request, in its event loop."""

    def __init__(self, context: ApiContext) -> None:
        self._tools = VoiceTools(context)
        self._most = context.settings.body_bytes
        self._running: tuple[asyncio.AbstractEventLoop, asyncio.Task[None]] | None = None
        self._manager: StreamableHTTPSessionManager | None = None
        self._ready = asyncio.Event()  # the manager takes requests

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        request = Request(scope, receive)
        if request.method != "POST":  # a stream of events would never have any, and stay
            raise refuse_method(request.method, PATH, ["POST"])
        body = await request.body()
        if body:
            parse(body)  # within the limits of every JSON here
        manager = await self._started()
        work = manager.handle_request(scope, _again(body, receive), send)
        await cancel_on_disconnect(request, work)

    async def _started(self) -> StreamableHTTPSessionManager:
        loop = asyncio.get_running_loop()
        if self._running and self._running[0] is loop and self._manager:
            await self._ready.wait()  # another first request has just begun it
            return self._manager
        manager, ready = self._new_manager(), asyncio.Event()

        async def run() -> None:
            async with manager.run():
                ready.set()
                await asyncio.Event().wait()  # to the end of the event loop

        self._running = loop, asyncio.create_task(run(), name="timbre-mcp")
        self._manager, self._ready = manager, ready
        await ready.wait()
        return manager

    def _new_manager(self) -> StreamableHTTPSessionManager:
        from mcp.server.lowlevel import Server
        from mcp.server.streamable_http_manager import StreamableHTTPSessionManager

        server: Server[Any] = Server(
            "timbre",
            version=VERSION,
            instructions=GUIDE,
            on_list_tools=self._list,
            on_call_tool=self._call,
        )
        # Each request alone: nothing is kept for who may not come back.
        return StreamableHTTPSessionManager(
            server, json_response=True, stateless=True, max_request_body_size=self._most
        )

    async def _list(self, context: Any, params: Any) -> Any:
        from mcp_types import ListToolsResult, Tool

        tools = [
            Tool(name=name, description=kind.__doc__, input_schema=kind.model_json_schema())
            for name, (kind, _) in self._tools.by_name.items()
        ]
        return ListToolsResult(tools=tools)

    async def _call(self, context: Any, params: Any) -> CallToolResult:
        try:
            return _result(await self._work(params.name, params.arguments or {}))
        except Exception as error:
            refusal = explain(error)
            if refusal is UNFORESEEN:
                log.exception("a tool failed")
            return _result(refusal.message, failed=True)

    async def _work(self, name: str, arguments: dict[str, Any]) -> Any:
        if name not in self._tools.by_name:
            there = ", ".join(self._tools.by_name)
            raise ApiError(404, f"There is no tool '{name[:80]}'. There are: {there}.", "not_found")
        kind, work = self._tools.by_name[name]
        return await work(kind.model_validate(arguments))


def _result(made: Any, failed: bool = False) -> CallToolResult:
    from mcp_types import CallToolResult, TextContent

    if isinstance(made, list):
        return CallToolResult(content=made)
    text = made if isinstance(made, str) else to_json(made)
    content = [TextContent(type="text", text=text)]
    structured = made if isinstance(made, dict) else None
    return CallToolResult(content=content, structured_content=structured, is_error=failed)


def _again(body: bytes, receive: Receive) -> Receive:
    """A body that was read, to be read once more."""
    given = False

    async def again() -> Message:
        nonlocal given
        if given:
            return await receive()
        given = True
        return {"type": "http.request", "body": body, "more_body": False}

    return again
