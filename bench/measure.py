"""One measured stream, and many of them under a load.

The clock starts at submission. Playback is simulated as an impatient listener: it starts
with the first chunk and never pauses, so `deficit` is the longest silence he would hear.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterable
from dataclasses import dataclass

from engine import Engine, SpeechRequest

GAP = 0.005  # a silence that a careful ear notices
UNDERRUN = 0.1  # a silence that everybody notices


@dataclass(frozen=True)
class Measured:
    """Seconds, all of them. `error` is empty when the stream ended well."""

    first: float
    total: float
    audio: float
    deficit: float
    error: str = ""

    @property
    def rtf(self) -> float:
        return self.total / max(self.audio, 1e-9)


async def measure(engine: Engine, request: SpeechRequest) -> Measured:
    start = time.perf_counter()
    first = audio = deficit = 0.0
    try:
        async with engine.submit(request) as stream:
            async for chunk in stream:
                now = time.perf_counter() - start
                first = first or now
                deficit = max(deficit, now - first - audio)
                audio += chunk.seconds
    except Exception as error:  # a failed request is a figure, not an end of the run
        return Measured(first, time.perf_counter() - start, audio, deficit, repr(error))
    return Measured(first, time.perf_counter() - start, audio, deficit)


@dataclass(frozen=True)
class Run:
    """What a load gave: every stream, and the wall time of the whole."""

    load: str
    streams: list[Measured]
    wall: float


async def closed_loop(engine: Engine, requests: Iterable[SpeechRequest], concurrency: int) -> Run:
    """`concurrency` listeners, each asking anew as soon as its answer has ended."""
    left, streams = iter(requests), []

    async def listener() -> None:
        for request in left:
            streams.append(await measure(engine, request))

    start = time.perf_counter()
    await asyncio.gather(*(listener() for _ in range(concurrency)))
    return Run(f"closed {concurrency}", streams, time.perf_counter() - start)
