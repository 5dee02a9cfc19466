"""The serve command: page and API, or on ZeroGPU the page alone.

Gradio takes seconds to import, so it is imported only if the page is served.
"""

from __future__ import annotations

import importlib
import importlib.util
from contextlib import AbstractContextManager, nullcontext, suppress
from dataclasses import replace
from threading import Thread
from typing import TYPE_CHECKING

from engine import InvalidSetting, SpeechEngine, open_zerogpu
from studio.cli.app_context import AppContext
from studio.cli.listing import describe_speed
from studio.settings import LOOPBACK, StudioSettings

if TYPE_CHECKING:
    from socket import socket

    from fastapi import FastAPI
    from starlette.types import ASGIApp

    from engine import BootedProcess
    from studio.api.rates import Rates
    from studio.context import Studio

OPEN_TO_ALL = (
    "Anyone who can reach this address can use everything here. Set TIMBRE_API_KEYS for a login, "
    "or TIMBRE_GUESTS=true to keep visitors apart."
)
CONSENT = {
    "operator": "Whoever clones a voice through the API needs the speaker's consent, and you vouch "
    "for it; with TIMBRE_API_REFERENCE_CONSENT=request each request has to say so itself.",
    "request": "A request with a recording must say that its owner agrees (consent: true).",
}


SHORT_KEYS = (
    "A key of fewer than 20 characters can be guessed, so it is refused while others behind the "
    "same proxy try wrong ones."
)


def _is_open_to_all(settings: StudioSettings) -> bool:
    return settings.host not in LOOPBACK and not settings.api.keys and not settings.guests


def serve_studio(context: AppContext, booted: BootedProcess | None = None) -> None:
    """Serve until Ctrl-C. `booted`: a process that waits for the engine."""
    settings = context.settings
    if settings.page:
        check_page()
    if settings.api.mcp:
        check_tools()
    context.check_choices()
    from studio.server import serving
    from studio.server.process.data_lock import data_lock

    with (
        serving.listen(settings.host, settings.port) as address,
        wyoming_socket(settings) as wyoming,
        data_lock(settings.data),
    ):
        _import_beside(settings.page)  # once nothing is left that can be refused at once
        _serve_here(context, booted, address, wyoming)


def _serve_here(
    context: AppContext, booted: BootedProcess | None, address: socket, wyoming: socket | None
) -> None:
    from studio.imports.import_process import close_imports
    from studio.retention import Retention
    from studio.server import serving

    settings = context.settings
    with context.engine(booted) as engine:
        studio = stores_of(context, engine)
        application = build_application(context, engine, studio if settings.page else None)
        Retention(settings, context.library(), studio.takes, studio.scripts).start()
        greet(context)
        if slow := describe_speed(engine.stats().speed, engine.settings.early_start):
            context.tell.line(slow)
        try:
            serving.serve(
                _with_wyoming(context, application, wyoming),
                address,
                engine.drain,
                settings.proxies,
                grace=settings.grace,
                debug=settings.debug,
            )
        finally:
            close_imports()


def _import_beside(page: bool) -> None:
    """Import what answers requests while the engine is loaded, for the most part elsewhere.

    What fails here fails once more, and is told, where it is needed.
    """

    def load() -> None:
        with suppress(Exception):
            from studio.api import create_api  # noqa: F401
            from studio.server import public_server  # noqa: F401

            if page:
                from studio.ui.page import mount_page  # noqa: F401

    Thread(target=load, name="timbre-imports", daemon=True).start()


def wyoming_socket(settings: StudioSettings) -> AbstractContextManager[socket | None]:
    """Where Wyoming is served, if it is. Raises InvalidSetting."""
    if not settings.wyoming:
        return nullcontext()
    from studio.server import serving
    from studio.server.wyoming_server import wyoming_address

    return serving.listen(*wyoming_address(settings))


def _with_wyoming(context: AppContext, application: FastAPI, address: socket | None) -> ASGIApp:
    if address is None:
        return application
    from studio.server.wyoming_server import WithWyoming

    host, port = address.getsockname()[:2]
    context.tell.line(f"Wyoming listens at tcp://{host}:{port}.")
    return WithWyoming(application, application.state.context, address)


def check_tools() -> None:
    """Raises InvalidSetting where the library of MCP is not installed."""
    if importlib.util.find_spec("mcp") is None:
        raise InvalidSetting(
            "MCP needs one more package: pip install 'timbre-studio[mcp]' "
            "(in a checkout: -r requirements-mcp.txt), and start again."
        )


def check_page() -> None:
    """Raises InvalidSetting where the page's library is not installed."""
    if importlib.util.find_spec("gradio") is None:
        raise InvalidSetting(
            "The page needs Gradio: pip install 'timbre-studio[page]'. Or set TIMBRE_PAGE=false to "
            "serve the API alone."
        )


def stores_of(context: AppContext, engine: SpeechEngine) -> Studio:
    """The stores of the data folder; with a page, also what it alone needs."""
    from studio.context import open_studio
    from studio.retention import open_takes

    settings, trainings = context.settings, None
    if settings.page and not settings.guests:
        from studio.voices.voice_training import VoiceTraining

        trainings = VoiceTraining(settings.data, settings.transcriber)
    return open_studio(
        engine,
        context.shelves(),
        open_takes(settings),
        guests=settings.guests,
        transcribe=context.transcribe() if settings.page else None,
        trainings=trainings,
    )


def build_application(
    context: AppContext,
    engine: SpeechEngine,
    studio: Studio | None = None,
    rates: Rates | None = None,
) -> FastAPI:
    """The API, the page if there is a `studio`, and what protects both.

    `rates`: see `create_api`.
    """
    from studio.api import create_api
    from studio.server import public_server
    from studio.ui.login import Login

    settings = context.settings
    library = studio.library if studio else context.shelves()
    application = create_api(engine, library, settings.decided_api(), rates)
    login = Login(settings.api.keys)
    if studio:
        from studio.ui.page import mount_page

        mount_page(application, studio, login)
    public_server.protect(application, engine, settings, login)
    return application


def greet(context: AppContext) -> None:
    """Print who can use the server, and its address."""
    from studio.api.auth import is_unguessable

    settings = context.settings
    if _is_open_to_all(settings):
        context.tell.line(OPEN_TO_ALL)
    if settings.proxies and any(
        not is_unguessable(key.get_secret_value()) for key in settings.api.keys
    ):
        context.tell.line(SHORT_KEYS)
    context.tell.line(CONSENT[settings.decided_api().reference_consent])
    what = "in a browser" if settings.page else "from a program (docs/api.md)"
    host = f"[{settings.host}]" if ":" in settings.host else settings.host
    context.tell.line(f"Open http://{host}:{settings.port} {what}. Ctrl-C stops.")


def serve_lent(context: AppContext) -> None:
    """Serve on ZeroGPU, where only Gradio's routes can be reached."""
    spaces = importlib.import_module("spaces")  # must be imported before torch and Gradio
    from studio.context import open_studio
    from studio.retention import Retention, open_takes
    from studio.server import zerogpu
    from studio.server.process.data_lock import data_lock

    settings = context.settings.model_copy(
        update={"guests": True}
    )  # all visitors are strangers there
    context = replace(context, settings=settings)
    device = "cuda" if settings.device == "auto" else settings.device
    changes, finish = settings.engine_changes(), context.finish()
    with (
        data_lock(settings.data),
        open_zerogpu(
            context.models(), spaces.GPU, device, settings.dtype, settings.profile, **changes
        ) as engine,
    ):
        engine.postprocess = finish
        studio = open_studio(
            engine, context.shelves(), open_takes(settings), raw=False, guests=True
        )
        Retention(settings, context.library(), studio.takes, studio.scripts).start()
        zerogpu.serve(studio, settings)
