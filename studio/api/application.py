"""Builds the API. `app.py` calls `create_api` and mounts the page on the result."""

from __future__ import annotations

from functools import partial

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.middleware.cors import CORSMiddleware
from starlette.requests import ClientDisconnect
from starlette.responses import Response
from starlette.types import ASGIApp, Receive, Scope, Send

from engine import Library, SpeechEngine, TimbreError
from studio.api.api_context import ApiContext, build_context
from studio.api.auth import AuthGate, ForPaths
from studio.api.compat import captioned_speech, elevenlabs
from studio.api.compat.request_labels import RequestLabels
from studio.api.errors import ApiError, explain
from studio.api.metrics import Metrics
from studio.api.rates import Rates
from studio.api.responses.paced_bodies import PacedBodies
from studio.api.routes import speech, status, voices
from studio.settings import ApiSettings

OURS = ("/v1/", "/v2/voices", "/dev/captioned_speech", "/metrics", "/health", "/ready")
GUARDED = ("/v1/", "/v2/voices", "/dev/captioned_speech", "/metrics")


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
    api = FastAPI(title="Timbre", docs_url=None, redoc_url=None, openapi_url="/v1/openapi.json")
    api.state.context = build_context(engine, library, settings, rates)
    for routes in (speech, voices, status, elevenlabs, captioned_speech):
        api.include_router(routes.router)
    api.add_api_route("/v1/{path:path}", _unknown, methods=_METHODS, include_in_schema=False)
    # Bound here, since the state of a request that passed through the page is Gradio's.
    refuse = partial(_refuse, api.state.context.metrics)
    known = (ApiError, TimbreError, RequestValidationError, HTTPException, ClientDisconnect)
    for kind in (*known, Exception):
        api.add_exception_handler(kind, refuse)
    api.add_middleware(_Doors, context=api.state.context)
    # For the page too: Gradio adds no CORS if its parent has this middleware.
    api.add_middleware(
        CORSMiddleware,
        allow_origins=settings.origins,
        allow_methods=_METHODS,
        allow_headers=["*"],
        expose_headers=["X-Seed", "X-Finish-Reason", "X-Request-Id", "Retry-After"],
    )
    return api


_METHODS = ["GET", "POST", "PUT", "PATCH", "DELETE"]


class _Doors:
    """The AuthGate and PacedBodies for the API's paths; other paths pass without them."""

    def __init__(self, app: ASGIApp, context: ApiContext) -> None:
        paced = PacedBodies(app, context.settings.stall_timeout)
        gate = AuthGate(paced, context.settings, context.rates, context.metrics.refuse)
        self._app = ForPaths(app, RequestLabels(ForPaths(paced, gate, GUARDED)), OURS)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await self._app(scope, receive, send)


async def _unknown(path: str, request: Request) -> None:
    said = f"There is no {request.method} /v1/{path[:200]}. docs/api.md lists what there is."
    raise ApiError(404, said, "not_found")


async def _refuse(metrics: Metrics, request: Request, error: Exception) -> Response:
    refusal = explain(error)
    metrics.refuse(refusal)
    return refusal.response(request.url.path)
