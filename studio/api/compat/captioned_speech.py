"""POST /dev/captioned_speech, as in Kokoro-FastAPI: speech with word timestamps.

The model gives no timestamps. They are estimated from each word's share of the letters, over the
parts of the audio that are not silent. docs/clients.md has the accuracy.
"""

from __future__ import annotations

import re
from base64 import b64encode
from typing import Any

import anyio.to_thread
import numpy as np
from fastapi import APIRouter, Request
from starlette.responses import JSONResponse, Response

from engine import SAMPLE_RATE, Pcm
from studio.api.api_context import Shared
from studio.api.bodies.json_body import BoundedJson
from studio.api.bodies.schemas import SpeechBody
from studio.api.responses.audio_output import render
from studio.api.responses.disconnect import cancel_on_disconnect
from studio.api.responses.streaming_response import whole

router = APIRouter(tags=["captions"], route_class=BoundedJson)
HOP = 240  # samples: 10 ms
SILENT = 10 ** (-35 / 20)  # relative to the peak
_WORD = re.compile(r"\S+")


class CaptionedBody(SpeechBody):
    return_timestamps: bool = True


@router.post("/dev/captioned_speech")
async def captioned_speech(body: CaptionedBody, context: Shared, request: Request) -> Response:
    """One object, as the body or as the only line of a stream."""
    watch = context.metrics.watch("whole", body.response_format)
    stream = await context.submit(await context.request(body, body.input, live=False))
    async with stream:
        try:
            pcm = await cancel_on_disconnect(request, whole(stream))
        finally:
            watch.end(stream.end)
    return await anyio.to_thread.run_sync(_answer, body, pcm, stream.seed)


def _answer(body: CaptionedBody, pcm: Pcm, seed: int) -> Response:
    data = render(pcm, body.output)
    times = word_times(body.input, pcm) if body.return_timestamps else []
    told: dict[str, Any] = {
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
    return JSONResponse(told, headers={"x-seed": str(seed)})


def word_times(text: str, pcm: Pcm) -> list[tuple[str, float, float]]:
    """Words with their start and end in seconds."""
    words = _WORD.findall(text)
    shares = np.cumsum([0, *(max(1, sum(map(str.isalnum, word))) for word in words)])
    spoken = _spoken_at(pcm)
    if not words or not len(spoken):
        return []
    places = np.interp(shares / shares[-1], np.linspace(0, 1, len(spoken)), spoken)
    return [
        (word, float(start), float(stop))
        for word, start, stop in zip(words, places[:-1], places[1:], strict=True)
    ]


def _spoken_at(pcm: Pcm) -> np.ndarray:
    """The times of all 10 ms windows that are not silent."""
    frames = np.abs(pcm[: len(pcm) // HOP * HOP].reshape(-1, HOP).astype(np.float32)).max(axis=1)
    loud = np.flatnonzero(frames > frames.max(initial=0) * SILENT)
    return (loud * HOP) / SAMPLE_RATE
