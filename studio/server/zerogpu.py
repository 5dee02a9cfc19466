"""Serves the page on ZeroGPU: launched by Gradio itself, as the `spaces` package requires.

There is no API and no raw audio route: only requests through Gradio's queue carry what ZeroGPU
identifies visitors by. The engine requests the GPU. Gradio makes its own uvicorn, so the bounds of
studio/server/connections.py do not hold here; proxies are believed as everywhere.
"""

from __future__ import annotations

from fastapi import Depends, FastAPI
from starlette.middleware import Middleware
from uvicorn.middleware.proxy_headers import ProxyHeadersMiddleware

from studio.api.rates import Rates
from studio.context import Studio
from studio.server.admission import admission
from studio.server.process.log_limits import bounded_log
from studio.server.public_server import around
from studio.settings import StudioSettings
from studio.takes import downloads
from studio.takes.take_store import Takes
from studio.ui import static_files
from studio.ui.login import Login
from studio.ui.page import looks
from studio.ui.shell import build_shell


def serve(studio: Studio, settings: StudioSettings) -> None:
    """Serve guests until the process ends."""
    rates = Rates(settings.api)
    studio.engine.admission_hook = admission(settings, rates)
    door, shell = Login(settings.api.keys), build_shell(studio)
    page, _, _ = shell.launch(
        server_name=settings.host,
        server_port=settings.port,
        quiet=True,
        prevent_thread_lock=True,
        app_kwargs=_around(studio.takes, door, settings, rates),
        **looks(),
        **door.asking,
    )
    door.guard(page)
    with bounded_log(settings.debug):
        shell.block_thread()


def _around(takes: Takes, door: Login, settings: StudioSettings, rates: Rates) -> dict[str, object]:
    """The routes and middleware besides Gradio's."""
    beside = FastAPI()
    beside.include_router(downloads.router(takes), dependencies=[Depends(door.check)])
    beside.include_router(static_files.router())
    proxies = Middleware(ProxyHeadersMiddleware, trusted_hosts=list(settings.proxies))
    return {"routes": beside.routes, "middleware": [proxies, *around(settings, door, rates)]}
