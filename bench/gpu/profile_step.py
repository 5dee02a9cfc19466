"""`python -m bench.gpu.profile_step MODEL`: profiles a step in the whole engine.

With endless streams running, the host's part of every turn is timed, kernels are traced and Python
is profiled, one after the other. Custom kernels have names; library products between two of them
are counted as the same part.
"""

from __future__ import annotations

import cProfile
import io
import json
import pstats
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import torch
import typer

from bench.gpu.profile_host import host
from engine import Engine, Preset, SpeechRequest, open_engine

TEXT = "The morning train was late again, so she read the last chapter on the platform."
PREDICTOR = ("predict", "add_norm", "gate", "attend_rows", "sum_rows", "draw_rows")
TALKER = ("_product", "_attend", "_add_norm", "_gate", "talk")
GLUE = ("predictor_inputs", "talker_inputs", "sample_next")
PROMPTS = ("_store_keys", "_attend_prompt")
CODEC = ("convolve", "update_past", "depthwise_norm", "output_conv")
PARTS = ("talker", "prompts", "predictor", "rest", "codec", "copies")
COPIES = ("Memcpy", "Memset")
HOST = ("plan", "launch", "wait for device", "read results", "commit", "deliver")  # printed parts
LOUDEST = 14  # kernels and functions listed by name


@dataclass(frozen=True)
class Kernel:
    name: str
    stream: int
    begun: int  # nanoseconds
    lasted: int
    launch: int  # shared by all kernels of one launch; 0: unknown

    @property
    def ended(self) -> int:
        return self.begun + self.lasted

    @property
    def copies(self) -> bool:
        return self.name.startswith(COPIES)


def kernels(seen: torch.profiler.profile) -> list[Kernel]:
    """The kernels of a trace in order."""
    told = seen.profiler.kineto_results.events()  # type: ignore[union-attr]
    found = [
        Kernel(e.name(), e.device_resource_id(), e.start_ns(), e.duration_ns(), e.correlation_id())
        for e in told
        if e.device_type() == torch._C._autograd.DeviceType.CUDA and e.duration_ns() > 0
    ]
    return sorted(found, key=lambda kernel: kernel.begun)


def codec_streams(found: Iterable[Kernel]) -> set[int]:
    """CUDA streams of the codec."""
    return {kernel.stream for kernel in found if _is_named(kernel, CODEC)}


def by_step_part(found: Sequence[Kernel]) -> Iterator[tuple[str, Kernel]]:
    """Each kernel with its part of a step."""
    aside, plain = codec_streams(found), []
    for kernel in found:
        if kernel.copies:
            yield "copies", kernel
        elif kernel.stream in aside:
            yield "codec", kernel
        else:
            plain.append(kernel)
    filling = {kernel.launch for kernel in plain if _is_named(kernel, PROMPTS)} - {0}
    marks = [_part_of(kernel, filling) for kernel in plain]
    after = _next_marks(marks)
    before = None
    for kernel, mark, behind in zip(plain, marks, after, strict=True):
        before = mark or before
        yield mark or (before if before == behind and before else "rest"), kernel


def _part_of(kernel: Kernel, filling: set[int]) -> str | None:
    """A kernel's part. Prompts and frames share kernels; a prefill graph's are the prompt's."""
    if _is_named(kernel, GLUE):
        return "rest"
    if _is_named(kernel, PREDICTOR):
        return "predictor"
    if _is_named(kernel, TALKER):
        return "prompts" if kernel.launch in filling else "talker"
    return "prompts" if _is_named(kernel, PROMPTS) else None


def _next_marks(marks: Sequence[str | None]) -> list[str | None]:
    """The next mark at or after each place."""
    found, behind = [], None
    for mark in reversed(marks):
        behind = mark or behind
        found.append(behind)
    return found[::-1]


def _is_named(kernel: Kernel, names: Iterable[str]) -> bool:
    return kernel.name in names


def busy_share(found: Sequence[Kernel]) -> float:
    """The share of the time in which any kernel ran."""
    busy, until = 0, found[0].begun
    for kernel in found:
        busy += max(0, kernel.ended - max(until, kernel.begun))
        until = max(until, kernel.ended)
    return busy / max(1, until - found[0].begun)


class EndlessStreams:
    """Endless streams, during which the engine is measured."""

    def __init__(self, engine: Engine, rows: int, frames: int) -> None:
        self._engine, self._rows = engine, rows
        voice = Preset(next(iter(next(iter(engine.capabilities().values())).speakers)))
        ask = partial(SpeechRequest, text=TEXT, voice=voice, max_frames=frames, ignore_end=True)
        self._streams = [engine.submit(ask(seed=seed)) for seed in range(rows)]

    def settle(self, seconds: float) -> int:
        """Wait until all run, or until the time is up; how many run."""
        until = time.monotonic() + seconds
        while time.monotonic() < until and self._engine.stats().running < self._rows:
            time.sleep(0.02)
        time.sleep(0.5)
        return self._engine.stats().running

    def steps(self, seconds: float) -> float:
        """Steps per second."""
        begun, first = time.perf_counter(), self._engine.stats().steps
        time.sleep(seconds)
        return (self._engine.stats().steps - first) / (time.perf_counter() - begun)

    def stop(self) -> None:
        for stream in self._streams:
            stream.cancel()
        while self._engine.stats().running:
            time.sleep(0.02)


def device(streams: EndlessStreams, engine: Engine, seconds: float) -> dict[str, Any]:
    """Milliseconds and kernels per step by part, and the longest kernels by name."""
    if not torch.cuda.is_available():
        return {}
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CUDA]) as seen:
        first = engine.stats().steps
        streams.steps(seconds)
        torch.cuda.synchronize()
        steps = max(1, engine.stats().steps - first)
    found = kernels(seen)
    return {"busy": round(busy_share(found), 3), **part_figures(found, steps)} if found else {}


def part_figures(found: Sequence[Kernel], steps: int) -> dict[str, Any]:
    spent, counts, names = Counter[str](), Counter[str](), Counter[tuple[str, str]]()
    for part, kernel in by_step_part(found):
        spent[part] += kernel.lasted
        counts[part] += 1
        names[part, kernel.name[:80]] += kernel.lasted
    loudest = [[*key, round(ns / 1e3 / steps, 1)] for key, ns in names.most_common(LOUDEST)]
    return {
        "ms": {part: round(spent[part] / 1e6 / steps, 3) for part in PARTS},
        "kernels": {part: round(counts[part] / steps, 1) for part in PARTS},
        "us_by_kernel": loudest,
    }


def python_profile(engine: Engine, streams: EndlessStreams, seconds: float) -> str:
    """A Python profile of the engine's thread."""
    profile = cProfile.Profile()
    engine.loop.commands.post(profile.enable)
    streams.steps(seconds)
    engine.loop.commands.post(profile.disable)
    time.sleep(0.2)
    told = io.StringIO()
    pstats.Stats(profile, stream=told).sort_stats("tottime").print_stats(30)
    return told.getvalue()


def profile_rows(
    engine: Engine, rows: int, frames: int, seconds: float, out: Path
) -> dict[str, Any]:
    streams = EndlessStreams(engine, rows, frames)
    try:
        running = streams.settle(20)
        step = 1e3 / max(1e-9, streams.steps(seconds))
        found: dict[str, Any] = {"rows": rows, "running": running, "step_ms": round(step, 3)}
        found |= {"host": host(engine, seconds)}
        found |= {"device": device(streams, engine, min(0.4, seconds))}
        (out / f"python-{rows}.txt").write_text(python_profile(engine, streams, seconds))
    finally:
        streams.stop()
    return found


def summary(found: dict[str, Any]) -> str:
    """A summary line."""
    told, on = found["host"]["parts"], found["device"]
    parts = [
        f"{part} {ms} ({on['kernels'][part]:g})" for part, ms in on.get("ms", {}).items() if ms
    ]
    own = [f"{name} {told[name]['mean']}" for name in HOST if name in told]
    return (
        f"{found['rows']:4} rows ({found['running']} ran): {found['step_ms']} ms a step, "
        f"busy {on.get('busy', '-')}; host: {', '.join(own)}; device: {', '.join(parts)}"
    )


def main(
    model: str,
    rows: Annotated[str, typer.Option(help="as 1,16,64")] = "1,16,64,256",
    frames: Annotated[int, typer.Option(help="of each stream, enough for the run")] = 1500,
    seconds: Annotated[float, typer.Option(help="of each measurement")] = 1.0,
    device: str = "auto",
    out: Path = Path("."),
) -> None:
    counts = [int(count) for count in rows.split(",")]
    report = []
    with open_engine([model], device=device, max_num_seqs=max(counts), max_waiting=1024) as engine:
        for count in counts:
            report.append(profile_rows(engine, count, frames, seconds, out))
            print(summary(report[-1]), flush=True)
    (out / "turns.json").write_text(json.dumps(report, indent=1))


if __name__ == "__main__":
    typer.run(main)
