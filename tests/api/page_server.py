"""Page and API on a fake engine and a free port, until standard input is closed.

A process of its own, because Gradio leaves event loops and sockets to the collector.
"""

from __future__ import annotations

import sys
from pathlib import Path

from engine import FakeEngine, Library
from studio.api import create_api
from studio.page import mount_page

from .serving import serving


def main(folder: str) -> None:
    library = Library(Path(folder) / "voices")
    with FakeEngine() as engine:
        api = create_api(engine, library)
        mount_page(api, engine, library)
        with serving(api, lifespan="on") as url:
            print(url.removeprefix("http://"), flush=True)
            sys.stdin.read()


if __name__ == "__main__":
    main(sys.argv[1])
