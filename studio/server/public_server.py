"""What stands around the page and the API where others come: headers, visitors, shares, tidying.

The settings decide; `app.py` calls. Knows no routes.
"""

from __future__ import annotations

from fastapi import FastAPI

from engine import Engine
from studio.server.headers import SafeHeaders
from studio.server.retention import keep_tidy
from studio.server.visitors import Share, Visitors, guests
from studio.settings import StudioSettings
from studio.takes.take_store import Takes


def protect(application: FastAPI, engine: Engine, own: StudioSettings) -> None:
    """To be called when every route is there."""
    application.add_middleware(SafeHeaders, frames=own.frames)
    if own.guests:
        application.add_middleware(Visitors)
        engine.doorman = Share(own.guest_requests)


def open_takes(own: StudioSettings) -> Takes:
    """Where strangers come, theirs are apart from the operator's own, and do not stay."""
    if not own.guests:
        return Takes(own.data / "takes")
    place = guests(own.data)
    takes = Takes(place / "takes")
    keep_tidy(place, takes, own.guest_days)
    return takes
