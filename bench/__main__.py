"""`python -m bench` (`--model DIR` or `--url URL`): first audio, speed and underruns under load.

Prints a table, then one JSON line. bench/README.md has the commands, also for other servers.
"""

from __future__ import annotations

import asyncio
import gc
import json
import os
import platform
import subprocess
import time
from collections.abc import Coroutine, Iterator
from contextlib import nullcontext
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Annotated, Any, cast

import typer

from bench import MINI
from bench.compare import judge
from bench.gpu_monitor import Card, asking, watched
from bench.load_generator import Listen, Run, burst, closed_loop, poisson
from bench.report import figures, json_line, table
from bench.workload import Kind, Work

WARM = 4


@dataclass(frozen=True)
class Plan:
    """The loads, their sizes and the number of repeats."""

    concurrency: list[int]
    rates: list[float]
    bursts: list[int]
    requests: int
    seconds: float
    repeats: int
    card: bool = False  # sample the GPU's utilization

    def loads(self, listen: Listen, work: Work) -> Iterator[Coroutine[Any, Any, Run]]:
        for _ in range(self.repeats):
            for count in self.concurrency:
                jobs = work.jobs(max(self.requests, 3 * count))
                yield closed_loop(listen, jobs, count)
            for rate in self.rates:
                yield poisson(listen, work.stream(), rate, self.seconds)
            for count in self.bursts:
                yield burst(listen, work.stream(), count)


def machine() -> dict[str, Any]:
    """Hardware and versions that the figures depend on."""
    return {
        "commit": _output("git", "rev-parse", "--short", "HEAD"),
        "card": _output(*asking("--query-gpu=name", "--format=csv,noheader")),
        "cores": os.cpu_count(),
        "processor": platform.processor() or platform.machine(),
        "python": platform.python_version(),
        "torch": _version("torch"),
    }


def _output(*command: str) -> str:
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    except OSError:
        return ""
    return done.stdout.strip()


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return ""


async def measured(plan: Plan, listen: Listen, work: Work) -> list[dict[str, Any]]:
    settle()  # a pause while it warms up would be held in reserve for a minute after it
    await closed_loop(listen, work.jobs(WARM), 1)
    rows = []
    for load in plan.loads(listen, work):
        settle()
        with watched() if plan.card else nullcontext(Card()) as card:
            run = await load
        rows.append(figures(run) | card.figures())
        typer.echo(table(rows[-1:]), err=True)
    return rows


def settle() -> None:
    """Exclude existing objects from garbage collection, which would pause all streams.

    A server does the same when serving starts (studio/server/process/gc_freeze.py).
    """
    gc.collect()
    gc.freeze()


async def over_http(
    plan: Plan, work: Work, url: str, key: str, voice: str | None, extra: dict[str, Any]
) -> list[dict[str, Any]]:
    from bench.http_lines import Server
    from bench.over_http import OverHttp

    asking = OverHttp(Server(url, key), voice, extra)
    await asking.prepare(work.kinds)
    try:
        return await measured(plan, asking.listen, work)
    finally:
        await asking.finish()


def in_process(plan: Plan, work: Work, model: str, voice: str | None, **how: Any) -> dict[str, Any]:
    """Measure an engine in this process. `ready_seconds`: imports, weights and graph capture."""
    os.environ.setdefault("GOMP_SPINCOUNT", "10000")  # as app.py does, before torch is imported
    start = time.perf_counter()
    from bench.in_process import InProcess
    from engine import open_engine

    with open_engine([model], **how) as engine:
        ready = time.perf_counter() - start
        asking = InProcess(engine, work.kinds, voice)
        rows = asyncio.run(measured(plan, asking.listen, work))
        stats = engine.stats()
    totals = {"memory_bytes": stats.memory, "places": stats.realtime_capacity, "gaps": stats.gaps}
    totals |= {"slots": stats.slots}
    return {"ready_seconds": ready, **totals, "step_ms": asking.step_ms(), "loads": rows}


def changes(written: list[str]) -> dict[str, Any]:
    """Engine settings from text such as max_num_seqs=256."""
    parts = [change.partition("=") for change in written]
    return {name: json.loads(value) for name, _, value in parts}


def main(
    model: Annotated[
        str, typer.Option(help="in this process: folder or hub id; presets/mini")
    ] = "",
    url: Annotated[str, typer.Option(help="a server instead: http://HOST:PORT")] = "",
    key: Annotated[str, typer.Option(help="an API key for the server")] = "",
    extra: Annotated[str, typer.Option(help="JSON for the server; null leaves a field out")] = "{}",
    concurrency: Annotated[list[int], typer.Option("-c", help="streams at a time")] = [],  # noqa: B006
    rate: Annotated[list[float], typer.Option(help="Poisson arrivals per second")] = [],  # noqa: B006
    at_once: Annotated[list[int], typer.Option("--burst", help="all at once")] = [],  # noqa: B006
    requests: Annotated[int, typer.Option(help="requests a load, at least 3 a stream")] = 8,
    seconds: Annotated[float, typer.Option(help="how long each rate runs")] = 20,
    repeats: Annotated[int, typer.Option(help="repeats; 3 show the noise")] = 1,
    kind: Annotated[list[str], typer.Option(help="preset, vector, context, cold, design")] = [],  # noqa: B006
    voice: Annotated[str | None, typer.Option(help="a preset speaker")] = None,
    frames: Annotated[tuple[int, int], typer.Option(help="shortest and longest")] = (25, 90),
    natural: Annotated[bool, typer.Option(help="let speech end by itself")] = False,
    device: str = "auto",
    dtype: str = "auto",
    weights: str = "auto",
    profile: str | None = None,
    change: Annotated[
        list[str], typer.Option("--set", help="of the engine: max_num_seqs=256")
    ] = [],  # noqa: B006
    card: Annotated[bool, typer.Option("--card", help="sample the GPU's utilization")] = False,
    out: Annotated[Path | None, typer.Option(help="write the report to this file")] = None,
    base: Annotated[Path | None, typer.Option("--compare", help="an older report")] = None,
) -> None:
    """Measure a checkpoint in this process, or a server."""
    if model and url:
        raise typer.BadParameter("Give either --model or --url.")
    kinds = cast("tuple[Kind, ...]", tuple(kind)) or ("preset",)
    closed = concurrency or ([] if rate or at_once else [1, 2, 4])
    plan = Plan(closed, rate, at_once, requests, seconds, repeats, card)
    work = Work(kinds, *frames, fixed_length=not natural)
    if url:
        measuring = over_http(plan, work, url, key, voice, json.loads(extra))
        report: dict[str, Any] = {"url": url, "loads": asyncio.run(measuring)}
    else:
        how = {
            "device": device,
            "dtype": dtype,
            "weights": weights,
            "profile": profile,
            **changes(change),
        }
        model = model or str(MINI)
        report = {"model": model, **in_process(plan, work, model, voice, **how)}
    report |= {"kinds": kinds, "frames": frames, "natural": natural, **machine()}
    typer.echo(table(report["loads"]))
    typer.echo(json_line(report))
    if out:
        out.write_text(json_line(report) + "\n")
    if base and not judge(base, report):
        raise typer.Exit(1)


if __name__ == "__main__":
    typer.run(main)
