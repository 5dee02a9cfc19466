"""Builds the API. `app.py` calls `create_api` and mounts the page on the result."""

from __future__ import annotations

from functools import partial

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from pydantic import ValidationError
from starlette.exceptions import HTTPException
from starlette.middleware.cors import CORSMiddleware
from starlette.requests import ClientDisconnect
from starlette.responses import JSONResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp, Receive, Scope, Send

from engine import Library, SpeechEngine, TimbreError
from studio.api.api_context import ApiContext, build_context
from studio.api.auth import AuthGate, ForPaths
from studio.api.bodies.json_body import Direct
from studio.api.bodies.schemas import SpeechBody
from studio.api.compat import (
    captioned_speech,
    elevenlabs,
    elevenlabs_account,
    elevenlabs_contexts,
    elevenlabs_socket,
    elevenlabs_timestamps,
    other_paths,
)
from studio.api.errors import ApiError, explain
from studio.api.mcp_tools import PATH, ToolServer
from studio.api.methods import METHODS, UNKNOWN, Head, allowed_methods, refuse_method
from studio.api.metrics import Metrics
from studio.api.openapi import describe
from studio.api.rates import Rates
from studio.api.request_labels import RequestLabels
from studio.api.responses.paced_bodies import PacedBodies
from studio.api.routes import realtime, speech, status, voice_consents, voices
from studio.settings import ApiSettings

SPOKEN = ("/v1/", "/openai/", PATH, "/v2/voices", "/dev/captioned_speech")
GUARDED = (*SPOKEN, "/metrics", "/openapi.json")
OURS = (*GUARDED, "/health", "/ready")
# Headers of answers that scripts of other sites' pages may read.
EXPOSED = (
    *("X-Seed", "X-Finish-Reason", "X-Request-Id", "X-Ignored-Fields", "X-Warnings"),
    *("X-Word-Timestamps", "X-Word-Timestamps-Omitted"),
    *(f"X-VLLM-OMNI-{each}-Tokens" for each in ("Input", "Output", "Total")),
    *(f"X-VLLM-OMNI-Input-{each}-Tokens" for each in ("Text", "Audio")),
    *("Retry-After", "ETag", "Content-Range", "Accept-Ranges"),
    *(f"X-RateLimit-{each}-Requests" for each in ("Limit", "Remaining", "Reset")),
)


def create_api(
    engine: SpeechEngine,
    library: Library,
    settings: ApiSettings | None = None,
    rates: Rates | None = None,
) -> FastAPI:
    """An ASGI application with the API's routes; a page can be mounted at /.

    `rates` None: this process counts alone.
    """
    settings = settings or ApiSettings()
    api = FastAPI(title="Timbre", docs_url=None, redoc_url=None, openapi_url=None)
    api.openapi = partial(describe, api)  # type: ignore[method-assign]
    api.state.context = build_context(engine, library, settings, rates)
    # In front of its twin below, which describes it in openapi.json.
    spoken = Direct(SpeechBody, partial(speech.speech, context=api.state.context))
    api.router.routes.append(Route(speech.SPEECH, spoken, methods=["POST"]))
    for routes in _ROUTES:
        api.include_router(routes.router)
    if settings.mcp:
        api.router.routes.append(Route(PATH, ToolServer(api.state.context), methods=METHODS))
    for path in ("/v1/openapi.json", "/openapi.json"):
        api.add_api_route(path, _openapi, include_in_schema=False)
    for prefix in ("/v1/", "/openai/", "/v2/voices", "/dev/"):
        pattern = f"{prefix}{{path:path}}"
        api.add_api_route(pattern, _unknown, methods=_ALL, include_in_schema=False, name=UNKNOWN)
    # Bound here, since the state of a request that passed through the page is Gradio's.
    refuse = partial(_refuse, api.state.context.metrics)
    known = (ApiError, TimbreError, RequestValidationError, ValidationError, HTTPException)
    for kind in (*known, ClientDisconnect, Exception):
        api.add_exception_handler(kind, refuse)
    api.add_middleware(_Doors, context=api.state.context)
    # For the page too: Gradio adds no CORS if its parent has this middleware.
    api.add_middleware(
        CORSMiddleware,
        allow_origins=settings.origins,
        allow_methods=METHODS,
        allow_headers=["*"],
        expose_headers=EXPOSED,
    )
    return api


_ALL = [*METHODS, "OPTIONS", "TRACE"]
_ROUTES = (
    speech,
    realtime,
    voices,
    voice_consents,
    status,
    elevenlabs,
    elevenlabs_account,
    elevenlabs_timestamps,
    elevenlabs_socket,
    elevenlabs_contexts,
    captioned_speech,
    other_paths,
)


class _Doors:
    """The AuthGate and PacedBodies for the API's paths; other paths pass without them."""

    def __init__(self, app: ASGIApp, context: ApiContext) -> None:
        paced = Head(PacedBodies(app, context.settings.stall_timeout))
        access = (context.settings, context.rates, context.secrets, context.metrics.refuse)
        gate = AuthGate(paced, *access)
        self._app = ForPaths(app, RequestLabels(ForPaths(paced, gate, GUARDED)), OURS)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await self._app(scope, receive, send)


async def _openapi(request: Request) -> JSONResponse:
    api: FastAPI = request.app
    return JSONResponse(api.openapi())


async def _unknown(path: str, request: Request) -> Response:
    """Any other method of a path, and any other path."""
    allowed = allowed_methods(request.app, request.scope)
    if request.method == "OPTIONS" and allowed:
        return Response(status_code=204, headers={"Allow": ", ".join(allowed)})
    raise refuse_method(request.method, request.url.path, allowed)


async def _refuse(metrics: Metrics, request: Request, error: Exception) -> Response:
    refusal = explain(error)
    metrics.refuse(refusal)
    return refusal.response(request.url.path)
