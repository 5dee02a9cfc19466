"""Status routes: models, health, readiness, metrics."""

from __future__ import annotations

from typing import Any

from fastapi import APIRouter, Request
from prometheus_client import CONTENT_TYPE_LATEST
from starlette.datastructures import Headers
from starlette.responses import JSONResponse, Response

from engine import LANGUAGE_CODES, Capabilities
from studio.api.api_context import Shared
from studio.api.bodies.service_names import OPENAI_MODELS
from studio.api.errors import ApiError

router = APIRouter(tags=["server"])
RESTART_SECONDS = "5"  # after which a client should look again
_OWNER = {"created": 0, "owned_by": "timbre"}


@router.get("/v1/models", response_model=None)
async def models(context: Shared, request: Request) -> dict[str, Any] | list[dict[str, Any]]:
    """OpenAI's list; ElevenLabs' SDK, which asks at the same path, gets its own."""
    every = dict(context.engine.capabilities())
    if _is_elevenlabs(request.headers):
        return _elevenlabs_models(every, context.engine.settings.max_text)
    here = [_model(name, able) for name, able in every.items()]
    return {"object": "list", "data": [*here, *map(_alias, OPENAI_MODELS)]}


@router.get("/v1/audio/models")
async def audio_models(context: Shared) -> dict[str, Any]:
    """The list in the form of Open WebUI."""
    names = [*context.engine.capabilities(), *OPENAI_MODELS]
    return {"models": [{"id": name, "name": name} for name in names]}


@router.get("/v1/models/{name:path}")
async def model(name: str, context: Shared) -> dict[str, Any]:
    if name in OPENAI_MODELS:
        return _alias(name)
    found = context.voices.model(name)
    if found is None:
        raise ApiError(404, f"No model is called '{name}'.", "model_not_found", "model")
    return _model(found, context.engine.capabilities()[found])


@router.get("/health")
async def health(context: Shared) -> JSONResponse:
    """Alive: this process answers, and is of use. 503 when its engine has ended for good, and
    while what speaks has stopped and is being replaced."""
    if context.engine.ended:
        return JSONResponse({"status": "ended"}, 503)
    if context.engine.restarting:
        return _restarting()
    return JSONResponse({"status": "ok"})


@router.get("/ready")
async def ready(context: Shared) -> JSONResponse:
    """Loaded: a request would be spoken at once."""
    stats = await context.stats(context.engine.stats)  # may be told by another process
    if context.engine.restarting:
        return _restarting()
    talkers = list(stats.talkers)
    able = context.engine.alive and bool(talkers)
    status = "ready" if able else "loading" if context.engine.alive else "closed"
    return JSONResponse({"status": status, "models": talkers}, 200 if able else 503)


@router.get("/metrics", response_class=Response)
async def metrics(context: Shared) -> Response:
    text = await context.exposition(context.metrics.text)
    return Response(text, headers={"content-type": CONTENT_TYPE_LATEST})


def _restarting() -> JSONResponse:
    return JSONResponse({"status": "restarting"}, 503, {"Retry-After": RESTART_SECONDS})


def _alias(name: str) -> dict[str, Any]:
    """A model name of another service; the voice picks the checkpoint."""
    return {"id": name, "object": "model", **_OWNER}


def _model(name: str, capabilities: Capabilities) -> dict[str, Any]:
    able = ("preset", "clone", "design", "instruct")
    return {
        "id": name,
        "object": "model",
        **_OWNER,
        "size": capabilities.size,
        "capabilities": [ability for ability in able if getattr(capabilities, ability)],
        "speakers": list(capabilities.speakers),
        "languages": list(capabilities.languages),
        "embedding_dim": capabilities.width,
        "max_letters": capabilities.max_letters,
    }


def _is_elevenlabs(headers: Headers) -> bool:
    """Whether a client is ElevenLabs' SDK, whose list of models has another form."""
    return "xi-api-key" in headers or headers.get("x-fern-sdk-name") == "elevenlabs"


def _elevenlabs_models(every: dict[str, Capabilities], max_text: int) -> list[dict[str, Any]]:
    return [
        {
            "model_id": name,
            "name": name,
            "can_be_finetuned": False,
            "can_do_text_to_speech": True,
            "can_do_voice_conversion": False,
            "can_use_style": able.instruct,
            "can_use_speaker_boost": False,
            "serves_pro_voices": False,
            "requires_alpha_access": False,
            "token_cost_factor": 0.0,
            "maximum_text_length_per_request": max_text,
            "languages": [
                {"language_id": LANGUAGE_CODES.get(each, each), "name": each.capitalize()}
                for each in able.languages
            ],
        }
        for name, able in every.items()
    ]
