"""The plain page: a text, a voice, its sound.

A request is followed while it is spoken and its finished take is shown; Stop keeps what was
made. Knows no tensors and no scheduler.
"""

from __future__ import annotations

import asyncio
import errno
import socket
import time
from collections.abc import AsyncIterator
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, TypeAlias

import gradio as gr
import numpy as np
import uvicorn
from fastapi import FastAPI

from engine import (
    SAMPLE_RATE,
    Chunk,
    Engine,
    InvalidSetting,
    Library,
    Pcm,
    SpeechRequest,
    SpeechStream,
    TimbreError,
)
from studio.choosing import Choices

Update: TypeAlias = Any  # what Gradio takes for a component

PULSE = 0.3  # seconds; while nothing comes, so that a closed tab is noticed
QUEUE = 128
GRACE = 3  # seconds for open connections at the end
KEEP = 3600  # seconds a take stays in Gradio's cache
_ENDINGS = {
    "length": " It reached the limit of its length.",
    "runaway": " It went on without end and was stopped. Try another seed.",
    "cancelled": " Stopped.",
}


@dataclass
class Progress:
    """What is known of a take while it is made."""

    started: float
    first: float | None = None
    samples: int = 0
    wall: float = 0.0

    def add(self, chunk: Chunk) -> None:
        self.wall = time.perf_counter() - self.started
        self.first = self.wall if self.first is None else self.first
        self.samples += len(chunk.pcm)

    def live(self, stream: SpeechStream) -> str:
        if self.samples:
            return f"Speaking: {self.samples / SAMPLE_RATE:.1f} s so far."
        if stream.position:
            return f"Waiting: {stream.position} before you, about {stream.estimate or 0:.0f} s."
        return "Starting …"

    def finished(self, stream: SpeechStream) -> str:
        seconds = self.samples / SAMPLE_RATE
        ending = _ENDINGS.get(stream.end.reason, "") if stream.end else ""
        if self.first is None:
            return f"There is no sound.{ending}"
        speed = seconds / max(self.wall, 1e-9)
        return (
            f"{seconds:.1f} s, first sound after {self.first * 1000:.0f} ms, "
            f"{speed:.1f} × real time, seed {stream.seed}.{ending}"
        )


class Page:
    """What the buttons do. Each visitor has at most one take under way."""

    def __init__(self, engine: Engine, library: Library) -> None:
        self._engine = engine
        self._choices = Choices(engine.capabilities(), library)
        self._running: dict[str, SpeechStream] = {}  # by session

    def voices(self) -> list[tuple[str, str]]:
        """Labels and names for the list of voices."""
        found = [(_label(own.name, own.note), own.name) for own in self._choices.list()]
        return found or [("The model's own", "")]

    def languages(self) -> list[tuple[str, str]]:
        return [(name.capitalize(), name) for name in self._choices.languages()]

    def instruction(self, voice: str) -> Update:
        """The field for instructions, closed with the reason where they would do nothing."""
        reason = self._choices.refusal(voice) if voice else ""
        hint = reason or "For example: slowly, with a smile"
        changes: dict[str, Any] = {"value": ""} if reason else {}
        return gr.update(interactive=not reason, placeholder=hint, **changes)

    def stop(self, session: gr.Request) -> None:
        """End the visitor's take within a frame; what was made is shown."""
        self._stop(str(session.session_hash))

    async def speak(
        self, text: str, voice: str, language: str, seed: str, instruct: str, session: gr.Request
    ) -> AsyncIterator[tuple[Update, ...]]:
        """Status, take, Speak, Stop: again and again until the take is there."""
        yield "Starting …", None, *_buttons(speaking=True)
        try:
            request = self._request(text, voice, language, seed, instruct)
            async for update in self._follow(request, str(session.session_hash)):
                yield *update, *_buttons(speaking=True)
        except TimbreError as error:
            yield str(error), gr.skip(), *_buttons(speaking=False)
        else:
            yield gr.skip(), gr.skip(), *_buttons(speaking=False)

    def _stop(self, session: str) -> None:
        stream = self._running.get(session)
        if stream:
            stream.cancel()

    def _request(
        self, text: str, voice: str, language: str, seed: str, instruct: str
    ) -> SpeechRequest:
        named = self._choices.named(voice, instruct) if voice else self._choices.default(instruct)
        return SpeechRequest(text=text, voice=named, language=language, seed=_seed(seed))

    async def _follow(self, request: SpeechRequest, session: str) -> AsyncIterator[Any]:
        """Status and take of one request."""
        parts: list[Pcm] = []
        async with self._engine.submit(request) as stream:
            self._stop(session)
            self._running[session] = stream
            progress = Progress(time.perf_counter())
            try:
                async for chunk in pulses(stream):
                    if chunk is not None:
                        progress.add(chunk)
                        parts.append(chunk.pcm)
                    yield progress.live(stream), gr.skip()
            finally:
                if self._running.get(session) is stream:
                    del self._running[session]
            yield progress.finished(stream), _take(parts)


async def pulses(stream: SpeechStream, period: float = PULSE) -> AsyncIterator[Chunk | None]:
    """The chunks of a stream, and None whenever none came for a while."""
    while True:
        coming = asyncio.ensure_future(_next(stream))
        try:
            while not (await asyncio.wait([coming], timeout=period))[0]:
                yield None
        finally:
            coming.cancel()
        chunk = coming.result()
        if chunk is None:
            return
        yield chunk


async def _next(stream: SpeechStream) -> Chunk | None:
    return await anext(stream, None)


def build_page(engine: Engine, library: Library) -> Any:
    """The page; to be mounted, or launched by a test."""
    page = Page(engine, library)
    with gr.Blocks(title="Timbre", analytics_enabled=False, delete_cache=(KEEP, KEEP)) as blocks:
        gr.Markdown("# Timbre\nType a text, pick a voice, and listen.")
        with gr.Row():
            with gr.Column(scale=3):
                text = gr.Textbox(label="Text", lines=6, max_lines=20, autofocus=True)
                instruct = gr.Textbox(label="How to speak (optional)", max_lines=3)
            with gr.Column(scale=2):
                voice = gr.Dropdown(page.voices(), label="Voice")
                language = gr.Dropdown(page.languages(), value="auto", label="Language")
                seed = gr.Textbox(label="Seed (empty: a new one each time)", max_lines=1)
        with gr.Row():
            speak = gr.Button("Speak", variant="primary")
            stop = gr.Button("Stop", interactive=False)
        status = gr.Textbox(label="Progress", interactive=False, lines=2, max_lines=2)
        take = gr.Audio(label="Take", type="numpy", format="wav", interactive=False, autoplay=True)
        _wire(blocks, page, (text, voice, language, seed, instruct), (status, take, speak, stop))
    return blocks


def mount_page(application: FastAPI, engine: Engine, library: Library) -> None:
    """Add the page at / to an application that may have routes of its own."""
    blocks = build_page(engine, library)
    gr.mount_gradio_app(
        application, blocks, "/", run_history=False, footer_links=[], ssr_mode=False
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


def _wire(blocks: gr.Blocks, page: Page, inputs: Any, outputs: Any) -> None:
    text, voice, _, _, instruct = inputs
    _, _, speak, stop = outputs
    free: dict[str, Any] = {"concurrency_limit": None, "show_progress": "hidden"}
    gr.on([speak.click, text.submit], page.speak, inputs, outputs, api_name="speak", **free)
    stop.click(page.stop, None, None, queue=False, api_name="stop")
    for event in (voice.change, blocks.load):
        event(page.instruction, voice, instruct, queue=False, api_visibility="private")
    blocks.unload(page.stop)
    blocks.max_threads = QUEUE
    blocks.queue(max_size=QUEUE, default_concurrency_limit=None)


def _buttons(speaking: bool) -> tuple[Update, Update]:
    return gr.update(interactive=not speaking), gr.update(interactive=speaking)


def _take(parts: list[Pcm]) -> tuple[int, Pcm] | None:
    """int16, so that Gradio leaves the level alone."""
    return (SAMPLE_RATE, np.concatenate(parts)) if parts else None


def _seed(written: str) -> int | None:
    digits = written.strip()
    if not digits:
        return None
    if not digits.isdecimal() or len(digits) > 18:
        raise InvalidSetting("The seed must be a whole number, or empty.")
    return int(digits)


def _label(name: str, note: str) -> str:
    return f"{name} ({note})" if note else name
