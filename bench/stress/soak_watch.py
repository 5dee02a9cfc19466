"""Samples memory and file handles of a server process from /proc."""

from __future__ import annotations

import asyncio
import os
import re
import time
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
    """Samples of one process, one per second."""

    pid: int
    samples: list[Sample] = field(default_factory=list)

    def look(self) -> Sample:
        place = Path(f"/proc/{self.pid}")
        status = (place / "status").read_text()
        return Sample(
            time.monotonic(),
            _number(status, "VmRSS") / 1024,
            len(os.listdir(place / "fd")),
            _number(status, "Threads"),
        )

    async def run(self) -> None:
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
