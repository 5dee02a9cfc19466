"""Voice routes: list, upload, blend, delete, preview, embeddings."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import fields, is_dataclass
from datetime import datetime
from typing import Any, Literal

import anyio.to_thread
import numpy as np
from fastapi import APIRouter, Request
from pydantic import TypeAdapter, ValidationError
from starlette.responses import JSONResponse, Response

from engine import (
    Clone,
    InvalidVoice,
    SavedVoice,
    SpeechRequest,
    UnknownVoice,
    Voice,
    recorded_moods,
)
from studio.api.api_context import ApiContext, Shared
from studio.api.bodies.forms import Form, read_form
from studio.api.bodies.json_body import BoundedJson, check_separators, read_json
from studio.api.bodies.schemas import BlendBody, DescribedVoice, Numbers
from studio.api.errors import ApiError
from studio.api.responses.audio_output import Output, render
from studio.api.responses.disconnect import cancel_on_disconnect
from studio.api.responses.streaming_response import watched_whole
from studio.ranged_response import etag_of, is_known, ranged_response, unchanged
from studio.voices.consent import blend_consent, is_consent
from studio.voices.consent_recordings import ConsentRecordings

router = APIRouter(tags=["voices"], route_class=BoundedJson)
WANT_OBJECTS = ("python-requests", "Python/")  # user agents of Open WebUI
PREVIEW = "Hello. This is how I sound when I read to you."
MOST_NUMBERS = 8192
_UPLOAD = {
    "name": ("name",),
    "type": ("type",),
    "prompt": ("prompt",),
    "script_hint": ("script_hint",),
    "consent": ("consent",),
    "audio": ("audio", "audio_sample", "file"),
    "embedding": ("embedding", "speaker_embedding"),
    "transcript": ("transcript", "ref_text"),
    "note": ("note", "speaker_description"),
    "model": ("model",),
}
_MOOD = {
    "mood": ("mood",),
    "consent": ("consent",),
    "audio": ("audio", "audio_sample", "file"),
    "transcript": ("transcript", "ref_text"),
    "model": ("model",),
}
_DESCRIBED = ("name", "prompt", "script_hint", "model")
_EMBEDDING = {
    "audio": ("audio", "audio_sample", "file"),
    "model": ("model",),
    "consent": ("consent",),
}


@router.get("/v1/audio/voices")
async def voices(
    context: Shared, request: Request, form: Literal["names", "objects"] | None = None
) -> Response:
    """`voices` are names for most clients, and objects for those that know OpenAI's.

    Open WebUI (which asks with Python's requests) wants objects; vllm-omni's and Kokoro-FastAPI's
    clients want names at the same path. `?form=` says which.
    """
    agent = request.headers.get("user-agent", "")
    objects = form == "objects" or (form is None and agent.startswith(WANT_OBJECTS))
    return await anyio.to_thread.run_sync(_listing, context, objects)


@router.get("/v1/audio/moods")
async def moods(context: Shared) -> dict[str, Any]:
    """The moods that voices can have here; their names are values of `mood` and tags in texts."""
    listed = await anyio.to_thread.run_sync(context.voices.moods)
    return {
        "moods": [
            {
                "id": each.id,
                "name": each.name,
                "words": list(each.mood.words),
                "built_in": each.built_in,
                "note": each.card.note or None,
                "pairs": each.card.mood.pairs if each.card.mood else None,
                "spread": each.card.mood.spread if each.card.mood else None,
            }
            for each in listed
        ]
    }


def _listing(context: ApiContext, objects: bool) -> Response:
    listing = context.library.list()
    names = [*context.voices.speakers(), *(saved.card.name for saved in listing), "default"]
    names = sorted(set(names), key=str.casefold)
    fields = {
        "voices": [{"id": name, "name": name} for name in names] if objects else names,
        "presets": list(context.voices.speakers()),
        "aliases": context.voices.aliases(),
        "uploaded_voices": [_describe(saved) for saved in listing],
    }
    return JSONResponse(fields)


@router.post("/v1/audio/voices")
async def upload(request: Request, context: Shared) -> dict[str, Any]:
    """Keep a voice: a recording or its vector (a form), or a description (a form or JSON)."""
    if request.headers.get("content-type", "").lower().startswith("application/json"):
        described = DescribedVoice.model_validate(await read_json(request))
        return await _describe_voice(described, context, request)
    form = await read_form(request, _UPLOAD, context.settings.audio_bytes)
    kind = form.text("type") or ("prompt" if "prompt" in form.fields else "audio_sample")
    if kind == "prompt":
        fields = {name: form.fields[name] for name in _DESCRIBED if name in form.fields}
        return await _describe_voice(DescribedVoice(**fields), context, request)
    if kind != "audio_sample":
        raise ApiError(400, "type is audio_sample or prompt.", "invalid_value", "type")
    name = await context.makers.new_name(form.need("name"))
    beside = await _agreement(form.need("consent"), context)
    voice = await cancel_on_disconnect(request, _uploaded(form, context))
    made_from = (form.filename or "a vector")[:400]
    details: dict[str, Any] = {"note": form.text("note"), "made_from": made_from}
    kept = context.makers.save(name, voice, beside=beside, consent=True, **details)
    return _created(await kept)


async def _describe_voice(
    body: DescribedVoice, context: ApiContext, request: Request
) -> dict[str, Any]:
    model = context.voices.model("" if body.model == "auto" else body.model)
    work = context.makers.described(body.name, body.prompt, body.script_hint, model)
    return _created(await cancel_on_disconnect(request, work))


async def _agreement(consent: str, context: ApiContext) -> dict[str, bytes]:
    """A clear yes, or the id of a recording of one, which is kept with the voice."""
    if consent.startswith("cons_"):
        recordings = ConsentRecordings(context.library)
        try:
            return await anyio.to_thread.run_sync(recordings.files, consent)
        except UnknownVoice as error:
            raise ApiError(404, str(error), "consent_not_found", "consent") from error
    if not is_consent(consent):
        message = (
            "Only upload a voice whose owner has agreed, and say so: consent=true, or the id of a "
            "recording of it (POST /v1/audio/voice_consents)."
        )
        raise ApiError(400, message, "consent_missing", "consent")
    return {}


@router.post("/v1/audio/voices/blend")
async def blend(body: BlendBody, context: Shared) -> dict[str, Any]:
    """Blend voices and save the result."""
    name = await context.makers.new_name(body.name)
    recipe = body.recipe
    voice = await anyio.to_thread.run_sync(context.voices.blend, recipe, body.method)
    parts = await anyio.to_thread.run_sync(context.voices.blend_parts, recipe)
    consent = await anyio.to_thread.run_sync(blend_consent, parts, context.library)
    details: dict[str, Any] = {"kind": "blend", "consent": consent, "made_from": recipe[:400]}
    return _created(await context.makers.save(name, voice, **details))


@router.post("/v1/audio/voices/{name}/moods")
async def upload_mood(name: str, request: Request, context: Shared) -> dict[str, Any]:
    """Keep another recording of a saved voice's person, in a mood (multipart: mood, audio,
    transcript, consent); it takes the place of an earlier one."""
    form = await read_form(request, _MOOD, context.settings.audio_bytes)
    saved = await _saved(context, name)
    mood = form.need("mood").strip()
    if not is_consent(form.need("consent")):
        message = "Only upload a voice whose owner has agreed, and say so: consent=true."
        raise ApiError(400, message, "consent_missing", "consent")
    model = context.voices.model(form.text("model"))
    work = context.voices.clone(form.need_audio(), form.text("transcript").strip(), model)
    clone = await cancel_on_disconnect(request, work)
    keep = context.library.keep_reference
    return _created(await anyio.to_thread.run_sync(keep, saved.id, mood, clone))


@router.delete("/v1/audio/voices/{name}/moods/{mood}")
async def delete_mood(name: str, mood: str, context: Shared) -> dict[str, Any]:
    """Forget a voice's recording in a mood."""
    saved = await _saved(context, name)
    if mood.casefold() not in recorded_moods(saved.voice):
        message = f"'{saved.card.name}' has no recording in the mood '{mood[:80]}'."
        raise ApiError(404, message, "mood_not_found", "mood")
    keep = context.library.keep_reference
    return _created(await anyio.to_thread.run_sync(keep, saved.id, mood, None))


@router.delete("/v1/audio/voices/{name}")
async def delete(name: str, context: Shared) -> dict[str, Any]:
    saved = await _saved(context, name)
    await anyio.to_thread.run_sync(context.library.delete, saved.id)
    message = f"The voice '{saved.card.name}' is in the trash."
    fields = {"id": saved.id, "object": "audio.voice.deleted", "deleted": True}
    return {**fields, "success": True, "message": message}


@router.get("/v1/audio/voices/{name}/preview", response_class=Response)
async def preview(name: str, context: Shared, request: Request) -> Any:
    """A fixed sentence in this voice as WAV, always the same."""
    voice = await anyio.to_thread.run_sync(context.voices.named, name)
    seed = int.from_bytes(hashlib.sha256(name.casefold().encode()).digest()[:4], "big")
    models = tuple(model.digest for model in context.engine.capabilities().values())
    made_by = (models, repr(context.engine.settings), seed, PREVIEW)
    tag = etag_of(*_identity((voice, made_by)))
    if is_known(request, tag):
        return unchanged(tag)
    sound = context.previews.get(tag)
    if sound is None:
        sound = await _spoken_preview(voice, seed, context, request)
        context.previews.add(tag, sound)
    return ranged_response(request, sound, "audio/wav", tag, {"X-Seed": str(seed)})


async def _spoken_preview(voice: Voice, seed: int, context: ApiContext, request: Request) -> bytes:
    watch = context.metrics.watch("whole", "wav")
    stream = await context.submit(SpeechRequest(PREVIEW, voice, seed=seed, live=False))
    pcm = await watched_whole(stream, watch, request)
    return await anyio.to_thread.run_sync(render, pcm, Output("wav"))


def _identity(value: Any) -> Iterator[bytes]:
    """Everything that a voice consists of, to compare it."""
    if isinstance(value, np.ndarray):
        yield from (repr(value.shape).encode(), value.tobytes())
    elif isinstance(value, tuple):
        for each in value:
            yield from _identity(each)
    elif is_dataclass(value):
        yield type(value).__name__.encode()
        yield from _identity(tuple(getattr(value, part.name) for part in fields(value)))
    else:
        yield repr(value).encode()


@router.post("/v1/audio/embeddings")
async def embeddings(request: Request, context: Shared) -> dict[str, Any]:
    """The speaker vector of a recording (multipart: audio, consent, model)."""
    form = await read_form(request, _EMBEDDING, context.settings.audio_bytes)
    context.voices.check_consent(form.text("consent"))
    model = context.voices.model(form.text("model"))
    clone = await cancel_on_disconnect(request, context.voices.clone(form.need_audio(), "", model))
    numbers = {"object": "embedding", "index": 0, "embedding": clone.vector.tolist()}
    return {"object": "list", "data": [numbers], "width": len(clone.vector), "model": model}


async def _uploaded(form: Form, context: ApiContext) -> Clone:
    """A voice from a recording, or from its embedding."""
    if (form.audio is None) == (not form.text("embedding")):
        raise ApiError(400, "Send either audio or embedding.", "invalid_value", "audio")
    if form.audio is not None:
        model = context.voices.model(form.text("model"))
        return await context.voices.clone(form.audio, form.text("transcript").strip(), model)
    return Clone(_vector(form.text("embedding"), context))


def _vector(text: str, context: ApiContext) -> np.ndarray[Any, np.dtype[np.float32]]:
    try:
        check_separators(text, MOST_NUMBERS)
        numbers = TypeAdapter(Numbers).validate_json(text)
    except (ApiError, ValidationError):
        message = "embedding is a JSON list of finite numbers."
        raise ApiError(400, message, "invalid_value", "embedding") from None
    widths = {model.width for model in context.engine.capabilities().values()}
    if len(numbers) not in widths:
        there = " or ".join(map(str, sorted(widths)))
        raise InvalidVoice(f"This vector has {len(numbers)} numbers; the models here take {there}.")
    return np.asarray(numbers, np.float32)


async def _saved(context: ApiContext, name: str) -> SavedVoice:
    saved = await anyio.to_thread.run_sync(context.library.find, name)
    if saved is None:
        raise ApiError(404, f"No uploaded voice is called '{name}'.", "voice_not_found", "voice")
    return saved


def _created(saved: SavedVoice) -> dict[str, Any]:
    """Id, name and time are also at the top level, where OpenAI's SDK expects them."""
    voice = _describe(saved)
    top = {key: voice[key] for key in ("id", "name", "created_at")}
    made = {"type": "prompt" if voice["prompt"] else "audio_sample", "prompt": voice["prompt"]}
    return {"object": "audio.voice", **top, **made, "success": True, "voice": voice}


def _describe(saved: SavedVoice) -> dict[str, Any]:
    card = saved.card
    in_context = isinstance(saved.voice, Clone) and saved.voice.in_context
    created = int(datetime.fromisoformat(card.created).timestamp()) if card.created else 0
    return {
        "id": saved.id,
        "name": card.name,
        "kind": card.kind,
        "built_in": saved.built_in,
        "consent": card.consent,
        "created_at": created,
        "embedding_dim": card.width,
        "ref_text": card.transcript or None,
        "in_context": in_context,
        "speaker_description": card.note or None,
        "made_from": card.made_from or None,
        "prompt": card.instruct or None,
        "model": card.model or None,
        "moods": [each.mood for each in card.references],
    }
