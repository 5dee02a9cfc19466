"""Scripts to render, readers of their audio, and an engine that ends requests in any order."""

from __future__ import annotations

import asyncio
import io
import random
from collections.abc import AsyncIterator, Callable, Coroutine
from dataclasses import replace
from typing import Any, TypeVar

import numpy as np

from engine import Busy, Chunk, End, InvalidText, Pcm, Preset, SpeechRequest, StepFailed
from engine.testing import FakeEngine
from studio.imports import reader
from studio.scripts.line_audio import silence
from studio.scripts.line_requests import Delivery, Job, plan
from studio.scripts.model import Script
from studio.scripts.rendering.batch_synthesis import BatchSynthesis
from studio.scripts.text.passages import PLAIN, SpeechOptions
from studio.scripts.text.typed import script_of_text

T = TypeVar("T")
TEXT = (
    "Anna: Where have you been all this time?\n"
    "Ben: I was looking for the key. [pause 0.5s] I found nothing.\n\n"
    "And so they went home, and said no more about it that day.\n\n"
    "Anna: Where have you been all this time?\n"
    "Ben: ***\n"
)


def script_of_file(name: str, data: bytes, options: SpeechOptions = PLAIN) -> Script:
    """What the reader makes of a file, in this process."""
    return reader.script_of_file(name, io.BytesIO(data), options)


def run(work: Coroutine[Any, Any, T]) -> T:
    return asyncio.run(asyncio.wait_for(work, 30))


def jobs_of(text: str = TEXT, **changes: Any) -> tuple[Job, ...]:
    script = script_of_text(text)
    voices = {speaker: Preset("ryan") for speaker in script.speakers}
    return plan(script, voices, Delivery().having(**changes))


async def heard(rendering: BatchSynthesis, start: int | None = None) -> list[tuple[int, Pcm]]:
    """The audio of each line, with the silence after it."""
    sound: dict[int, list[Pcm]] = {}
    async for piece in rendering.play(start):
        sound.setdefault(piece.line, []).append(piece.pcm)
    return [(line, np.concatenate(parts)) for line, parts in sound.items()]


def spoken_alone(engine: FakeEngine, job: Job) -> Pcm:
    if job.request is None:
        return silence(0)
    return engine.submit(replace(job.request, live=False)).collect()


class Unruly:
    """An engine whose requests end in any order and any way."""

    def __init__(
        self,
        seed: int,
        fate: Callable[[SpeechRequest], str] = lambda _: "",
        samples: int = 1920,
    ) -> None:
        self.samples = samples  # of a chunk
        self.random = random.Random(seed)
        self.fate = fate
        self.running = self.most = 0
        self.asked: list[SpeechRequest] = []

    def submit(self, request: SpeechRequest) -> Any:
        if self.fate(request) == "refused":
            raise InvalidText("{name} cannot speak this text. Change it.", name="Mini")
        if self.fate(request) == "busy" and self.random.random() < 0.5:
            raise Busy(9, 0.001)
        self.asked.append(request)
        return UnrulyStream(self, request)


class UnrulyStream:
    def __init__(self, owner: Unruly, request: SpeechRequest) -> None:
        self.owner, self.request, self.id = owner, request, len(owner.asked)
        self.end: End | None = None

    async def __aenter__(self) -> UnrulyStream:
        self.owner.running += 1
        self.owner.most = max(self.owner.most, self.owner.running)
        return self

    async def __aexit__(self, *_: object) -> None:
        self.owner.running -= 1

    async def __aiter__(self) -> AsyncIterator[Chunk]:
        fate = self.owner.fate(self.request)
        for index in range(1 + len(self.request.text) % 3):
            await asyncio.sleep(self.owner.random.random() * 0.004)
            yield Chunk(index, self._pcm(), np.zeros((1, 16), np.int64))
        if fate == "error":
            raise StepFailed("The engine failed while it was speaking. Try again.")
        reason = fate if fate in ("runaway", "length", "cancelled") else "finished"
        self.end = End(reason, 1, self.request.seed or 0)  # type: ignore[arg-type]

    def _pcm(self) -> Pcm:
        return np.full(self.owner.samples, len(self.request.text), np.int16)


LINES = "\n\n".join(f"Sentence number {'one ' * number}is long enough." for number in range(12))
