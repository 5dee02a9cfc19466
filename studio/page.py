"""The studio at an address: put together, mounted, and served.

Knows no tabs and no handlers: the shell builds the page.
"""

from __future__ import annotations

import errno
import socket
from contextlib import suppress

import gradio as gr
import uvicorn
from fastapi import FastAPI

from engine import Engine, InvalidSetting, Library
from studio import downloads, help, theme
from studio.context import Studio
from studio.shell import build_shell
from studio.takes import Takes
from studio.transport import LiveTakes

GRACE = 3  # seconds for open connections at the end


def mount_page(
    application: FastAPI,
    engine: Engine,
    library: Library,
    takes: Takes | None = None,
    raw: bool = True,
) -> None:
    """Add the studio at / to an application that may have routes of its own.

    `takes` None: kept beside the voices. `raw` False where only Gradio's own routes are reached.
    """
    kept = takes or Takes(library.folder.parent / "takes")
    studio = Studio(engine, library, LiveTakes(raw=raw), kept)
    application.include_router(studio.live.router())
    application.include_router(downloads.router(kept))
    shell = build_shell(studio)
    shell.has_launched = True  # only then does Gradio refuse files that nobody has sent
    gr.mount_gradio_app(
        application,
        shell,
        "/",
        theme=theme.theme(),
        css=theme.STYLE,
        head=help.SCRIPT,
        run_history=False,
        footer_links=["api"],
        ssr_mode=False,
    )


def listen(host: str, port: int) -> socket.socket:
    """The address, taken before anything long is done. Raises InvalidSetting."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        return socket.create_server((host, port), family=family)
    except OSError as error:
        taken = error.errno == errno.EADDRINUSE
        reason = "is taken by another program" if taken else f"cannot be used: {error.strerror}"
        raise InvalidSetting(f"{host}:{port} {reason}. Choose another --port or --host.") from error


def serve(application: FastAPI, address: socket.socket) -> None:
    """Answer until Ctrl-C; open pages are given a moment to finish."""
    settings = uvicorn.Config(application, log_level="warning", timeout_graceful_shutdown=GRACE)
    with address, suppress(KeyboardInterrupt):
        uvicorn.Server(settings).run(sockets=[address])
