"""A studio on a fake engine, and a page with one tab of it."""

from __future__ import annotations

import asyncio
import base64
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import fastapi
import gradio as gr
import numpy as np
import soundfile

from engine import SAMPLE_RATE, Clone, Library
from engine.testing import Costs, FakeCheckpoint, FakeEngine, fake_capabilities
from studio.context import Studio
from studio.takes.live_takes import LiveTakes
from studio.takes.take_store import Takes
from studio.ui import static_files
from studio.ui.gradio_compat.queue_pace import pace
from studio.ui.page import looks
from tests.support.browser import as_served


def make_studio(
    folder: Path, raw: bool = False, costs: Costs | None = None, **changes: object
) -> Studio:
    engine = FakeEngine([FakeCheckpoint(fake_capabilities(**changes))], costs=costs)
    return Studio(engine, Library(folder / "voices"), LiveTakes(raw=raw), Takes(folder / "takes"))


def some_clone(seed: int = 0) -> Clone:
    return Clone(np.random.default_rng(seed).normal(size=16).astype(np.float32))


def save_many(library: Library, count: int) -> None:
    """Save so many voices; Voice 000 is the oldest."""
    for number in range(count):
        minute = f"2026-01-01T{number // 60:02}:{number % 60:02}:00+00:00"
        library.save(f"Voice {number:03}", some_clone(number), consent=True, created=minute)


def recording(path: Path, seconds: float = 3.0, loud: float = 0.3) -> Path:
    """A tone with gaps like those of speech, between two silences."""
    time = np.arange(round(seconds * SAMPLE_RATE)) / SAMPLE_RATE
    quiet = np.zeros(SAMPLE_RATE)
    tone = loud * np.sin(2 * np.pi * 220 * time) * (np.sin(2 * np.pi * 2 * time) > -0.5)
    soundfile.write(path, np.concatenate([quiet, tone, quiet]), SAMPLE_RATE)
    return path


def app_of(build: Callable[[Studio], None], studio: Studio) -> fastapi.FastAPI:
    app = fastapi.FastAPI()
    app.include_router(studio.live.router())
    with gr.Blocks(analytics_enabled=False) as blocks, gr.Tab("The tab"):
        build(studio)
    blocks.queue(max_size=50)
    return mounted(app, blocks)


def mounted(app: fastapi.FastAPI, blocks: gr.Blocks) -> fastapi.FastAPI:
    """The page with the studio's scripts: without them Gradio may lose a press."""
    app.include_router(static_files.router())
    pace(blocks, str)
    head = looks()["head"]
    gr.mount_gradio_app(app, blocks, "/", run_history=False, ssr_mode=False, head=head)
    return as_served(app)


def payloads_of(payloads: AsyncIterator[Any]) -> list[Any]:
    """All events that a player would get."""

    async def all_of() -> list[Any]:
        return [payload async for payload in payloads]

    return asyncio.run(all_of())


def heard(payloads: list[Any]) -> bytes:
    """The sound of the payloads, each piece once."""
    sound = b""
    for payload in payloads:
        piece = base64.b64decode(payload["pcm"])
        sound += piece[len(sound) - 2 * payload["start"] :]
    return sound
