"""Speech as an ASGI response: complete, as a raw stream, or as server-sent events.

The status is sent with the first audio, so an earlier error has its own status. A disconnect
cancels the stream, and so does a client that reads nothing for too long. Knows no routes and no
voices.
"""

from __future__ import annotations

import asyncio
from base64 import b64encode
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass
from typing import Any, Literal, Protocol

import anyio.to_thread
import numpy as np
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from engine import End, Pcm, SpeechStream, TimbreError
from studio.api.errors import ApiError, explain
from studio.api.json_text import to_json
from studio.api.metrics import Watch
from studio.api.responses.audio_output import Output, Render, render
from studio.api.responses.disconnect import cancel_on_disconnect, left
from studio.api.responses.encoding import MEDIA_TYPES, Format
from studio.api.responses.word_timestamps import time_headers


@dataclass(frozen=True)
class Delivery:
    """How a response is sent."""

    way: Literal["whole", "audio", "sse"]
    output: Output
    hold: int = 0  # frames collected before the first piece
    timed: str = ""  # the text, if the times of its words are sent beside a whole answer


class Wrapping(Protocol):
    """The framing of a stream's bytes. An empty `failure` closes the connection."""

    media_type: str

    def piece(self, data: bytes) -> bytes: ...
    def end(self, end: End, usage: dict[str, Any]) -> bytes: ...
    def failure(self, error: ApiError) -> bytes: ...


class Raw:
    """Unframed bytes."""

    def __init__(self, format: Format) -> None:
        self.media_type = MEDIA_TYPES[format]

    def piece(self, data: bytes) -> bytes:
        return data

    def end(self, end: End, usage: dict[str, Any]) -> bytes:
        return b""

    def failure(self, error: ApiError) -> bytes:
        return b""


class Events:
    """OpenAI's events speech.audio.delta and speech.audio.done."""

    media_type = "text/event-stream"

    def __init__(self, format: Format) -> None:
        self._tail = f'","response_format":"{format}"}}\n\n'.encode()

    def piece(self, data: bytes) -> bytes:
        return _DELTA + b64encode(data) + self._tail

    def end(self, end: End, usage: dict[str, Any]) -> bytes:
        return _event("speech.audio.done", usage=usage, finish_reason=end.reason, seed=end.seed)

    def failure(self, error: ApiError) -> bytes:
        return _event("speech.audio.error", **error.body())


_DELTA = b'event: speech.audio.delta\ndata: {"type":"speech.audio.delta","audio":"'


class Answer(Response):
    """The response to a speech request."""

    def __init__(self, stream: SpeechStream, delivery: Delivery, watch: Watch) -> None:
        super().__init__()
        self._stream, self._delivery, self._watch = stream, delivery, watch
        self._started = False

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        self._scope, self._receive, self._send = scope, receive, send
        leaving = asyncio.ensure_future(self._cancel_when_left())
        reason = None
        try:
            async with self._stream:
                await self._deliver()
        except TimeoutError:  # of PacedBodies
            reason = "stalled"  # leaving the `with` block has cancelled it
        finally:
            leaving.cancel()
            self._watch.end(self._stream.end, reason)

    async def _cancel_when_left(self) -> None:
        await left(self._receive)
        self._stream.cancel()

    async def _deliver(self) -> None:
        wrapping = self._wrapping()
        try:
            if self._delivery.way == "whole":
                await self._tell_whole()
            else:
                await self._tell_pieces(wrapping)
        except TimbreError as error:
            await self._fail(explain(error), wrapping)

    def _wrapping(self) -> Wrapping:
        kind = Events if self._delivery.way == "sse" else Raw
        return kind(self._delivery.output.format)

    async def _tell_whole(self) -> None:
        pcm = await whole(self._stream)
        if self._left:
            return
        output = self._delivery.output
        body = await anyio.to_thread.run_sync(render, pcm, output)
        labels = _usage_headers(usage(self._stream, self._ended))
        if self._delivery.timed:
            timed = (self._delivery.timed, pcm, output.speed)
            labels |= await anyio.to_thread.run_sync(time_headers, *timed)
        await self._start(MEDIA_TYPES[output.format], len(body), labels)
        await self._body(body, more=False)

    async def _tell_pieces(self, wrapping: Wrapping) -> None:
        how = self._delivery
        async for piece in pieces(self._stream, self._render(), how.hold):
            if not self._started:
                await self._start(wrapping.media_type)
            await self._body(wrapping.piece(piece))
        if self._left:
            return
        if not self._started:
            await self._start(wrapping.media_type)
        await self._body(await self._last(wrapping), more=False)

    def _render(self) -> Render:
        return Render(self._delivery.output)

    async def _last(self, wrapping: Wrapping) -> bytes:
        return wrapping.end(self._ended, usage(self._stream, self._ended))

    async def _fail(self, error: ApiError, wrapping: Wrapping) -> None:
        if not self._started:
            answer = error.response(self._scope["path"])
            return await answer(self._scope, self._receive, self._send)
        last = wrapping.failure(error)
        if last:
            await self._body(last, more=False)
        return None  # the server closes the connection, which the client sees as an error

    @property
    def _ended(self) -> End:
        assert self._stream.end is not None  # it has been read to its end
        return self._stream.end

    @property
    def _left(self) -> bool:
        return self._ended.reason == "cancelled"

    async def _start(
        self, media_type: str, length: int | None = None, labels: dict[str, str] | None = None
    ) -> None:
        headers = {"content-type": media_type, "x-seed": str(self._stream.seed), **(labels or {})}
        if length is None:
            headers |= {"cache-control": "no-store", "x-accel-buffering": "no"}
        else:
            headers |= {"content-length": str(length), "x-finish-reason": self._ended.reason}
        self._started = True
        raw = [(name.encode(), value.encode()) for name, value in headers.items()]
        await self._send({"type": "http.response.start", "status": 200, "headers": raw})

    async def _body(self, data: bytes, more: bool = True) -> None:
        self._watch.first()
        await self._send({"type": "http.response.body", "body": data, "more_body": more})


async def pieces(stream: SpeechStream, render: Render, hold: int = 0) -> AsyncIterator[bytes]:
    """A stream's audio as encoded bytes; the first piece has at least `hold` frames.

    Encoders run in other threads: a second of Opus takes 13 ms, for which all streams would wait.
    """
    run = _here if render.only_copies else anyio.to_thread.run_sync
    frames, ready = 0, b""
    async for chunk in stream.joined():
        frames += chunk.frames
        ready += await run(render.feed, chunk.pcm)
        if ready and frames >= hold:
            yield ready
            ready = b""
    ready += await run(render.finish)
    if ready:
        yield ready


async def _here(work: Callable[..., bytes], *values: Pcm) -> bytes:
    return work(*values)


async def watched_whole(stream: SpeechStream, watch: Watch, request: Request | None = None) -> Pcm:
    """All of a stream's audio; cancelled if the client of `request` disconnects."""
    async with stream:
        try:
            work = whole(stream)
            return await (cancel_on_disconnect(request, work) if request else work)
        finally:
            watch.end(stream.end)


async def whole(stream: SpeechStream) -> Pcm:
    """All of a stream's audio."""
    parts = [chunk.pcm async for chunk in stream]
    return np.concatenate(parts) if parts else np.zeros(0, np.int16)


def usage(stream: SpeechStream, end: End) -> dict[str, Any]:
    """OpenAI's token counts: text tokens and frames of a recording in, audio frames out."""
    text, audio = stream.text_tokens, stream.reference_frames
    return {
        "input_tokens": text + audio,
        "output_tokens": end.frames,
        "total_tokens": text + audio + end.frames,
        "input_token_details": {"text_tokens": text, "audio_tokens": audio},
    }


def _usage_headers(counts: dict[str, Any]) -> dict[str, str]:
    """Headers on usage, named as vllm-omni names them."""
    details = counts["input_token_details"].items()
    numbers = {name: value for name, value in counts.items() if name.endswith("_tokens")}
    numbers |= {f"input_{name}": value for name, value in details}
    return {f"x-vllm-omni-{name.replace('_', '-')}": str(value) for name, value in numbers.items()}


def _event(type: str, **fields: Any) -> bytes:
    return f"event: {type}\ndata: {to_json({'type': type, **fields})}\n\n".encode()
