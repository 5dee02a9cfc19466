"""POST /dev/captioned_speech, as in Kokoro-FastAPI: speech with word timestamps.

The times are found in the speech itself (studio.word_times). docs/clients.md has the accuracy.
"""

from __future__ import annotations

from base64 import b64encode
from typing import Any

import anyio.to_thread
from fastapi import APIRouter, Request
from starlette.responses import JSONResponse, Response

from engine import Pcm, said_text
from studio.api.api_context import Shared
from studio.api.bodies.json_body import BoundedJson
from studio.api.bodies.schemas import SpeechBody
from studio.api.responses.audio_output import render
from studio.api.responses.streaming_response import watched_whole
from studio.word_times import word_times

router = APIRouter(tags=["captions"], route_class=BoundedJson)


class CaptionedBody(SpeechBody):
    return_timestamps: bool = True


@router.post("/dev/captioned_speech")
async def captioned_speech(body: CaptionedBody, context: Shared, request: Request) -> Response:
    """Respond with one object: the body, or the only line of a stream."""
    watch = context.metrics.watch("whole", body.response_format)
    spoken = await context.request(body, body.input, live=False)
    stream = await context.submit(spoken)
    pcm = await watched_whole(stream, watch, request)
    return await anyio.to_thread.run_sync(_answer, body, said_text(spoken), pcm, stream.seed)


def _answer(body: CaptionedBody, text: str, pcm: Pcm, seed: int) -> Response:
    data = render(pcm, body.output)
    times = word_times(text, pcm) if body.return_timestamps else []
    fields: dict[str, Any] = {
        "audio": b64encode(data).decode(),
        "audio_format": body.response_format,
        "timestamps": [
            {
                "word": word,
                "start_time": round(start / body.speed, 3),
                "end_time": round(stop / body.speed, 3),
            }
            for word, start, stop in times
        ],
    }
    return JSONResponse(fields, headers={"x-seed": str(seed)})
