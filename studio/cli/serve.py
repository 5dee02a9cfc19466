"""The serve command: page and API, or on ZeroGPU the page alone.

Gradio takes seconds to import, so it is imported only if the page is served.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

from engine import Library, SpeechEngine, open_zerogpu
from studio.cli.app_context import AppContext
from studio.cli.listing import describe_speed
from studio.settings import LOOPBACK, StudioSettings

if TYPE_CHECKING:
    from fastapi import FastAPI

    from studio.api.rates import Rates
    from studio.ui.login import Login


OPEN_TO_ALL = (
    "Anyone who can reach this address can use everything here. Set TIMBRE_API_KEYS for a login, "
    "or TIMBRE_GUESTS=true to keep visitors apart."
)
CONSENT = {
    "operator": "You answer for the consent of everyone whose recording is sent with a request; "
    "TIMBRE_API_REFERENCE_CONSENT=request asks each request instead.",
    "request": "A request with a recording must say that its owner agrees (consent: true).",
}


def _is_open_to_all(settings: StudioSettings) -> bool:
    return settings.host not in LOOPBACK and not settings.api.keys and not settings.guests


def serve_studio(context: AppContext) -> None:
    """Serve until Ctrl-C."""
    from studio.imports.import_process import close_imports
    from studio.server import serving
    from studio.server.process.data_lock import data_lock
    from studio.server.retention import empty_trash

    settings = context.settings
    with (
        serving.listen(settings.host, settings.port) as address,
        data_lock(settings.data),
        context.engine(serving=True) as engine,
    ):
        application = build_application(context, engine, settings.page)
        empty_trash(context.library(), settings)
        greet(context)
        if slow := describe_speed(engine.stats().speed):
            context.tell.line(slow)
        try:
            serving.serve(
                application,
                address,
                engine.drain,
                settings.proxies,
                grace=settings.grace,
                debug=settings.debug,
            )
        finally:
            close_imports()


def build_application(
    context: AppContext, engine: SpeechEngine, page: bool, rates: Rates | None = None
) -> FastAPI:
    """The API, the page if wanted, and what protects both. `rates`: see `create_api`."""
    from studio.api import create_api
    from studio.server import public_server
    from studio.ui.login import Login

    settings, library = context.settings, context.shelves()
    application = create_api(engine, library, settings.decided_api(), rates)
    login = Login(settings.api.keys)
    if page:
        _mount_page(application, engine, library, context, login)
    public_server.protect(application, engine, settings, login)
    return application


def greet(context: AppContext) -> None:
    """Say who can use it, and where it is."""
    settings = context.settings
    if _is_open_to_all(settings):
        context.tell.line(OPEN_TO_ALL)
    context.tell.line(CONSENT[settings.decided_api().reference_consent])
    what = "in a browser" if settings.page else "from a program (docs/api.md)"
    context.tell.line(f"Open http://{settings.host}:{settings.port} {what}. Ctrl-C stops.")


def serve_lent(context: AppContext) -> None:
    """Serve on ZeroGPU, where only Gradio's routes can be reached."""
    spaces = importlib.import_module("spaces")  # must be imported before torch and Gradio
    from studio.server import public_server, zerogpu
    from studio.server.process.data_lock import data_lock
    from studio.server.retention import empty_trash

    settings = context.settings
    device = "cuda" if settings.device == "auto" else settings.device
    changes, finish = settings.engine_changes(), context.finish()
    with (
        data_lock(settings.data),
        open_zerogpu(
            context.models(), spaces.GPU, device, settings.dtype, settings.profile, **changes
        ) as engine,
    ):
        engine.postprocess = finish
        empty_trash(context.library(), settings)
        zerogpu.serve(engine, context.shelves(), public_server.open_takes(settings), settings)


def _mount_page(
    application: FastAPI, engine: SpeechEngine, library: Library, context: AppContext, login: Login
) -> None:
    from studio.server import public_server
    from studio.server.retention import start_upkeep
    from studio.ui.page import mount_page

    takes = public_server.open_takes(context.settings)
    guests, transcribe = context.settings.guests, context.transcribe()
    studio = mount_page(
        application, engine, library, takes, guests=guests, login=login, transcribe=transcribe
    )
    start_upkeep(studio, context.settings)
