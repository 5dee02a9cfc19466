"""Page and API on a fake engine and a free port, until standard input is closed.

As on a person's own machine, recordings are the operator's to answer for.
It has the embedded model's voices and abilities, so examples that name them can be tried here.
A process of its own, because Gradio leaves event loops and sockets to the collector.
"""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path

from engine import Library, read_capabilities
from engine.testing import FakeCheckpoint, FakeEngine, fake_capabilities
from studio.api import create_api
from studio.cli.app_context import MINI
from studio.context import open_studio
from studio.server.serving import listen
from studio.server.wyoming_server import WithWyoming
from studio.settings import ApiSettings
from studio.ui.page import mount_page
from tests.support.serving import serving


def twin() -> FakeCheckpoint:
    """The embedded model but for the length of a voice's vector, which is the fake worker's."""
    (able,) = read_capabilities([MINI]).values()
    return FakeCheckpoint(replace(able, width=fake_capabilities().width))


def main(folder: str) -> None:
    library = Library(Path(folder) / "voices")
    with FakeEngine([twin()]) as engine:
        settings = ApiSettings(reference_consent="operator", mcp=True)
        api = create_api(engine, library, settings)
        mount_page(api, open_studio(engine, library))
        wyoming = listen("127.0.0.1", 0)
        app = WithWyoming(api, api.state.context, wyoming)
        with serving(app, lifespan="on") as url:
            print(url.removeprefix("http://"))
            print(f"tcp://127.0.0.1:{wyoming.getsockname()[1]}", flush=True)
            sys.stdin.read()


if __name__ == "__main__":
    main(sys.argv[1])
