"""`python -m bench.stress.mixed_load --model DIR`: visitors and attacks beside one listener.

Visitors of `bench.soak` use a server, every attack of `bench.stress.attacks` goes on beside them,
and somebody listens all the time. It fails when the listener hears a gap, a visitor's answer is
broken, an answer to an attack is a fault, or a slot stays taken. One JSON line last, with memory
and file handles.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import time
from collections import Counter
from contextlib import ExitStack
from dataclasses import dataclass, field
from itertools import count
from typing import Annotated, Any

import httpx
import numpy as np
import typer

from bench.http_lines import Refused, Server
from bench.load_generator import UNDERRUN, StreamMeter
from bench.soak import Account, Crowd, stuck, studio
from bench.soak_watch import Watch
from bench.stress.attacks import ATTACKS, Attack, Place
from bench.stress.overload import retry_after
from bench.workload import Work

NOTICED = 0.02  # seconds of silence
PAUSE = 1.0  # between two attacks of a kind, in seconds
ACTIONS = ("file", "stream", "events", "socket", "page", "listing")


@dataclass
class Heard:
    """What the listener heard."""

    texts: int = 0
    seconds: float = 0.0
    refused: int = 0
    gaps: list[float] = field(default_factory=list)
    first: list[float] = field(default_factory=list)
    broken: list[str] = field(default_factory=list)

    def figures(self) -> dict[str, Any]:
        return {
            "texts": self.texts,
            "audio_s": round(self.seconds, 1),
            "refused": self.refused,
            "gaps": sum(gap > NOTICED for gap in self.gaps),
            "underruns": sum(gap > UNDERRUN for gap in self.gaps),
            "worst_gap_s": round(max(self.gaps, default=0.0), 3),
            "first_p50_s": round(float(np.median(self.first)), 2) if self.first else None,
            "first_most_s": round(max(self.first, default=0.0), 2),
            "broken": self.broken[:5],
        }


async def listen(url: str, heard: Heard) -> None:
    """One text after another, until it is cancelled."""
    server = Server(url)
    for job in Work(seed=5).stream():
        body = {"input": job.text, "response_format": "pcm", "seed": job.seed}
        meter = StreamMeter()
        try:
            async for piece in server.ask("POST", "/v1/audio/speech", json.dumps(body).encode()):
                meter.add(np.frombuffer(piece[: len(piece) // 2 * 2], np.int16))
        except Refused as refused:
            heard.refused += 1
            wait = retry_after(refused.body)
            if wait is None:
                heard.broken.append(str(refused)[:200])
            await asyncio.sleep(min(wait or 1.0, 5.0))
            continue
        except OSError as error:
            heard.broken.append(repr(error)[:200])
            await asyncio.sleep(1)
            continue
        heard.texts += 1
        heard.seconds += meter.audio
        heard.gaps.append(meter.deficit)
        heard.first.append(meter.first)


async def repeat(attack: Attack, place: Place, answers: Counter[str], faults: list[str]) -> None:
    """One attack again and again, until it is cancelled."""
    for number in count():
        try:
            told = await attack(place)
        except OSError as error:  # the backlog was full
            answers[f"{attack.__name__} {type(error).__name__}"] += 1
            told = []
        for status in told:
            answers[f"{attack.__name__} {status}"] += 1
            if status >= 500 and status not in (503, 507):
                faults.append(f"{attack.__name__} {number}: {status}")
        await asyncio.sleep(PAUSE)


async def mixed(
    url: str, pid: int, seconds: float, visitors: int, attacks: tuple[Attack, ...]
) -> dict[str, Any]:
    everybody, account = Crowd(url, visitors, seconds, ACTIONS), Account()
    watch, heard = Watch(pid), Heard()
    answers, faults = Counter[str](), list[str]()
    width = httpx.get(f"{url}/v1/models").json()["data"][0]["embedding_dim"]
    beside = [asyncio.ensure_future(watch.run()), asyncio.ensure_future(listen(url, heard))]
    for number, attack in enumerate(attacks, 2):
        place = Place(url, f"127.0.0.{number}", width)
        beside.append(asyncio.ensure_future(repeat(attack, place, answers, faults)))
    started = time.monotonic()
    await everybody.live(account)
    for task in beside:
        task.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await asyncio.gather(*beside, return_exceptions=True)
    ends = {end: account.total(end) for end in ("whole", "refused", "left", "broken")}
    left = await stuck(url)
    told = {
        "seconds": round(time.monotonic() - started),
        "listener": heard.figures(),
        "visitors": {**ends, "wrong": account.wrong},
        "attacks": dict(sorted(answers.items())),
        "faults": faults[:10],
        "stuck": left,
        **watch.figures(),
    }
    quiet = not any(gap > NOTICED for gap in heard.gaps) and not heard.broken
    told["good"] = quiet and not (faults or left or ends["broken"]) and heard.texts > 0
    return told


def main(
    model: str = "",
    url: str = "",
    pid: int = 0,
    minutes: Annotated[float, typer.Option(min=0.01)] = 30,
    visitors: Annotated[int, typer.Option(min=1)] = 2,
    attack: Annotated[list[str] | None, typer.Option(help="Only these: junk, crowd …")] = None,
) -> None:
    chosen = tuple(each for each in ATTACKS if not attack or each.__name__ in attack)
    with ExitStack() as stack:
        if not url:
            url, pid = stack.enter_context(studio(model or "presets/mini"))
        told = asyncio.run(mixed(url.rstrip("/"), pid, minutes * 60, visitors, chosen))
    print(json.dumps(told))
    raise SystemExit(0 if told["good"] else 1)


if __name__ == "__main__":
    typer.run(main)
