"""ElevenLabs' speech with the times of characters: whole, or as lines of JSON.

Audio goes out as it is made. Characters have their times when all of it is there, so the last line
has them all.
"""

from __future__ import annotations

from base64 import b64encode
from typing import Any

import anyio.to_thread
from fastapi import APIRouter, Request
from starlette.responses import JSONResponse, Response

from engine import End, Pcm, SpeechStream, said_text
from studio.api.api_context import Shared
from studio.api.bodies.json_body import BoundedJson
from studio.api.bodies.schemas import SpeechBody
from studio.api.compat.alignment import align
from studio.api.compat.elevenlabs import DEFAULT_FORMAT, FormatName, SpeechText, speech_body
from studio.api.errors import ApiError
from studio.api.json_text import to_json
from studio.api.metrics import Watch
from studio.api.responses.audio_output import KeptRender, Render, render
from studio.api.responses.streaming_response import Answer, Delivery, Wrapping, watched_whole

router = APIRouter(tags=["elevenlabs"], route_class=BoundedJson)


@router.post("/v1/text-to-speech/{voice}/with-timestamps")
async def with_timestamps(
    voice: str,
    body: SpeechText,
    context: Shared,
    request: Request,
    output_format: FormatName = DEFAULT_FORMAT,
) -> Response:
    speech = speech_body(voice, body, output_format)
    watch = context.metrics.watch("whole", speech.response_format)
    spoken = await context.request(speech, speech.input, live=False)
    stream = await context.submit(spoken)
    pcm = await watched_whole(stream, watch, request)
    fields = await anyio.to_thread.run_sync(_whole, speech, said_text(spoken), pcm)
    return JSONResponse(fields, headers={"x-seed": str(stream.seed)})


def _whole(speech: SpeechBody, text: str, pcm: Pcm) -> dict[str, Any]:
    return _as_line(render(pcm, speech.output), align(text, pcm, speech.speed).seconds())


@router.post("/v1/text-to-speech/{voice}/stream/with-timestamps")
async def stream_with_timestamps(
    voice: str, body: SpeechText, context: Shared, output_format: FormatName = DEFAULT_FORMAT
) -> Response:
    speech = speech_body(voice, body, output_format)
    watch = context.metrics.watch("audio", speech.response_format)
    spoken = await context.request(speech, speech.input)
    return TimedLines(await context.submit(spoken), speech, said_text(spoken), watch)


class TimedLines(Answer):
    """Lines of JSON: audio as it is made, and last the times of all characters."""

    def __init__(self, stream: SpeechStream, speech: SpeechBody, text: str, watch: Watch) -> None:
        super().__init__(stream, Delivery("audio", speech.output), watch)
        self._said, self._speed = text, speech.speed
        self._kept = KeptRender(speech.output)

    def _render(self) -> Render:
        return self._kept

    def _wrapping(self) -> Wrapping:
        return Lines()

    async def _last(self, wrapping: Wrapping) -> bytes:
        spoken = (self._said, self._kept.heard(), self._speed)
        times = await anyio.to_thread.run_sync(align, *spoken)
        return _line(_as_line(b"", times.seconds()))


class Lines:
    """The framing: a line of JSON for each piece."""

    media_type = "application/x-ndjson"

    def piece(self, data: bytes) -> bytes:
        return _line(_as_line(data, None))

    def end(self, end: End, usage: dict[str, Any]) -> bytes:
        return b""

    def failure(self, error: ApiError) -> bytes:
        return b""


def _as_line(data: bytes, times: dict[str, Any] | None) -> dict[str, Any]:
    audio = b64encode(data).decode()
    return {"audio_base64": audio, "alignment": times, "normalized_alignment": times}


def _line(fields: dict[str, Any]) -> bytes:
    return to_json(fields).encode() + b"\n"
