"""Measures one stream, and generates loads of many streams.

The clock starts with the request. Playback is simulated as starting with the first piece and never
pausing to buffer, so `deficit` is the longest gap that a listener would hear. Knows neither engine
nor HTTP: `Listen` gives the audio of a job.
"""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import islice
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from bench.workload import Job

RATE = 24_000
GAP = 0.005  # seconds; just audible
UNDERRUN = 0.1  # seconds; clearly audible
AUDIBLE = 10 ** (-45 / 20) * 2**15  # -45 dBFS
PATIENCE = 180.0

Listen: TypeAlias = Callable[[Job], AsyncIterator[NDArray[np.int16]]]


@dataclass(frozen=True)
class Measured:
    """Times in seconds. `audible`: until the piece with the first sound above silence.

    `error` is empty if the stream ended normally.
    """

    first: float
    total: float
    audio: float
    deficit: float
    error: str = ""
    audible: float = 0.0
    kind: str = "preset"

    @property
    def rtf(self) -> float:
        return self.total / max(self.audio, 1e-9)


class StreamMeter:
    """Measures the pieces of one stream."""

    def __init__(self) -> None:
        self.start = time.perf_counter()
        self.first = self.audible = self.audio = self.deficit = 0.0

    def add(self, pcm: NDArray[np.int16]) -> None:
        now = time.perf_counter() - self.start
        self.first = self.first or now
        self.deficit = max(self.deficit, now - self.first - self.audio)
        self.audio += len(pcm) / RATE
        if not self.audible and np.abs(pcm.astype(np.int32)).max(initial=0) >= AUDIBLE:
            self.audible = now

    def measured(self, kind: str, error: str = "") -> Measured:
        total = time.perf_counter() - self.start
        heard = (self.first, total, self.audio, self.deficit)
        return Measured(*heard, error, self.audible, kind)


async def measure(listen: Listen, job: Job) -> Measured:
    meter = StreamMeter()

    async def hear() -> None:
        async for pcm in listen(job):
            meter.add(pcm)

    try:
        await asyncio.wait_for(hear(), PATIENCE)
    except Exception as error:  # a failed request is counted and does not end the run
        return meter.measured(job.kind, repr(error)[:300])
    return meter.measured(job.kind, "" if meter.audio else "no sound came")


@dataclass(frozen=True)
class Run:
    """The results of a load: every stream, and the wall time."""

    load: str
    streams: list[Measured]
    wall: float


async def closed_loop(listen: Listen, jobs: Iterable[Job], concurrency: int) -> Run:
    """`concurrency` listeners, each starting a new request as soon as its last has ended."""
    left, streams = iter(jobs), []

    async def listener() -> None:
        for job in left:
            streams.append(await measure(listen, job))

    start = time.perf_counter()
    await asyncio.gather(*(listener() for _ in range(concurrency)))
    return Run(f"closed {concurrency}", streams, time.perf_counter() - start)


async def poisson(listen: Listen, jobs: Iterator[Job], rate: float, seconds: float) -> Run:
    """An open loop: requests at random times, `rate` per second on average."""
    tasks: list[Awaitable[Measured]] = []
    chance, due = random.Random(rate), 0.0
    start = time.perf_counter()
    for job in jobs:
        await asyncio.sleep(max(0.0, start + due - time.perf_counter()))
        tasks.append(asyncio.create_task(measure(listen, job)))
        due += chance.expovariate(rate)
        if due >= seconds:
            break
    streams = list(await asyncio.gather(*tasks))
    return Run(f"poisson {rate:g}", streams, time.perf_counter() - start)


async def burst(listen: Listen, jobs: Iterator[Job], count: int) -> Run:
    """All requests at once, on an idle engine."""
    run = await closed_loop(listen, islice(jobs, count), count)
    return Run(f"burst {count}", run.streams, run.wall)
