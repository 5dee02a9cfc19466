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
from studio.server.login import Login
from studio.server.middleware.compression import Compression
from studio.server.middleware.headers import SafeHeaders
from studio.server.middleware.page_assets import PageAssets
from studio.server.middleware.page_routes import PageRoutes
from studio.server.middleware.request_guard import RequestGuard
from studio.server.retention import HOUR, TRASH_DAYS, every, tidy
from studio.server.visitors import Visitors, guests
from studio.settings import StudioSettings
from studio.takes.take_store import Keeping, Takes


def protect(
    application: FastAPI, engine: SpeechEngine, own: StudioSettings, login: Login | None = None
) -> None:
    """Add protection; called after all routes are added. `login` None: no login."""
    rates = application.state.context.rates
    engine.admission_hook = admission(own, rates)
    for middleware in reversed(around(own, login or Login(()), rates, api=OURS)):
        application.add_middleware(middleware.cls, *middleware.args, **middleware.kwargs)


def around(
    own: StudioSettings, login: Login, rates: Rates, api: tuple[str, ...] = ()
) -> list[Middleware]:
    """The middleware, the outermost first."""
    embedded = bool(own.frame_ancestors)
    layers = [
        Middleware(RequestGuard, hosts=own.hosts, origins=own.api.origins, embedded=embedded),
        Middleware(SafeHeaders, frame_ancestors=own.frame_ancestors),
        Middleware(Compression),
        Middleware(PageAssets),
        Middleware(PageRoutes, known=login.knows, api=api, rates=rates),
    ]
    return [*layers, Middleware(Visitors, embedded=embedded)] if own.guests else layers


def open_takes(own: StudioSettings) -> Takes:
    """The take store; with guests a separate one, whose takes are deleted after some days."""
    if not own.guests:
        takes = Takes(own.data / "takes")
        every(HOUR, partial(takes.tidy, Keeping(most=None, trash_days=TRASH_DAYS)))
        return takes
    place = guests(own.data)
    takes = Takes(place / "takes")
    every(HOUR, partial(tidy, place, takes, own.guest_days))
    return takes
