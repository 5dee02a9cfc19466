"""`python -m bench.cpu_parts --model DIR`: where a frame goes on a CPU, and who has its cores.

Prints what steps and the codec were timed at by threads, how many threads the codec gets beside
steps, and for each number of streams the milliseconds of a step by part. `--codec-threads` sets
these threads instead: 0 makes the steps wait for the codec.
"""

from __future__ import annotations

import asyncio
import os
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Annotated, Any
from unittest.mock import patch

import typer

from bench import MINI
from bench.__main__ import Plan, measured
from bench.report import table
from bench.workload import Work

STEP = "step"  # all of it; its parts are named below
PARTS = ("prompts", "predictor", "talker", "logits", "codec in the step", "waiting for the codec")
BESIDE = "codec beside the steps"


class Parts:
    """Seconds and calls by part."""

    def __init__(self) -> None:
        self.clear()

    def clear(self) -> None:
        self.seconds: defaultdict[str, float] = defaultdict(float)
        self.calls: defaultdict[str, int] = defaultdict(int)

    def timed(self, name: str, function: Callable[..., Any]) -> Callable[..., Any]:
        def run(*given: Any, **named: Any) -> Any:
            beside = threading.current_thread().name.startswith("codec")
            begun = time.perf_counter()
            try:
                return function(*given, **named)
            finally:
                part = BESIDE if beside else name
                self.seconds[part] += time.perf_counter() - begun
                self.calls[part] += 1

        return run

    def __str__(self) -> str:
        """Milliseconds of a step, each part's share of it, and what the codec takes beside it."""
        steps = max(1, self.calls[STEP])
        each = {name: 1e3 * self.seconds[name] / steps for name in (STEP, *PARTS)}
        each["between them"] = each[STEP] - sum(each[name] for name in PARTS)
        each[BESIDE] = 1e3 * self.seconds[BESIDE] / steps
        found = "\n".join(f"  {name:24}{ms:8.2f}" for name, ms in each.items())
        return f"{steps} steps, ms of each:\n{found}"


@contextmanager
def watched() -> Iterator[Parts]:
    """Time the parts of all workers' steps."""
    from engine.worker.codec.codec_runner import CodecRunner, Decoding
    from engine.worker.kernels.cpu.predictor import CpuPredictor
    from engine.worker.kernels.cpu.prompts import CpuPrompts
    from engine.worker.kernels.cpu.talker import CpuTalker
    from engine.worker.worker import TorchWorker

    parts = Parts()
    places: list[tuple[type, str, str]] = [
        (TorchWorker, "launch", STEP),
        (CpuPrompts, "__call__", "prompts"),
        (CpuPredictor, "__call__", "predictor"),
        (CpuTalker, "__call__", "talker"),
        (CpuTalker, "logits", "logits"),
        (CodecRunner, "_decode", "codec in the step"),
        (CodecRunner, "wait", "waiting for the codec"),
        (Decoding, "synchronize", "waiting for the codec"),
    ]
    with ExitStack() as stack:
        for owner, name, part in places:
            timed = parts.timed(part, getattr(owner, name))
            stack.enter_context(patch.object(owner, name, _method(timed)))
        yield parts


def _method(function: Callable[..., Any]) -> Callable[..., Any]:
    def method(own: Any, *given: Any, **named: Any) -> Any:
        return function(own, *given, **named)

    return method


app = typer.Typer()


@app.command()
def main(
    model: Annotated[str, typer.Option(help="a folder")] = str(MINI),
    weights: Annotated[str, typer.Option(help="auto, full, 8bit or 4bit")] = "auto",
    concurrency: Annotated[list[int], typer.Option("-c", help="streams at a time")] = [1],  # noqa: B006
    requests: Annotated[int, typer.Option(help="requests a load")] = 4,
    frames: Annotated[tuple[int, int], typer.Option(help="shortest and longest")] = (40, 60),
    codec_threads: Annotated[list[int], typer.Option(help="in turn; -1: as chosen")] = [-1],  # noqa: B006
    cache: Annotated[Path | None, typer.Option(help="what starts keep")] = None,
) -> None:
    """Measure where a frame goes."""
    os.environ.setdefault("GOMP_SPINCOUNT", "10000")  # as app.py does, before torch is imported
    from bench.in_process import InProcess
    from engine import open_engine
    from engine.worker.core_shares import CoreShares
    from engine.worker.model_runner import ModelRunner

    share = ModelRunner.share

    def told(runner: ModelRunner, shares: CoreShares) -> None:
        share(runner, shares)
        typer.echo(str(shares))

    work = Work(("preset",), *frames, fixed_length=True)
    with (
        patch.object(ModelRunner, "share", told),
        watched() as parts,
        open_engine([model], "cpu", weights=weights, cache=cache) as engine,
    ):
        asking = InProcess(engine, work.kinds, None)
        for streams in concurrency:
            for threads in codec_threads:
                CoreShares.forced = threads if threads >= 0 else None
                typer.echo(
                    f"{streams} streams, codec's threads {threads if threads >= 0 else 'as chosen'}"
                )
                asyncio.run(measured(Plan([], [], [], 0, 0, 1), asking.listen, work))  # warms up
                parts.clear()
                rows = asyncio.run(
                    measured(Plan([streams], [], [], requests, 0, 1), asking.listen, work)
                )
                typer.echo(table(rows))
                typer.echo(str(parts))
                typer.echo(f"places: {engine.stats().realtime_capacity}")
        CoreShares.forced = None


if __name__ == "__main__":
    app()
