"""Samples memory and file handles of a server from /proc: of its process and of its children."""

from __future__ import annotations

import asyncio
import os
import re
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

WARM = 1 / 3  # of the time, in which caches fill and code is loaded


@dataclass(frozen=True)
class Sample:
    at: float  # seconds
    megabytes: float
    handles: int
    threads: int


@dataclass
class Watch:
    """Samples of one process with its children, one per second."""

    pid: int
    samples: list[Sample] = field(default_factory=list)

    def look(self) -> Sample:
        family = [_look(self.pid)]
        for child in _children(self.pid):
            with suppress(OSError):  # it has ended meanwhile
                family.append(_look(child))
        return Sample(
            time.monotonic(),
            sum(each.megabytes for each in family),
            sum(each.handles for each in family),
            sum(each.threads for each in family),
        )

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Sample meanwhile. Raises at the end if sampling has failed."""
        sampling = asyncio.ensure_future(self._run())
        try:
            yield
        finally:
            sampling.cancel()
            with suppress(asyncio.CancelledError):
                await sampling

    async def _run(self) -> None:
        while True:
            self.samples.append(self.look())
            await asyncio.sleep(1)

    def figures(self) -> dict[str, Any]:
        """Slopes after the warm-up."""
        kept = self.samples[int(len(self.samples) * WARM) :]
        minutes = max(1e-9, (kept[-1].at - kept[0].at) / 60)
        memory = slope(kept, "megabytes")
        return {
            "minutes": round(minutes, 2),
            "memory_mb": [round(each.megabytes) for each in (kept[0], kept[-1])],
            "memory_mb_a_minute": round(memory, 3),
            "memory_growth_mb": round(memory * minutes, 1),
            "handles": [kept[0].handles, max(each.handles for each in kept), kept[-1].handles],
            "handles_a_minute": round(slope(kept, "handles"), 3),
            "threads": max(each.threads for each in kept),
        }


def _look(pid: int) -> Sample:
    place = Path(f"/proc/{pid}")
    status = (place / "status").read_text()
    return Sample(
        time.monotonic(),
        _number(status, "VmRSS") / 1024,
        len(os.listdir(place / "fd")),
        _number(status, "Threads"),
    )


def _children(pid: int) -> list[int]:
    children: list[int] = []
    for task in Path(f"/proc/{pid}/task").glob("*/children"):
        with suppress(OSError):  # a thread that has ended meanwhile
            children += map(int, task.read_text().split())
    return children


def slope(samples: list[Sample], what: str) -> float:
    """Growth per minute by least squares; 0 with too few samples."""
    if len(samples) < 3:
        return 0.0
    minutes = np.array([each.at for each in samples]) / 60
    values = np.array([getattr(each, what) for each in samples], np.float64)
    return float(np.polyfit(minutes - minutes[0], values, 1)[0])


def _number(status: str, name: str) -> int:
    found = re.search(rf"^{name}:\s+(\d+)", status, re.M)
    return int(found[1]) if found else 0
