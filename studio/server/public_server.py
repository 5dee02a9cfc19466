"""What stands around the page and the API where others come: headers, visitors, shares, tidying.

The settings decide; `app.py` calls. Knows no routes.
"""

from __future__ import annotations

from fastapi import FastAPI
from starlette.middleware import Middleware

from engine import SpeechEngine
from studio.api.application import OURS
from studio.api.rates import Rates
from studio.server.admission import admission
from studio.server.headers import SafeHeaders
from studio.server.login import Login
from studio.server.page_routes import PageRoutes
from studio.server.request_guard import RequestGuard
from studio.server.retention import schedule_retention
from studio.server.visitors import Visitors, guests
from studio.settings import StudioSettings
from studio.takes.take_store import Takes


def protect(
    application: FastAPI, engine: SpeechEngine, own: StudioSettings, login: Login | None = None
) -> None:
    """To be called when every route is there. `login` None: nobody is asked to log in."""
    rates = application.state.wire.rates
    engine.admission_hook = admission(own, rates)
    for middleware in reversed(around(own, login or Login(()), rates, api=OURS)):
        application.add_middleware(middleware.cls, *middleware.args, **middleware.kwargs)


def around(
    own: StudioSettings, login: Login, rates: Rates, api: tuple[str, ...] = ()
) -> list[Middleware]:
    """What every request passes, the outermost first."""
    embedded = bool(own.frame_ancestors)
    layers = [
        Middleware(RequestGuard, hosts=own.hosts, origins=own.api.origins, embedded=embedded),
        Middleware(SafeHeaders, frame_ancestors=own.frame_ancestors),
        Middleware(PageRoutes, known=login.knows, api=api, rates=rates),
    ]
    return [*layers, Middleware(Visitors, embedded=embedded)] if own.guests else layers


def open_takes(own: StudioSettings) -> Takes:
    """Where strangers come, theirs are apart from the operator's own, and do not stay."""
    if not own.guests:
        return Takes(own.data / "takes")
    place = guests(own.data)
    takes = Takes(place / "takes")
    schedule_retention(place, takes, own.guest_days)
    return takes
