"""Wyoming, the protocol of Home Assistant's voices: text in, speech out, over a plain socket.

Events are a line of JSON each, with data and payload behind it. The package `wyoming` knows them;
what comes is read here, since it must have bounds. There are no keys in this protocol, so who can
reach the port can speak. Limits are those of the API's WebSockets.
"""

from __future__ import annotations

import asyncio
import importlib
import importlib.util
import logging
import socket
import warnings
from collections import deque
from collections.abc import Iterator
from contextlib import closing, suppress
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from pydantic import ValidationError
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from engine import LANGUAGE_CODES, SAMPLE_RATE, InvalidSetting, SpeechRequest, TimbreError
from studio import VERSION
from studio.api.api_context import ApiContext
from studio.api.bodies.json_body import parse
from studio.api.bodies.schemas import Configuration
from studio.api.errors import UNFORESEEN, ApiError, explain
from studio.api.rates import household
from studio.api.responses.audio_output import Render
from studio.api.responses.streaming_response import pieces
from studio.api.websocket.ws_utterance import Flowing
from studio.settings import StudioSettings

if TYPE_CHECKING:
    from wyoming.event import Event, Eventable

log = logging.getLogger(__name__)
LINE: Final = 16 << 10  # bytes of an event's first line
FORMAT: Final = {"rate": SAMPLE_RATE, "width": 2, "channels": 1}
MISSING: Final = (
    "Wyoming needs one more package. Run pip install 'timbre-studio[wyoming]' "
    "(in a checkout: -r requirements-wyoming.txt), and start again."
)
NO_GUESTS: Final = "Wyoming cannot tell visitors apart. Serve guests without --wyoming."


def wyoming_address(settings: StudioSettings) -> tuple[str, int]:
    """The address to listen on. Raises InvalidSetting."""
    if importlib.util.find_spec("wyoming") is None:
        raise InvalidSetting(MISSING)
    host, _, port = settings.wyoming.rpartition(":")
    if not port.isdecimal() or not 0 < int(port) < 65_536:
        raise InvalidSetting("--wyoming is a port, or an address with a port: 127.0.0.1:10200")
    if settings.guests:
        raise InvalidSetting(NO_GUESTS)
    # Keys keep strangers out, but this protocol has no place for one.
    default = "127.0.0.1" if settings.api.keys else settings.host
    return host.strip("[]") or default, int(port)


class WithWyoming:
    """An application, and a Wyoming server for as long as it runs."""

    def __init__(self, app: ASGIApp, context: ApiContext, address: socket.socket) -> None:
        self._app, self._context, self._address = app, context, address
        self._server: asyncio.Server | None = None
        with warnings.catch_warnings():  # it says on each import that Python 3.13 has no audioop
            warnings.simplefilter("ignore", DeprecationWarning)
            importlib.import_module("wyoming.info")

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "lifespan":
            return await self._app(scope, receive, send)

        async def sent(message: Message) -> None:
            if message["type"] == "lifespan.startup.complete":
                serve = asyncio.start_server(self._connected, sock=self._address, limit=LINE)
                self._server = await serve
            await send(message)

        async def received() -> Message:
            message = await receive()
            if message["type"] == "lifespan.shutdown" and self._server:
                self._server.close()
            return message

        return await self._app(scope, received, sent)

    async def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        peer = writer.get_extra_info("peername") or ("",)
        wire = Wire(reader, writer, self._context)
        with closing(writer), suppress(ConnectionError, TimeoutError, asyncio.CancelledError):
            try:
                with self._context.sockets.place(household(str(peer[0]))):
                    await WyomingSession(wire, self._context, household(str(peer[0]))).run()
            except ApiError as error:  # too many sockets
                await wire.refuse(error)


class Wire:
    """Reads and writes events, within bounds."""

    def __init__(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, context: ApiContext
    ) -> None:
        self._reader, self._writer = reader, writer
        self._most = context.settings.message_bytes
        self._stall = context.settings.stall_timeout
        self._turn = asyncio.Lock()

    async def read(self) -> Event | None:
        """None at the end. Raises ApiError for what is no event."""
        from wyoming.event import Event

        try:
            line = await self._reader.readuntil(b"\n")
        except asyncio.IncompleteReadError:
            return None
        except asyncio.LimitOverrunError:
            raise _no_event(f"its first line has more than {LINE} bytes") from None
        head = parse(line)
        if not isinstance(head, dict) or not isinstance(head.get("type"), str):
            raise _no_event("it is a line of JSON with a type")
        data = head.get("data")
        data = {} if data is None else data
        if not isinstance(data, dict):
            raise _no_event("its data is an object")
        try:
            if more := await self._part(head.get("data_length")):
                parsed = parse(more)
                data = {**data, **(parsed if isinstance(parsed, dict) else {})}
            await self._part(head.get("payload_length"))  # nothing here takes one
        except asyncio.IncompleteReadError:
            return None
        return Event(head["type"], data)

    async def write(self, *events: Eventable) -> None:
        """Raises TimeoutError if the other end takes nothing for too long."""
        from wyoming.event import async_write_event

        async with self._turn:
            for event in events:
                work = async_write_event(event.event(), self._writer)
                await asyncio.wait_for(work, self._stall)

    async def refuse(self, error: ApiError) -> None:
        from wyoming.error import Error

        await self.write(Error(error.message, error.code))

    async def _part(self, length: object) -> bytes:
        if length is None or length == 0:
            return b""
        if not isinstance(length, int) or not 0 < length <= self._most:
            raise _no_event(f"its parts have at most {self._most} bytes")
        return await self._reader.readexactly(length)


class WyomingSession:
    """One connection: events are answered, texts are spoken one after the other."""

    def __init__(self, wire: Wire, context: ApiContext, address: str) -> None:
        self._wire, self._context, self._address = wire, context, address
        self._request: SpeechRequest | None = None  # of a text in pieces
        self._open: Flowing | None = None  # what it has said so far
        self._streams = False  # between synthesize-start and -stop
        self._texts: deque[tuple[Flowing, bool]] = deque()  # and whether it came in pieces
        self._changed = asyncio.Condition()

    async def run(self) -> None:
        """Serve until the client leaves, or a message is refused: then send the error and close."""
        halves = [asyncio.ensure_future(half()) for half in (self._listen, self._speak)]
        try:
            done, _ = await asyncio.wait(halves, return_when=asyncio.FIRST_COMPLETED)
            for half in done:
                half.result()
        except (TimbreError, ApiError, ValidationError) as error:
            await self._wire.refuse(explain(error))
        except (ConnectionError, TimeoutError):
            pass
        except Exception:
            log.exception("a Wyoming connection failed")
            await self._wire.refuse(UNFORESEEN)
        finally:
            for half in halves:
                half.cancel()
            await asyncio.gather(*halves, return_exceptions=True)
            for text, _ in self._texts:
                text.cancel()

    async def _listen(self) -> None:
        from wyoming.info import Describe
        from wyoming.ping import Ping, Pong

        while (event := await self._next()) is not None:
            if Describe.is_type(event.type):
                await self._wire.write(await self._described())
            elif Ping.is_type(event.type):
                await self._wire.write(Pong(Ping.from_event(event).text))
            else:
                await self._take(event)

    async def _next(self) -> Event | None:
        """An event; while something is spoken it may take its time."""
        while True:
            reading = asyncio.ensure_future(self._wire.read())
            patience = self._context.settings.idle_timeout
            try:
                while True:
                    done, _ = await asyncio.wait({reading}, timeout=patience)
                    if done:
                        return reading.result()
                    if not self._texts or self._open:
                        raise ApiError(408, "Nothing was sent for too long.", "idle_timeout")
            finally:
                reading.cancel()

    async def _take(self, event: Event) -> None:
        """What is no event of speaking is left out, as other servers do."""
        kind, data = event.type, event.data
        if kind == "synthesize" and not self._streams:  # else it repeats what came in pieces
            request = replace(await self._read_request(data), text=_text(data))
            await self._begin(request, pieces=False)
        elif kind == "synthesize-start":
            await self._end()
            self._request, self._streams = await self._read_request(data), True
        elif kind == "synthesize-chunk" and self._streams and self._request:
            if self._open:
                await self._open.feed(_text(data))
            elif _text(data).strip():
                request = replace(self._request, text=_text(data), open_text=True)
                await self._begin(request, pieces=True)
        elif kind == "synthesize-stop" and self._streams:
            if not self._open:  # nothing was said
                await self._stopped()
            self._streams = False
            await self._end()

    async def _read_request(self, data: dict[str, Any]) -> SpeechRequest:
        """Raises ApiError, ValidationError or the engine's errors."""
        if data.get("text_format") not in (None, "text"):
            raise ApiError(400, "Send plain text: SSML is not read here.", "invalid_value")
        voice = data.get("voice") or {}
        wanted = voice if isinstance(voice, dict) else {}
        fields = {"voice": wanted.get("name"), "language": wanted.get("language")}
        given = {name: value for name, value in fields.items() if value}
        how = Configuration.model_validate({"type": "session.config", **given})
        return await self._context.request(how, "")

    async def _begin(self, request: SpeechRequest, pieces: bool) -> None:
        """Speak a text, or what there is of it if it comes in pieces."""
        self._context.rates.take({"address": self._address})
        async with self._changed:
            most = self._context.settings.utterances
            await self._changed.wait_for(lambda: len(self._texts) < most)
        flowing = Flowing(await self._context.submit(request), request.text)
        self._open = flowing if pieces else None
        async with self._changed:
            self._texts.append((flowing, pieces))
            self._changed.notify_all()

    async def _end(self) -> None:
        if self._open:
            self._open.close()
            self._open = None

    async def _speak(self) -> None:
        while True:
            async with self._changed:
                await self._changed.wait_for(lambda: self._texts)
            text, in_pieces = self._texts[0]
            await self._speak_text(text)
            if in_pieces:
                await self._stopped()
            async with self._changed:
                self._texts.popleft()
                self._changed.notify_all()

    async def _speak_text(self, text: Flowing) -> None:
        from wyoming.audio import AudioChunk, AudioStart, AudioStop

        how = Configuration(type="session.config")
        watch = self._context.metrics.watch("wyoming", how.response_format)
        await self._wire.write(AudioStart(**FORMAT))
        async for part in text.parts():
            async with part.stream:
                try:
                    async for piece in pieces(part.stream, Render(how.output)):
                        watch.first()
                        await self._wire.write(AudioChunk(**FORMAT, audio=piece))
                finally:
                    watch.end(part.stream.end)
        await self._wire.write(AudioStop())

    async def _stopped(self) -> None:
        from wyoming.tts import SynthesizeStopped

        await self._wire.write(SynthesizeStopped())

    async def _described(self) -> Eventable:
        from wyoming.info import Attribution, Info, TtsProgram, TtsVoice

        languages = [*_languages(self._context)]
        home = Attribution(name="Timbre", url="")
        voices = [
            TtsVoice(name, home, True, name, VERSION, languages)
            for name in await asyncio.to_thread(self._names)
        ]
        program = TtsProgram(
            name="timbre",
            attribution=home,
            installed=True,
            description="Timbre",
            version=VERSION,
            voices=voices,
            supports_synthesize_streaming=True,
        )
        return Info(tts=[program])

    def _names(self) -> list[str]:
        """The voices that are here, by their own names."""
        saved = (each.name for each in self._context.library.list())
        return list(dict.fromkeys([*self._context.voices.speakers(), *saved]))


def _languages(context: ApiContext) -> Iterator[str]:
    every = (
        language for able in context.engine.capabilities().values() for language in able.languages
    )
    for name in dict.fromkeys(every):
        yield LANGUAGE_CODES.get(name, name)


def _text(data: dict[str, Any]) -> str:
    text = data.get("text")
    if not isinstance(text, str):
        raise _no_event("its text is missing")
    return text


def _no_event(reason: str) -> ApiError:
    return ApiError(400, f"This is no event of Wyoming's: {reason}.", "invalid_event")
