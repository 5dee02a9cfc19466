"""POST /v1/audio/speech and its batch, and the WebSocket route."""

from __future__ import annotations

import asyncio
import logging
import uuid
from base64 import b64encode
from typing import Any

import anyio.to_thread
from fastapi import APIRouter, Request, WebSocket
from starlette.responses import JSONResponse, Response

from engine import Pcm, said_text
from studio.api.api_context import ApiContext, Shared, context_of
from studio.api.auth import IDENTITY, offered_protocols
from studio.api.bodies.json_body import BoundedJson
from studio.api.bodies.schemas import BatchBody, BatchItem, SpeechBody
from studio.api.errors import UNFORESEEN, ApiError, explain
from studio.api.rates import address_of
from studio.api.responses.audio_output import Output, render
from studio.api.responses.disconnect import cancel_on_disconnect
from studio.api.responses.encoding import MEDIA_TYPES
from studio.api.responses.streaming_response import Answer, Delivery, usage, watched_whole
from studio.api.responses.word_timestamps import timestamps
from studio.api.websocket.ws_session import WsSession

SPEECH = "/v1/audio/speech"
REALTIME = "realtime"  # the subprotocol that OpenAI's browser clients offer besides the key
log = logging.getLogger(__name__)
router = APIRouter(tags=["speech"], route_class=BoundedJson)


@router.post(SPEECH, response_class=Response)
async def speech(body: SpeechBody, context: Shared) -> Response:
    """Speak a text: complete, as a raw stream, or as server-sent events."""
    watch = context.metrics.watch(body.delivery, body.response_format)
    request = await context.request(body, body.input, live=body.delivery != "whole")
    stream = await context.submit(request)
    hold = body.initial_codec_chunk_frames
    timed = said_text(request) if body.word_timestamps else ""
    delivery = Delivery(body.delivery, body.output, hold, timed)
    return Answer(stream, delivery, watch)


@router.post("/v1/audio/speech/batch")
async def batch(body: BatchBody, context: Shared, request: Request) -> Response:
    """Speak many texts; results are in order, each with its own error."""
    rate = context.rates.most(request.scope[IDENTITY])  # more would wait for ever
    most = min(context.settings.batch_items, rate)
    if len(body.items) > most:
        problem = f"A batch has at most {most} items; this one has {len(body.items)}."
        raise ApiError(400, problem, "too_many_items", "items")
    context.charge(request, len(body.items) - 1)  # the first was counted with the request
    turns = asyncio.Semaphore(context.settings.batch_parallel)
    work = [_one(context, turns, index, fields) for index, fields in enumerate(body.bodies())]
    results = await cancel_on_disconnect(request, asyncio.gather(*work))
    succeeded = sum(result["status"] == "success" for result in results)
    counts = {"total": len(results), "succeeded": succeeded, "failed": len(results) - succeeded}
    fields = {"id": f"speech-batch-{uuid.uuid4().hex}", "results": results, **counts}
    return await anyio.to_thread.run_sync(JSONResponse, fields)


@router.websocket("/v1/audio/speech/stream")
async def stream(socket: WebSocket) -> None:
    """Text in as it is written, audio out from the first words on."""
    context = context_of(socket)
    with context.sockets.place(address_of(socket.scope)):
        offered = offered_protocols(socket.headers)
        await socket.accept(next((name for name in offered if name == REALTIME), None))
        await WsSession(socket, context).run()


async def _one(
    context: ApiContext, turns: asyncio.Semaphore, index: int, fields: dict[str, Any]
) -> dict[str, Any]:
    async with turns:
        try:
            return {
                "index": index,
                "status": "success",
                "error": None,
                **await _spoken(context, fields),
            }
        except Exception as error:
            refusal = explain(error)
            if refusal is UNFORESEEN:
                log.exception("an item of a batch failed")
            return {"index": index, "status": "error", **refusal.body()}


async def _spoken(context: ApiContext, fields: dict[str, Any]) -> dict[str, Any]:
    item = BatchItem.model_validate(fields)
    format = item.response_format
    watch = context.metrics.watch("batch", format)
    request = await context.request(item, item.input, live=False)
    stream = await context.submit(request)
    pcm = await watched_whole(stream, watch)
    assert stream.end is not None  # read to its end
    data = await anyio.to_thread.run_sync(_in_base64, pcm, item.output)
    timed: dict[str, Any] = {}
    if item.word_timestamps:
        spoken = (said_text(request), pcm, item.speed)
        timed["word_timestamps"] = await anyio.to_thread.run_sync(timestamps, *spoken)
    return {
        **timed,
        "audio_data": data,
        "media_type": MEDIA_TYPES[format],
        "finish_reason": stream.end.reason,
        "seed": stream.end.seed,
        "usage": usage(stream, stream.end),
    }


def _in_base64(pcm: Pcm, output: Output) -> str:
    return b64encode(render(pcm, output)).decode()
