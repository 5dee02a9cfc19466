"""Mounts the studio's page on an application. The shell builds the page."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import gradio as gr
from fastapi import Depends, FastAPI

from studio.context import LARGEST_UPLOAD, Studio
from studio.takes import downloads
from studio.ui import shortcuts, theme
from studio.ui.blend_pad import blend_pad
from studio.ui.i18n import LANGUAGES
from studio.ui.login import Login
from studio.ui.player import player
from studio.ui.sessions import remember
from studio.ui.shell import build_shell
from studio.ui.tabs.script import tab as script

STATIC = Path(__file__).parent / "static"
ACCESSIBLE, ANSWERS, CONNECTION, OPENING, TAKES, USE_VOICE, VOICE_SEARCH = (
    (STATIC / f"{name}.js").read_text(encoding="utf-8")
    for name in (
        "accessible",
        "answers",
        "connection",
        "opening",
        "takes",
        "use_voice",
        "voice_search",
    )
)
SCRIPTS = f"{ACCESSIBLE}{OPENING}{CONNECTION}{ANSWERS}{TAKES}{USE_VOICE}{VOICE_SEARCH}"
# Runs before any component is built, so that each finds its script there.
HEAD = f"{shortcuts.SCRIPT}<script>{SCRIPTS}</script>{player.HEAD}{blend_pad.HEAD}{script.HEAD}"
SESSIONS = (
    256  # sessions that Gradio keeps, 0.1 to 0.25 MB each; its default of 10,000 would take 1 GB
)


def mount_page(application: FastAPI, studio: Studio, login: Login | None = None) -> None:
    """Add the page at / to an application that may have routes already.

    `login` None: everybody may see it.
    """
    door = login or Login(())
    routers = [studio.live.router(), downloads.router(studio.takes)]
    routers += [studio.uploads.router()] if studio.uploads else []
    for router in routers:
        application.include_router(router, dependencies=[Depends(door.check)])
    shell = build_shell(studio)
    shell.has_launched = True  # only then does Gradio refuse files that were not uploaded
    remember(shell, SESSIONS)
    gr.mount_gradio_app(application, shell, "/", **looks(), **door.asking)
    door.guard(application.routes[-1].app)  # type: ignore[attr-defined]  # the mount


def looks() -> dict[str, Any]:
    """What Gradio is told wherever the page is served."""
    return {
        "theme": theme.theme(),
        "css": theme.STYLE,
        "head": HEAD,
        "i18n": LANGUAGES,
        "run_history": False,
        "footer_links": ["api"],
        "max_file_size": LARGEST_UPLOAD,
        "ssr_mode": False,
    }
