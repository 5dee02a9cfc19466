"""`python -m bench.gpu.profile_load MODEL -c 32`: profiles the engine while requests come and end.

The load is that of `python -m bench`, so prompts, admissions and first chunks are included. First
the turns of the engine's thread are timed for every load, then a short part of every load is
traced, on a GPU too. Turns are longer under the trace, so its shares relate to its own turns.
"""

from __future__ import annotations

import asyncio
import json
import sys
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import islice, takewhile
from pathlib import Path
from threading import Event, Thread
from typing import Annotated, NamedTuple

import torch
import typer
from torch.profiler import ProfilerActivity
from torch.profiler import profile as Profile

from bench.__main__ import changes, machine
from bench.gpu.kernel_trace import PARTS, Kernel, codec_streams, kernels, part_figures
from bench.gpu.profile_host import Report, host, host_lines, wait_for
from bench.in_process import InProcess
from bench.load_generator import Listen, Run, burst, closed_loop
from bench.workload import Job, Work
from engine import Engine, open_engine

RUNS = ("nothing", "step alone", "codec alone", "both")  # what the device does
CALLS = 16  # listed by name
SHOWN = 2  # of them in the table
WIDTH, LINES, NONE = 40, 40, "-"  # of the table


class Seconds(NamedTuple):
    """Durations for each load."""

    timed: float
    trace_figures: float
    warm: float


@dataclass(frozen=True)
class Load:
    """`count` listeners in a closed loop, or repeated bursts of `count`."""

    count: int
    at_once: bool = False

    def __str__(self) -> str:
        return f"{'burst' if self.at_once else 'closed'} {self.count}"

    async def keep(self, listen: Listen, jobs: Iterator[Job]) -> list[Run]:
        if not self.at_once:
            return [await closed_loop(listen, jobs, self.count)]
        runs = []
        while some := list(islice(jobs, self.count)):
            runs.append(await burst(listen, iter(some), self.count))
        return runs


@contextmanager
def background_load(engine: Engine, load: Load, work: Work, warm: float) -> Iterator[list[Run]]:
    """Run a load in the background, warmed up; the runs are complete at the end."""
    stop, runs = Event(), list[Run]()
    jobs = takewhile(lambda _: not stop.is_set(), work.stream())
    listen = InProcess(engine, work.kinds, None).listen
    thread = Thread(target=lambda: runs.extend(asyncio.run(load.keep(listen, jobs))))
    thread.start()
    try:
        time.sleep(warm)
        yield runs
    finally:
        stop.set()
        thread.join()


class Call(NamedTuple):
    """A host event: a call of the CUDA library, or a torch operator."""

    name: str
    launch: int
    begun: int  # nanoseconds
    lasted: int


def trace_figures(engine: Engine, seconds: float) -> Report:
    """Trace for `seconds`; an error is reported, and the run continues."""
    try:
        seen, turns, wall = trace(engine, seconds)
        made = calls(seen)
        found = kernels(seen)
        figures = {"turns": turns, "turn_ms": round(1e3 * wall / max(1, turns), 3)}
        figures |= call_figures(made, turns)
        return figures | (device_figures(found, made, turns) if found else {})
    except Exception as error:
        return {"error": repr(error)[:300]}


def trace(engine: Engine, seconds: float) -> tuple[Profile, int, float]:
    """The trace, turns and seconds."""
    with _tracing():
        pass  # the first trace takes long to start
    with _tracing() as seen:
        first, begun = engine.loop.counters.steps, time.perf_counter()
        wait_for(lambda: engine.loop.counters.steps > first, seconds)
        turns, wall = engine.loop.counters.steps - first, time.perf_counter() - begun
        if torch.cuda.is_available():
            torch.cuda.synchronize()
    return seen, turns, wall


def _tracing() -> Profile:
    if torch.cuda.is_available():
        return Profile(activities=[ProfilerActivity.CUDA])
    every = torch._C._profiler._ExperimentalConfig(profile_all_threads=True)
    return Profile(activities=[ProfilerActivity.CPU], experimental_config=every)


def calls(seen: Profile) -> list[Call]:
    events = seen.profiler.kineto_results.events()  # type: ignore[union-attr]
    return [
        Call(e.name(), e.correlation_id(), e.start_ns(), e.duration_ns())
        for e in events
        if e.device_type() == torch._C._autograd.DeviceType.CPU
    ]


def call_figures(made: Iterable[Call], turns: int) -> Report:
    """Launches per turn; calls and milliseconds per turn, the longest first."""
    spent, counts, turns = Counter[str](), Counter[str](), max(1, turns)
    for call in made:
        spent[call.name] += call.lasted
        counts[call.name] += 1
    launches = {name: count / turns for name, count in counts.items() if "Launch" in name}
    graphs = sum(count for name, count in launches.items() if "Graph" in name)
    single = sum(count for name, count in launches.items() if "Kernel" in name)
    loudest = [
        {
            "name": name[:40],
            "calls": round(counts[name] / turns, 1),
            "ms": round(ns / 1e6 / turns, 3),
        }
        for name, ns in spent.most_common(CALLS)
    ]
    return {"graphs": round(graphs, 1), "outside": round(single, 1), "calls": loudest}


def device_figures(found: Sequence[Kernel], made: Iterable[Call], turns: int) -> Report:
    """Device time by part, and utilization."""
    alone = [kernel for kernel in found if not kernel.copies]
    late = launch_wait(alone, {call.launch: call for call in made if call.launch})
    return {"shares": shares(alone), "host_late": late, **part_figures(found, max(1, turns))}


def shares(found: Sequence[Kernel]) -> Report:
    """Shares of the time from the first kernel to the last."""
    aside = codec_streams(found)
    edges = [(kernel.begun, kernel.stream in aside, 1) for kernel in found]
    edges += [(kernel.ended, kernel.stream in aside, -1) for kernel in found]
    spent, running, since = [0, 0, 0, 0], [0, 0], 0
    for at, codec, step in sorted(edges):
        spent[(running[0] > 0) + 2 * (running[1] > 0)] += at - since if since else 0
        running[codec] += step
        since = at
    return {name: round(ns / max(1, sum(spent)), 4) for name, ns in zip(RUNS, spent, strict=True)}


def launch_wait(found: Sequence[Kernel], by_launch: dict[int, Call]) -> float | None:
    """The share of time in which the device was idle because the next launch came late.

    Time between kernels of one launch, or after a launch, does not count. None if the trace does
    not connect kernels with launches.
    """
    if not any(kernel.launch in by_launch for kernel in found):
        return None
    first, until, late, begun = found[0].begun, found[0].ended, 0, set[int]()
    for kernel in found:
        call = by_launch.get(kernel.launch)
        if call and kernel.launch not in begun:
            late += max(0, min(kernel.begun, call.begun + call.lasted) - until)
        begun.add(kernel.launch)
        until = max(until, kernel.ended)
    return round(late / max(1, until - first), 4)


def lines(found: Report) -> Iterator[tuple[str, str]]:
    """The rows of the table for a load."""
    for label, cell in host_lines(found["host"]):
        yield label, cell or NONE
    if found["failed"]:
        yield "failed", f"{found['failed']}: {found['first_error'][:30]}"
    yield from trace_lines(found["trace"])


def trace_lines(report: Report) -> Iterator[tuple[str, str]]:
    yield "turn under trace", report.get("error", f"{report.get('turn_ms', 0):7.2f}")[:WIDTH]
    for name in RUNS if "shares" in report else ():
        yield f"  {name} runs", f"{report['shares'][name]:7.1%}{_late(report, name)}"
    for part in PARTS if "ms" in report else ():
        yield (
            f"  {part} there",
            f"{report['ms'][part]:7.2f} ms {report['kernels'][part]:7.1f} kernels",
        )
    yield (
        "  launches",
        f"{report.get('graphs', NONE)} graphs, {report.get('outside', NONE)} kernels",
    )
    for at, call in enumerate(report.get("calls", ())[:SHOWN], 1):
        yield f"  call {at}", f"{call['ms']:7.2f} ms {call['calls']:7.1f} {call['name'][:17]}"


def _late(report: Report, name: str) -> str:
    """The share that the host's late launches cause, if known."""
    late = report["host_late"] if name == RUNS[0] else None
    return "" if late is None else f" (host late {late:.1%})"


def table(report: Sequence[Report]) -> str:
    """One column per load."""
    columns = [dict(lines(found)) for found in report]
    labels = dict.fromkeys(label for column in columns for label in column)
    rows = [[label, *(column.get(label, NONE) for column in columns)] for label in labels]
    rows = [["load", *(found["load"] for found in report)], *rows]
    kept = [row for row in rows if any(cell != NONE for cell in row[1:])][:LINES]
    return "\n".join(_line(*row) for row in kept)


def _line(label: str, *cells: str) -> str:
    return (f"{label:20}" + "".join(f"{cell:{WIDTH}}" for cell in cells)).rstrip()


def timed(engine: Engine, load: Load, work: Work, seconds: Seconds) -> Report:
    with background_load(engine, load, work, seconds.warm) as runs:
        found = host(engine, seconds.timed)
    print(f"{load}: {found['audio_per_second']} audio s a second", file=sys.stderr, flush=True)
    return {"load": str(load), "host": found, "trace": {}, **failures(runs)}


def measured(
    engine: Engine, loads: Sequence[Load], work: Work, seconds: Seconds, out: Path
) -> list[Report]:
    """Time all loads before any trace, since a process may be slower after tracing."""
    report = [timed(engine, load, work, seconds) for load in loads]
    save(report, out)
    for load, found in zip(loads, report, strict=True):
        with background_load(engine, load, work, seconds.warm):
            found["trace"] = trace_figures(engine, seconds.trace_figures)
    save(report, out)
    return report


def save(report: Sequence[Report], out: Path) -> None:
    out.mkdir(parents=True, exist_ok=True)
    (out / "loads.json").write_text(json.dumps({"loads": report, **machine()}, indent=1))


def failures(runs: Sequence[Run]) -> Report:
    errors = [stream.error for run in runs for stream in run.streams if stream.error]
    return {"failed": len(errors), "first_error": errors[0] if errors else ""}


def main(
    model: str,
    concurrency: Annotated[list[int], typer.Option("-c", help="streams at a time")] = [],  # noqa: B006
    at_once: Annotated[list[int], typer.Option("--burst", help="all at once")] = [],  # noqa: B006
    seconds: Annotated[float, typer.Option(help="seconds of timed turns")] = 3.0,
    trace: Annotated[float, typer.Option(help="seconds that are traced")] = 1.0,
    warm: Annotated[float, typer.Option(help="seconds of the load before that")] = 2.0,
    frames: Annotated[tuple[int, int], typer.Option(help="shortest and longest")] = (25, 90),
    device: str = "auto",
    dtype: str = "auto",
    profile: str | None = None,
    change: Annotated[
        list[str], typer.Option("--set", help="of the engine: max_num_seqs=256")
    ] = [],  # noqa: B006
    out: Path = Path("."),
) -> None:
    """Profile each load: prints a table and writes OUT/loads.json."""
    loads = [*(Load(count) for count in concurrency), *(Load(count, True) for count in at_once)]
    how: Report = {"device": device, "dtype": dtype, "profile": profile, **changes(change)}
    spans, work = Seconds(seconds, trace, warm), Work(("preset",), *frames)
    with open_engine([model], **how) as engine:
        print(table(measured(engine, loads or [Load(32)], work, spans, out)))


if __name__ == "__main__":
    typer.run(main)
