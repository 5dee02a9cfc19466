"""The page on ZeroGPU: launched by Gradio itself, which the `spaces` package waits for.

There is no API and no raw sound beside it: only what comes through Gradio's queue carries what
ZeroGPU knows its visitors by. Knows no GPU; the engine it is given does the lending.
"""

from __future__ import annotations

from fastapi import Depends, FastAPI

from engine import Library, SpeechEngine
from studio.api.rates import Rates
from studio.context import Studio
from studio.server.admission import admission
from studio.server.login import Login
from studio.server.public_server import around
from studio.settings import StudioSettings
from studio.takes import downloads
from studio.takes.live_takes import LiveTakes
from studio.takes.take_store import Takes
from studio.ui.page import looks
from studio.ui.shell import build_shell


def serve(engine: SpeechEngine, library: Library, takes: Takes, own: StudioSettings) -> None:
    """Until the process is ended."""
    studio = Studio(engine, library, LiveTakes(raw=False), takes, guests=True)
    guests, rates = own.model_copy(update={"guests": True}), Rates(own.api)
    engine.admission_hook = admission(guests, rates)
    door, shell = Login(own.api.keys), build_shell(studio)
    page, _, _ = shell.launch(
        server_name=own.host,
        server_port=own.port,
        quiet=True,
        prevent_thread_lock=True,
        app_kwargs=_around(takes, door, guests, rates),
        **looks(),
        **door.asking,
    )
    door.guard(page)
    shell.block_thread()


def _around(takes: Takes, door: Login, own: StudioSettings, rates: Rates) -> dict[str, object]:
    """The routes and the middleware that stand beside Gradio's."""
    beside = FastAPI()
    beside.include_router(downloads.router(takes), dependencies=[Depends(door.check)])
    return {"routes": beside.routes, "middleware": around(own, door, rates)}
