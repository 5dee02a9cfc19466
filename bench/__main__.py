"""`python -m bench --model DIR`: first audio, speed and underruns by concurrency, in process.

Prints a table, then one JSON line.
"""

from __future__ import annotations

import asyncio
import os
import platform
import subprocess
import time
from importlib.metadata import version
from typing import Annotated, Any

import typer

from bench.figures import figures, json_line, table
from bench.measure import closed_loop
from bench.texts import Work
from engine import Design, Engine, Preset, Voice, open_engine


def machine() -> dict[str, Any]:
    """What a figure depends on besides the code."""
    return {
        "commit": _output("git", "rev-parse", "--short", "HEAD"),
        "cores": os.cpu_count(),
        "processor": platform.processor() or platform.machine(),
        "python": platform.python_version(),
        "torch": version("torch"),
    }


def _output(*command: str) -> str:
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    return done.stdout.strip()


def pick_voice(engine: Engine, name: str | None) -> Voice:
    """The named preset, or the first voice the checkpoint has of itself."""
    own = next(iter(engine.capabilities().values()))
    if name or own.speakers:
        return Preset(name or own.speakers[0])
    return Design("a calm, clear voice")


async def measure_all(
    engine: Engine, work: Work, loads: list[int], each: int
) -> list[dict[str, Any]]:
    await closed_loop(engine, work.requests(2), 1)  # warm
    rows = []
    for concurrency in loads:
        run = await closed_loop(engine, work.requests(max(each, 3 * concurrency)), concurrency)
        rows.append(figures(run))
        typer.echo(table(rows[-1:]), err=True)
    return rows


def main(
    model: Annotated[str, typer.Option(help="a checkpoint: folder or hub id")],
    concurrency: Annotated[list[int], typer.Option("-c", help="streams at a time")] = [1, 2, 4],  # noqa: B006
    requests: Annotated[int, typer.Option(help="requests a load, at least 3 a stream")] = 8,
    voice: Annotated[str | None, typer.Option(help="a preset speaker")] = None,
    frames: Annotated[tuple[int, int], typer.Option(help="shortest and longest")] = (25, 90),
    natural: Annotated[bool, typer.Option(help="let speech end by itself")] = False,
    device: str = "auto",
    dtype: str = "auto",
    profile: str | None = None,
) -> None:
    """Measure a checkpoint in this process."""
    start = time.perf_counter()
    with open_engine([model], device=device, dtype=dtype, profile=profile) as engine:
        ready = time.perf_counter() - start
        work = Work(pick_voice(engine, voice), *frames, fixed_length=not natural)
        rows = asyncio.run(measure_all(engine, work, concurrency, requests))
    typer.echo(table(rows))
    typer.echo(json_line({"model": model, "ready_seconds": ready, **machine(), "loads": rows}))


if __name__ == "__main__":
    typer.run(main)
