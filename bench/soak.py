"""`python -m bench.soak --model DIR --minutes 30`: many visitors for a long time, and what is left.

Starts the studio (or uses `--url` with its `--pid`), lets visitors use API, sockets and page at
random, a fifth of them leaving early, and fails when an answer was neither whole nor plainly
refused, a slot stays taken, or memory or file handles grow. One JSON line last.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import random
import re
import socket
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any

import httpx
import typer

from bench.soak_visits import Broken, Visitor
from bench.soak_watch import Watch
from studio.ui.page import SESSIONS

ROOT = Path(__file__).resolve().parents[1]
LEAVES = 0.25  # of the visits that can be left: a fifth of all
GROWTH = 30.0  # megabytes that noise may look like
HANDLES = 8
PAUSE = 1.0  # seconds that a refused visitor waits at most


@dataclass
class Account:
    """How visits ended, by deed, and the first things that went wrong."""

    ends: Counter[tuple[str, str]] = field(default_factory=Counter)
    wrong: list[str] = field(default_factory=list)

    def note(self, deed: str, end: str, why: str = "") -> None:
        self.ends[deed, end] += 1
        if why and len(self.wrong) < 10:
            self.wrong.append(f"{deed}: {why}"[:300])

    def total(self, end: str) -> int:
        return sum(count for (_, each), count in self.ends.items() if each == end)


@dataclass(frozen=True)
class Town:
    """Where the server is, how many use it and for how long."""

    url: str
    visitors: int
    seconds: float
    deeds: tuple[str, ...]

    async def fill(self, visits: int) -> None:
        """So many visits that only ask who can speak: the server remembers them, up to a bound.
        What it holds is to be watched from there on."""
        async with httpx.AsyncClient(timeout=120) as http:
            visitor = Visitor(http, self.url, random.Random(0), LEAVES)
            for _ in range(visits):
                await visitor.glance()

    async def live(self, account: Account, seed: int = 1) -> None:
        until = time.monotonic() + self.seconds
        limits = httpx.Limits(max_connections=None, max_keepalive_connections=16)
        async with httpx.AsyncClient(timeout=120, limits=limits) as http:
            everybody = (
                self._person(http, account, until, random.Random(f"{seed} {number}"))
                for number in range(self.visitors)
            )
            await asyncio.gather(*everybody)

    async def _person(
        self, http: httpx.AsyncClient, account: Account, until: float, chosen: random.Random
    ) -> None:
        visitor = Visitor(http, self.url, chosen, LEAVES)
        while time.monotonic() < until:
            deed = chosen.choice(self.deeds)
            try:
                end = await visitor.visit(deed)
            except (Broken, httpx.HTTPError, OSError, EOFError) as error:
                account.note(deed, "broken", f"{type(error).__name__}: {error}")
            else:
                account.note(deed, end)
                if end == "refused":
                    await asyncio.sleep(chosen.uniform(0, PAUSE))


async def stuck(url: str, patience: float = 10.0) -> dict[str, float]:
    """What still runs or waits when everybody has left; empty when nothing does."""
    async with httpx.AsyncClient() as http:
        for _ in range(int(patience * 10)):
            told = (await http.get(f"{url}/metrics")).text
            left = {name: metric(told, name) for name in ("running", "waiting")}
            if not any(left.values()):
                return {}
            await asyncio.sleep(0.1)
    return left


def metric(told: str, name: str) -> float:
    found = re.search(rf"^timbre_{name} (\S+)", told, re.M)
    return float(found[1]) if found else -1.0


async def soak(town: Town, pid: int, remembered: int = SESSIONS) -> dict[str, Any]:
    if "page" in town.deeds:
        await town.fill(remembered)
    account, watch = Account(), Watch(pid)
    watching = asyncio.ensure_future(watch.run())
    try:
        await town.live(account)
    finally:
        watching.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await watching
    return report(town, account, watch, await stuck(town.url))


def report(town: Town, account: Account, watch: Watch, left: dict[str, float]) -> dict[str, Any]:
    held = watch.figures()
    ends = ("whole", "refused", "left", "broken")
    told = {
        "visitors": town.visitors,
        "seconds": town.seconds,
        **{end: account.total(end) for end in ends},
        "by_deed": {deed: {end: account.ends[deed, end] for end in ends} for deed in town.deeds},
        "stuck": left,
        **held,
        "wrong": account.wrong,
    }
    grown = (
        held["memory_growth_mb"] > GROWTH or held["handles_a_minute"] * held["minutes"] > HANDLES
    )
    told["good"] = not (told["broken"] or left or grown) and told["whole"] > 0
    return told


@contextmanager
def studio(model: str) -> Iterator[tuple[str, int]]:
    """The whole program on a free port; its address and process."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    with tempfile.TemporaryDirectory() as data:
        command = [sys.executable, "app.py", "serve", "--port", str(port), "--data", data]
        process = subprocess.Popen([*command, "--model", model], cwd=ROOT)
        try:
            wait_ready(f"http://127.0.0.1:{port}", process)
            yield f"http://127.0.0.1:{port}", process.pid
        finally:
            process.terminate()
            process.wait(60)


def wait_ready(url: str, process: subprocess.Popen[bytes], seconds: float = 300) -> None:
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline and process.poll() is None:
        with contextlib.suppress(httpx.HTTPError):
            if httpx.get(f"{url}/ready").status_code == 200:
                return
        time.sleep(0.2)
    raise SystemExit("The studio did not start. Its own words are above.")


def main(
    model: str = "",
    url: str = "",
    pid: int = 0,
    minutes: Annotated[float, typer.Option(min=0.01)] = 30,
    visitors: Annotated[int, typer.Option(min=1)] = 6,
    remembered: Annotated[int, typer.Option(help="page visits before it begins")] = SESSIONS,
    deed: Annotated[list[str] | None, typer.Option(help="Only these: file, stream …")] = None,
) -> None:
    deeds = tuple(deed or ("file", "stream", "events", "socket", "page", "listing"))
    with contextlib.ExitStack() as stack:
        if not url:
            url, pid = stack.enter_context(studio(model))
        town = Town(url.rstrip("/"), visitors, minutes * 60, deeds)
        told = asyncio.run(soak(town, pid, remembered))
    print(json.dumps(told))
    raise SystemExit(0 if told["good"] else 1)


if __name__ == "__main__":
    typer.run(main)
