"""OpenAI's voice consents: recordings in which somebody agrees that their voice is copied."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated, Any

import anyio.to_thread
from fastapi import APIRouter, Query, Request

from engine import UnknownVoice
from studio.api.api_context import ApiContext, Shared
from studio.api.bodies.forms import read_form
from studio.api.bodies.json_body import BoundedJson
from studio.api.bodies.schemas import ConsentName
from studio.api.errors import ApiError
from studio.api.responses.disconnect import cancel_on_disconnect
from studio.voices.consent_recordings import ConsentRecording, ConsentRecordings

router = APIRouter(tags=["voices"], route_class=BoundedJson)
KIND = "audio.voice_consent"
_FORM = {
    "name": ("name",),
    "language": ("language",),
    "audio": ("recording", "audio"),
}


@router.post("/v1/audio/voice_consents")
async def create(request: Request, context: Shared) -> dict[str, Any]:
    """Keep a recording of a consent (multipart: name, language, recording)."""
    form = await read_form(request, _FORM, context.settings.audio_bytes)
    name, language = form.need("name"), form.need("language")
    if form.audio is None:
        raise ApiError(400, "The file 'recording' is missing.", "missing", "recording")
    work = context.voices.waveform(form.audio, "recording")
    waveform = await cancel_on_disconnect(request, work)
    add = _recordings(context).add
    return _as_json(await anyio.to_thread.run_sync(add, name, language, waveform))


@router.get("/v1/audio/voice_consents")
async def listing(
    context: Shared,
    after: Annotated[str, Query(max_length=64)] = "",
    limit: Annotated[int, Query(ge=1, le=100)] = 20,
) -> dict[str, Any]:
    """The newest first; `after` is the id at which the page before ended."""
    every = await anyio.to_thread.run_sync(_recordings(context).list)
    ids = [each.id for each in every]
    start = ids.index(after) + 1 if after in ids else 0
    page = every[start : start + limit]
    ends = {"first_id": page[0].id, "last_id": page[-1].id} if page else {}
    more = start + limit < len(every)
    return {"object": "list", "data": [*map(_as_json, page)], **ends, "has_more": more}


@router.get("/v1/audio/voice_consents/{consent_id}")
async def retrieve(consent_id: str, context: Shared) -> dict[str, Any]:
    return _as_json(await _found(consent_id, context))


@router.post("/v1/audio/voice_consents/{consent_id}")
async def update(consent_id: str, body: ConsentName, context: Shared) -> dict[str, Any]:
    await _found(consent_id, context)
    rename = _recordings(context).rename
    return _as_json(await anyio.to_thread.run_sync(rename, consent_id, body.name))


@router.delete("/v1/audio/voice_consents/{consent_id}")
async def delete(consent_id: str, context: Shared) -> dict[str, Any]:
    """Voices that were made with it keep their copy."""
    await _found(consent_id, context)
    await anyio.to_thread.run_sync(_recordings(context).delete, consent_id)
    return {"id": consent_id, "object": KIND, "deleted": True}


def _recordings(context: ApiContext) -> ConsentRecordings:
    return ConsentRecordings(context.library)


async def _found(consent_id: str, context: ApiContext) -> ConsentRecording:
    try:
        return await anyio.to_thread.run_sync(_recordings(context).get, consent_id)
    except UnknownVoice as error:
        raise ApiError(404, str(error), "consent_not_found", "consent_id") from error


def _as_json(consent_recording: ConsentRecording) -> dict[str, Any]:
    return {"object": KIND, **asdict(consent_recording)}
