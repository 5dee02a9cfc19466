"""Mounts the studio's page on an application. The shell builds the page."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import gradio as gr
from fastapi import Depends, FastAPI

from engine import Library, SpeechEngine
from studio.imports.project_uploads import MOST_FILE, ProjectUploads
from studio.takes import downloads
from studio.takes.take_store import Takes
from studio.ui import shortcuts, theme
from studio.ui.blend_pad import blend_pad
from studio.ui.context import Studio
from studio.ui.i18n import LANGUAGES
from studio.ui.login import Login
from studio.ui.player import player
from studio.ui.player.live_takes import LiveTakes
from studio.ui.sessions import remember
from studio.ui.shell import build_shell
from studio.ui.tabs.script import tab as script
from studio.voices.transcription import Transcribe
from studio.voices.voice_training import VoiceTraining

LARGEST_UPLOAD = 100 << 20  # bytes, as for the largest recording; Gradio's default is unlimited
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


def mount_page(
    application: FastAPI,
    engine: SpeechEngine,
    library: Library,
    takes: Takes | None = None,
    raw: bool = True,
    guests: bool = False,
    login: Login | None = None,
    transcribe: Transcribe | None = None,
    trainings: VoiceTraining | None = None,
) -> Studio:
    """Add the studio at / to an application that may have routes of its own; returns its state.

    `takes` None: kept beside the voices. `raw` False where only Gradio's own routes are reached.
    `guests` True where strangers come: each sees only own takes, and nobody loads models.
    `login` None: everybody may see it. `transcribe` None: transcripts are typed.
    `trainings` None: no voice is trained here.
    """
    door = login or Login(())
    kept = takes or Takes(library.folder.parent / "takes")
    live = LiveTakes(raw, lambda: engine.stats().speed)
    most = LARGEST_UPLOAD if guests else MOST_FILE
    uploads = ProjectUploads(library.folder.parent / "uploads", most)
    studio = Studio(engine, library, live, kept, guests, transcribe, trainings, uploads)
    for router in (studio.live.router(), downloads.router(kept), uploads.router()):
        application.include_router(router, dependencies=[Depends(door.check)])
    shell = build_shell(studio)
    shell.has_launched = True  # only then does Gradio refuse files that were not uploaded
    remember(shell, SESSIONS)
    gr.mount_gradio_app(application, shell, "/", **looks(), **door.asking)
    door.guard(application.routes[-1].app)  # type: ignore[attr-defined]  # the mount
    return studio


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
