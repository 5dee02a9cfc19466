"""`python -m bench.stress.soak --model DIR --minutes 30`: a soak test of the whole studio.

Starts the studio (or uses `--url` with its `--pid`); visitors use API, WebSockets and page at
random, and a fifth leave early. It fails when an answer is neither complete nor a clear refusal, a
slot stays taken, or memory or file handles grow. One JSON line last.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import random
import re
import socket
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any

import httpx
import numpy as np
import typer

from bench.stress.soak_visits import Broken, Visitor
from bench.stress.soak_watch import Watch
from engine import Clone, Library, read_capabilities

ROOT = Path(__file__).resolve().parents[2]
LEAVES = 0.25  # of the visits that can be left, which is a fifth of all
GROWTH = 30.0  # megabytes of allowed noise
HANDLES = 8
PAUSE = 1.0  # longest wait of a refused visitor in seconds
ENDS = ("whole", "refused", "left", "broken")


@dataclass
class Account:
    """Counts of ends by action, and the first errors."""

    ends: Counter[tuple[str, str]] = field(default_factory=Counter)
    wrong: list[str] = field(default_factory=list)

    def note(self, action: str, end: str, why: str = "") -> None:
        self.ends[action, end] += 1
        if why and len(self.wrong) < 10:
            self.wrong.append(f"{action}: {why}"[:300])

    def total(self, end: str) -> int:
        return sum(count for (_, each), count in self.ends.items() if each == end)


@dataclass(frozen=True)
class Crowd:
    """The server's address, the number of visitors and the duration."""

    url: str
    visitors: int
    seconds: float
    actions: tuple[str, ...]
    credentials: dict[str, str] = field(default_factory=dict)  # headers

    async def fill(self, visits: int) -> None:
        """Fill the server's bounded list of sessions, so that memory is measured with it full."""
        async with httpx.AsyncClient(timeout=120) as http:
            visitor = Visitor(http, self.url, random.Random(0), LEAVES)
            for _ in range(visits):
                await visitor.glance()

    async def live(self, account: Account, seed: int = 1) -> None:
        until = time.monotonic() + self.seconds
        limits = httpx.Limits(max_connections=None, max_keepalive_connections=16)
        headers = self.credentials
        async with httpx.AsyncClient(timeout=120, limits=limits, headers=headers) as http:
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
            action = chosen.choice(self.actions)
            try:
                end = await visitor.visit(action)
            except (Broken, httpx.HTTPError, OSError, EOFError) as error:
                account.note(action, "broken", f"{type(error).__name__}: {error}")
            else:
                account.note(action, end)
                if end == "refused":
                    await asyncio.sleep(chosen.uniform(0, PAUSE))


async def stuck(url: str, key: str = "", patience: float = 10.0) -> dict[str, float]:
    """What still runs or waits after all visitors have left; empty if nothing does."""
    headers = {"Authorization": f"Bearer {key}"} if key else {}
    async with httpx.AsyncClient(headers=headers) as http:
        for _ in range(int(patience * 10)):
            metrics = (await http.get(f"{url}/metrics")).text
            left = {name: metric(metrics, name) for name in ("running", "waiting")}
            if not any(left.values()):
                return {}
            await asyncio.sleep(0.1)
    return left


def metric(metrics: str, name: str) -> float:
    found = re.search(rf"^timbre_{name} (\S+)", metrics, re.M)
    return float(found[1]) if found else -1.0


async def soak(crowd: Crowd, pid: int, remembered: int | None = None) -> dict[str, Any]:
    if "page" in crowd.actions:
        await crowd.fill(_sessions() if remembered is None else remembered)
    account, watch = Account(), Watch(pid)
    async with watch.running():
        await crowd.live(account)
    return report(crowd, account, watch, await stuck(crowd.url))


def _sessions() -> int:
    """The visits that a page remembers."""
    from studio.ui.page import SESSIONS  # imports gradio, which the API does without

    return SESSIONS


def report(crowd: Crowd, account: Account, watch: Watch, left: dict[str, float]) -> dict[str, Any]:
    held = watch.figures()
    figures = {
        "visitors": crowd.visitors,
        "seconds": crowd.seconds,
        **{end: account.total(end) for end in ENDS},
        "by_action": {
            action: {end: account.ends[action, end] for end in ENDS} for action in crowd.actions
        },
        "stuck": left,
        **held,
        "wrong": account.wrong,
    }
    grown = (
        held["memory_growth_mb"] > GROWTH or held["handles_a_minute"] * held["minutes"] > HANDLES
    )
    figures["good"] = not (figures["broken"] or left or grown) and figures["whole"] > 0
    return figures


@contextmanager
def studio(
    model: str,
    variables: Mapping[str, str] | None = None,
    cores: Sequence[int] = (),
    saved_voices: int = 0,
) -> Iterator[tuple[str, int]]:
    """Start the program on a free port; yields its address and process id.

    `variables` are added to its environment; `cores` are the only ones it may use. Its library
    has `saved_voices` voices, which its menus list.
    """
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    with tempfile.TemporaryDirectory() as data:
        _save(Library(Path(data) / "voices"), saved_voices, model)
        command = [sys.executable, "app.py", "serve", "--port", str(port), "--data", data]
        environment = {**os.environ, **(variables or {})}
        with pinned(cores):
            process = subprocess.Popen([*command, "--model", model], cwd=ROOT, env=environment)
        try:
            wait_ready(f"http://127.0.0.1:{port}", process)
            yield f"http://127.0.0.1:{port}", process.pid
        finally:
            process.terminate()
            process.wait(60)


def _save(library: Library, count: int, model: str) -> None:
    """Voices that the model can speak."""
    if count:
        [able] = read_capabilities([model]).values()
        voice = Clone(np.ones(able.width, np.float32))
        for number in range(count):
            library.save(f"Saved {number}", voice)


@contextmanager
def pinned(cores: Sequence[int]) -> Iterator[None]:
    """What this thread starts meanwhile keeps to these cores; none named: to all."""
    if not cores:
        yield
        return
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, cores)
    try:
        yield
    finally:
        os.sched_setaffinity(0, before)


def wait_ready(url: str, process: subprocess.Popen[bytes], seconds: float = 300) -> None:
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline and process.poll() is None:
        with contextlib.suppress(httpx.HTTPError):
            if httpx.get(f"{url}/ready").status_code == 200:
                return
        time.sleep(0.2)
    raise SystemExit("The studio did not start. See its output above.")


def main(
    model: str = "",
    url: str = "",
    pid: int = 0,
    minutes: Annotated[float, typer.Option(min=0.01)] = 30,
    visitors: Annotated[int, typer.Option(min=1)] = 6,
    remembered: Annotated[
        int | None, typer.Option(help="Page visits before it begins; as many as a page remembers.")
    ] = None,
    action: Annotated[list[str] | None, typer.Option(help="Only these: file, stream …")] = None,
) -> None:
    actions = tuple(action or ("file", "stream", "events", "socket", "page", "listing"))
    with contextlib.ExitStack() as stack:
        if not url:
            url, pid = stack.enter_context(studio(model))
        crowd = Crowd(url.rstrip("/"), visitors, minutes * 60, actions)
        report = asyncio.run(soak(crowd, pid, remembered))
    print(json.dumps(report))
    raise SystemExit(0 if report["good"] else 1)


if __name__ == "__main__":
    typer.run(main)
