"""Middleware of a server: headers, compression, visitors.

The settings decide which are used.
"""

from __future__ import annotations

from fastapi import FastAPI
from starlette.middleware import Middleware

from engine import SpeechEngine
from studio.api.application import OURS
from studio.api.rates import Rates
from studio.server.admission import admission
from studio.server.middleware.compression import Compression
from studio.server.middleware.headers import SafeHeaders
from studio.server.middleware.page_routes import PageRoutes
from studio.server.middleware.request_guard import RequestGuard
from studio.server.visitors import Visitors
from studio.settings import StudioSettings
from studio.ui.login import Login


def protect(
    application: FastAPI, engine: SpeechEngine, settings: StudioSettings, login: Login | None = None
) -> None:
    """Add protection; called after all routes are added. `login` None: no login."""
    rates = application.state.context.rates
    engine.admission_hook = admission(settings, rates)
    for middleware in reversed(around(settings, login or Login(()), rates, api=OURS)):
        application.add_middleware(middleware.cls, *middleware.args, **middleware.kwargs)


def around(
    settings: StudioSettings, login: Login, rates: Rates, api: tuple[str, ...] = ()
) -> list[Middleware]:
    """The middleware, the outermost first."""
    embedded = bool(settings.frame_ancestors)
    layers = [
        Middleware(
            RequestGuard, hosts=settings.hosts, origins=settings.api.origins, embedded=embedded
        ),
        Middleware(SafeHeaders, frame_ancestors=settings.frame_ancestors),
        Middleware(Compression),
        *_page_assets(settings),
        Middleware(PageRoutes, known=login.knows, api=api, rates=rates),
    ]
    if not settings.guests:
        return layers
    return [*layers, Middleware(Visitors, embedded=embedded, keyed=bool(settings.api.keys))]


def _page_assets(settings: StudioSettings) -> list[Middleware]:
    if not settings.page:  # a server of the API alone needs no Gradio
        return []
    from studio.ui import static_files
    from studio.ui.gradio_compat.page_assets import PageAssets

    return [Middleware(PageAssets, head=static_files.preloads())]
