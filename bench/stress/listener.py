"""Somebody who listens to one text after another, in a process of its own.

A gap is how long a player would have been without sound: it starts with the first byte and plays
on, and each piece counts when it arrives. Knows only POST /v1/audio/speech.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np

from bench.http_lines import Refused, Server
from bench.load_generator import UNDERRUN, StreamMeter
from bench.stress.attackers import pin
from bench.stress.overload import hear, retry_after
from bench.workload import Job, Work

NOTICED: Final = 0.02  # seconds of silence
LONGEST_PAUSE: Final = 5.0  # before a refused text is requested again, in seconds


@dataclass
class Heard:
    """What the listener heard: for each text when it began, its first sound and longest gap."""

    texts: list[tuple[float, float, float]] = field(default_factory=list)
    audio: float = 0.0
    refused: int = 0
    broken: list[str] = field(default_factory=list)

    @property
    def gaps(self) -> list[float]:
        return [gap for _, _, gap in self.texts]

    @property
    def undisturbed(self) -> bool:
        return bool(self.texts) and not self.broken and max(self.gaps) <= NOTICED

    def figures(self) -> dict[str, Any]:
        first = [first for _, first, _ in self.texts]
        worst = sorted(self.texts, key=lambda text: -text[2])[:8]
        return {
            "texts": len(self.texts),
            "audio_s": round(self.audio, 1),
            "refused": self.refused,
            "gaps": sum(gap > NOTICED for gap in self.gaps),
            "underruns": sum(gap > UNDERRUN for gap in self.gaps),
            "worst_gap_s": round(max(self.gaps, default=0.0), 3),
            "worst_at_s": [[round(at, 1), round(gap, 3)] for at, _, gap in worst if gap > NOTICED],
            "first_p50_s": round(float(np.median(first)), 2) if first else None,
            "first_most_s": round(max(first, default=0.0), 2),
            "broken": self.broken[:5],
        }


def run(url: str, key: str, seconds: float, cores: Sequence[int]) -> Heard:
    """The work of the process."""
    pin(cores)
    return asyncio.run(listen(url, key, seconds))


async def listen(url: str, key: str, seconds: float) -> Heard:
    heard, server, start = Heard(), Server(url, key), time.monotonic()
    for job in Work(seed=5).stream():
        if time.monotonic() - start >= seconds:
            break
        await _hear(server, job, heard, time.monotonic() - start)
    server.close()
    return heard


async def _hear(server: Server, job: Job, heard: Heard, at: float) -> None:
    meter = StreamMeter()
    try:
        await hear(server, job, meter)
    except Refused as refused:
        heard.refused += 1
        wait = retry_after(refused.body)
        if wait is None:
            heard.broken.append(str(refused)[:200])
        await asyncio.sleep(min(wait or 1.0, LONGEST_PAUSE))
    except OSError as error:
        heard.broken.append(repr(error)[:200])
        await asyncio.sleep(1)
    else:
        heard.texts.append((at, meter.first, meter.deficit))
        heard.audio += meter.audio
