"""Mounts the studio's page on an application. The shell builds the page."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import gradio as gr
from fastapi import Depends, FastAPI

from studio.context import LARGEST_UPLOAD, Studio
from studio.takes import downloads
from studio.ui import static_files, theme
from studio.ui.gradio_compat.pages import mounted, refuse_unsent_files
from studio.ui.gradio_compat.sessions import remember
from studio.ui.i18n import LANGUAGES
from studio.ui.login import Login
from studio.ui.shell import build_shell

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
    application.include_router(static_files.router())
    shell = build_shell(studio)
    refuse_unsent_files(shell)
    remember(shell, SESSIONS)
    gr.mount_gradio_app(application, shell, "/", **looks(), **door.asking)
    _resume_renderings(application, studio)
    door.guard(mounted(application))


def _resume_renderings(application: FastAPI, studio: Studio) -> None:
    """Once the application has started, in its event loop."""
    before = application.router.lifespan_context

    @asynccontextmanager
    async def lifespan(app: Any) -> AsyncIterator[Any]:
        async with before(app) as state:
            resuming = asyncio.create_task(studio.playback.resume())
            try:
                yield state
            finally:
                resuming.cancel()

    application.router.lifespan_context = lifespan


def looks() -> dict[str, Any]:
    """Arguments for Gradio wherever the page is served."""
    return {
        "theme": theme.theme(),
        "css": theme.STYLE,
        "head": static_files.script(),
        "i18n": LANGUAGES,
        "run_history": False,
        "footer_links": ["api"],
        "max_file_size": LARGEST_UPLOAD,
        "ssr_mode": False,
    }
