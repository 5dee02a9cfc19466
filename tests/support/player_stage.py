"""A page with one player on each transport, and streams whose sound and timing a test chooses."""

from __future__ import annotations

import asyncio
import math
import time
from collections.abc import AsyncIterator, Callable, Iterator
from dataclasses import dataclass, field

import fastapi
import gradio as gr
import numpy as np
import pytest

from engine import CODEBOOKS, FRAME_SAMPLES, Chunk, End, Pcm
from studio.takes.live_takes import LiveTakes
from studio.ui import static_files
from studio.ui.gradio_compat.queue_pace import pace
from studio.ui.live_player import live_player, plays
from tests.support.browser import Server, Tap, as_served

TRANSPORTS = ("event", "raw")
OVER = "now?.over && now.made && now.id !== player.before"


def noise(frames: int, seed: int = 0) -> Pcm:
    """Sound without a zero in it, so that every sample of it can be found again."""
    draw = np.random.default_rng(seed).integers(1, 8000, frames * FRAME_SAMPLES)
    sign = np.random.default_rng(seed + 1).choice([-1, 1], len(draw))
    return (draw * sign).astype(np.int16)


@dataclass
class Performance:
    """A stream that says `pcm` in chunks of `frames`, each at its own moment after the start."""

    pcm: Pcm
    moments: list[float]  # seconds, one a chunk
    frames: int = 2
    queued: float = 0.0  # seconds of waiting before the start
    end: End | None = None
    first: float | None = None  # seconds from submission to the first chunk
    said: int = 0  # chunks
    born: float = field(default_factory=time.perf_counter)
    left: bool = False

    @property
    def position(self) -> int | None:
        return 2 if time.perf_counter() - self.born < self.queued else None

    @property
    def estimate(self) -> float | None:
        return 3.0 if self.position is not None else None

    def cancel(self) -> None:
        self.left = True

    async def __aiter__(self) -> AsyncIterator[Chunk]:
        size = self.frames * FRAME_SAMPLES
        for index in range(len(self.moments)):
            await self._until(index)
            if self.left:
                break
            pcm = self.pcm[index * size : (index + 1) * size]
            self.first = self.first or time.perf_counter() - self.born
            self.said += 1
            yield Chunk(index, pcm, np.zeros((self.frames, CODEBOOKS), np.int64))
        reason = "cancelled" if self.left else "finished"
        self.end = End(reason, self.said * self.frames, seed=7)

    async def _until(self, index: int) -> None:
        while not self.left and self._left_to(index) > 0:
            await asyncio.sleep(min(self._left_to(index), 0.02))

    def _left_to(self, index: int) -> float:
        """Seconds until a chunk; a test may end the queue, or let go of what it holds."""
        return self.born + self.queued + self.moments[index] - time.perf_counter()


def steady(chunks: int, speed: float = 3.0, frames: int = 2, seed: int = 0) -> Performance:
    """An engine with a fixed speed."""
    every = frames * 0.08 / speed
    moments = [0.03 + every * index for index in range(chunks)]
    return Performance(noise(chunks * frames, seed), moments, frames)


def held(chunks: int) -> Performance:
    """A fast engine whose last chunk comes when a test says so (`released`), or never."""
    made = steady(chunks, speed=6)
    made.moments[-1] = math.inf
    return made


def released(performance: Performance) -> None:
    performance.moments = [0.0] * len(performance.moments)


@dataclass
class Stage:
    """`submit` is the test's: the engine's stream after a press of Speak."""

    submit: Callable[[], Performance] = lambda: steady(4)
    performed: list[Performance] = field(default_factory=list)
    kept: list[Pcm] = field(default_factory=list)

    def app(self) -> fastapi.FastAPI:
        app = fastapi.FastAPI()
        with gr.Blocks(analytics_enabled=False) as demo:
            for name, raw in (("event", False), ("raw", True)):
                takes = LiveTakes(raw=raw)
                app.include_router(takes.router()) if raw else None
                self._half(name, takes)
        demo.queue(max_size=100)
        pace(demo, str)
        app.include_router(static_files.router())
        return as_served(gr.mount_gradio_app(app, demo, path="/", head=static_files.script()))

    def _half(self, name: str, takes: LiveTakes) -> None:
        async def speak() -> AsyncIterator[object]:
            async for payload in takes.play(self._ask, self._keep):
                yield payload

        def pressed(event: gr.EventData) -> str:
            return f"{event._data['reason']} {event._data['samples']} {event._data['take']}"

        button = gr.Button(f"Speak by {name}")
        player = live_player(takes, elem_id=name)
        plays(player, [button.click], speak)
        player.take(pressed, None, gr.Textbox(label="take", elem_id=f"take-{name}"))

    def _ask(self) -> Performance:
        self.performed.append(self.submit())
        return self.performed[-1]

    def _keep(self, pcm: Pcm, end: End, left: bool) -> str:
        self.kept.append(pcm)
        return f"take-{len(self.kept)}"


def playing(samples: int) -> str:
    """How much of the latest take has been played."""
    return f"now?.id !== player.before && now?.report?.played > {samples}"


@pytest.fixture(scope="module")
def stage() -> Stage:
    return Stage()


@pytest.fixture(scope="module")
def url(browser: object, stage: Stage) -> Iterator[str]:
    with Server(stage.app()) as url:
        yield url


def press(tap: Tap, transport: str) -> None:
    tap.page.evaluate(f"(p => (p.before = p.now?.id))(window.timbre.players[{tap.index}])")
    tap.page.get_by_role("button", name=f"Speak by {transport}").click()


def as_heard(*pcm: np.ndarray) -> np.ndarray:
    return np.concatenate(pcm).astype(np.float32) / 32768
