"""Middleware and background jobs of a server: headers, compression, visitors, retention.

The settings decide which are used.
"""

from __future__ import annotations

from functools import partial

from fastapi import FastAPI
from starlette.middleware import Middleware

from engine import SpeechEngine
from studio.api.application import OURS
from studio.api.rates import Rates
from studio.server.admission import admission
from studio.server.middleware.compression import Compression
from studio.server.middleware.headers import SafeHeaders
from studio.server.middleware.page_assets import PageAssets
from studio.server.middleware.page_routes import PageRoutes
from studio.server.middleware.request_guard import RequestGuard
from studio.server.retention import HOUR, TRASH_DAYS, every, tidy
from studio.server.visitors import Visitors, guests
from studio.settings import StudioSettings
from studio.takes.take_store import Keeping, Takes
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
        Middleware(PageAssets),
        Middleware(PageRoutes, known=login.knows, api=api, rates=rates),
    ]
    return [*layers, Middleware(Visitors, embedded=embedded)] if settings.guests else layers


def open_takes(settings: StudioSettings) -> Takes:
    """The take store; with guests a separate one, whose takes are deleted after some days."""
    if not settings.guests:
        takes = Takes(settings.data / "takes")
        every(HOUR, partial(takes.tidy, Keeping(most=None, trash_days=TRASH_DAYS)))
        return takes
    place = guests(settings.data)
    takes = Takes(place / "takes")
    every(HOUR, partial(tidy, place, takes, settings.guest_days))
    return takes
