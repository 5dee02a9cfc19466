"""`python -m bench.gpu.soak MODEL --minutes 10 --rate 6 --out DIR`: a soak test of an engine.

Requests arrive at random at an engine in this process, with all kinds of texts, lengths, voices and
sampling; a fifth are cancelled early. It fails when an answer is incomplete, a slot stays taken,
memory grows, audio differs from its codes', or codes differ from those of the same request alone
(in float32; in 16 bits only the number and the first frame are reported). Writes DIR/soak.json.
"""

from __future__ import annotations

import asyncio
import json
import os
import random
import sys
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Annotated, Any, TypeAlias

import torch
import typer

from bench.__main__ import changes, machine
from bench.gpu.soak_listener import (
    Received,
    Visit,
    compare,
    is_half_precision,
    listen,
    rerun_alone,
    sounds,
)
from bench.reference_sound import hum
from bench.stress.soak_watch import WARM, Sample, Watch, slope
from bench.workload import DESCRIPTION, TRANSCRIPT, Work
from engine import Busy, Design, Engine, Preset, SamplingParams, SpeechRequest, Voice, open_engine

Report: TypeAlias = dict[str, Any]

SAMPLINGS = (
    SamplingParams(greedy=True),
    SamplingParams(),
    SamplingParams(temperature=0.3, predictor_temperature=0.3),
)
LENGTHS = (5, 150)  # frames
CANCEL_SHARE = 0.2  # share of the listeners that leave early
MAX_CHUNKS = 6  # after which these leave at the latest
SAMPLE_SECONDS = 5.0  # seconds between two memory samples
CLEANUP_SECONDS = 10.0  # seconds until all resources must be free
MEMORY = {"process": "megabytes", "allocated": "allocated", "reserved": "reserved"}
MAX_ERRORS = 10  # errors that are listed


def voices(engine: Engine) -> list[Voice]:
    """All voices of its checkpoints."""
    able = engine.capabilities().values()
    found: list[Voice] = [Preset(name) for each in able for name in each.speakers if each.preset]
    if any(each.design for each in able):
        found.append(Design(DESCRIPTION))
    if any(each.clone for each in able):
        found += [engine.clone(hum(), TRANSCRIPT), engine.clone(hum())]
    return found


def random_visits(speakers: Sequence[Voice], seed: int) -> Iterator[Visit]:
    """Endless random visits, the same for the same seed."""
    chance = random.Random(seed)
    for job in Work(("preset",), *LENGTHS, seed=seed).stream():
        request = SpeechRequest(
            text=job.text,
            voice=chance.choice(speakers),
            sampling=chance.choice(SAMPLINGS),
            seed=job.seed,
            max_frames=job.frames,
            ignore_end=True,
        )
        leaves = chance.randint(0, MAX_CHUNKS) if chance.random() < CANCEL_SHARE else None
        yield Visit(request, leaves)


@dataclass
class Account:
    """Counts of ends, the first errors, and a sample of complete answers."""

    sample: int
    chance: random.Random
    ends: Counter[str] = field(default_factory=Counter)
    wrong: list[str] = field(default_factory=list)
    kept: list[Received] = field(default_factory=list)

    async def serve(self, engine: Engine, visit: Visit) -> None:
        try:
            heard = await listen(engine, visit)
        except Busy:
            self.ends["refused"] += 1
        except asyncio.TimeoutError:
            self._note("stuck", f"{visit.request.max_frames} frames never came to their end")
        except Exception as error:  # a failed request is counted and does not end the run
            self._note("failed", repr(error))
        else:
            self.count(heard, visit)

    def count(self, heard: Received, visit: Visit) -> None:
        early = heard.end.reason == "cancelled"
        fault = heard.fault or ("cancelled by nobody" if early and visit.leaves is None else "")
        if fault:
            self._note("failed", fault)
        elif early:
            self.ends["left"] += 1
        else:
            self.ends["whole"] += 1
            self._keep(heard)

    def _keep(self, heard: Received) -> None:
        """Reservoir sampling of complete answers."""
        if len(self.kept) < self.sample:
            self.kept.append(heard)
        elif (at := self.chance.randrange(self.ends["whole"])) < self.sample:
            self.kept[at] = heard

    def _note(self, end: str, why: str) -> None:
        self.ends[end] += 1
        if len(self.wrong) < MAX_ERRORS:
            self.wrong.append(f"{end}: {why}"[:300])


async def poisson_arrivals(
    engine: Engine, coming: Iterator[Visit], rate: float, seconds: float, account: Account
) -> None:
    """Start visits at random times, `rate` per second on average."""
    here, due, begun = set[asyncio.Task[None]](), 0.0, time.perf_counter()
    chance = random.Random(rate)
    while (due := due + chance.expovariate(rate)) < seconds:
        await asyncio.sleep(max(0.0, begun + due - time.perf_counter()))
        task = asyncio.create_task(account.serve(engine, next(coming)))
        here.add(task)
        task.add_done_callback(here.discard)
    await asyncio.gather(*here)


@dataclass(frozen=True)
class MemorySample(Sample):
    """Megabytes of the process and of the GPU; 0 without one."""

    allocated: float
    reserved: float


def sample_memory() -> MemorySample:
    card = torch.cuda.is_available()
    allocated = torch.cuda.memory_allocated() if card else 0
    reserved = torch.cuda.memory_reserved() if card else 0
    return MemorySample(**asdict(Watch(os.getpid()).look()), allocated=allocated / 2**20,
                reserved=reserved / 2**20)  # fmt: skip


async def sample_memory_forever(samples: list[Sample]) -> None:
    while True:
        samples.append(sample_memory())
        await asyncio.sleep(SAMPLE_SECONDS)


def memory(samples: list[Sample]) -> Report:
    """First, last, and growth by the slope over the last two thirds."""
    kept = samples[int(len(samples) * WARM) :]
    minutes = (kept[-1].at - kept[0].at) / 60
    figures = {}
    for name, what in MEMORY.items():
        first, last = getattr(samples[0], what), getattr(samples[-1], what)
        rise = slope(kept, what)
        figures[name] = {"first_mb": round(first, 1), "last_mb": round(last, 1)}
        figures[name] |= {"mb_a_minute": round(rise, 3), "grown_mb": round(rise * minutes, 1)}
    return figures


def held_resources(engine: Engine) -> dict[str, int]:
    """Resources of requests that are not free."""
    stats, scheduler = engine.stats(), engine.loop.scheduler
    slots = scheduler.slots
    found = {
        "running": stats.running,
        "waiting": stats.waiting,
        "active": len(scheduler.active),
        "slots": slots.total - slots.free,
        "unsettled talkers": sum(not slots.is_idle(talker) for talker in slots.talkers),
    }
    return {name: count for name, count in found.items() if count}


async def wait_until_free(engine: Engine) -> dict[str, int]:
    """The same after time to clean up."""
    until = time.monotonic() + CLEANUP_SECONDS
    while held_resources(engine) and time.monotonic() < until:
        await asyncio.sleep(0.1)
    return held_resources(engine)


async def run_load(
    engine: Engine, rate: float, seconds: float, account: Account, seed: int
) -> list[Sample]:
    samples: list[Sample] = []
    watching = asyncio.create_task(sample_memory_forever(samples))
    await poisson_arrivals(engine, random_visits(voices(engine), seed), rate, seconds, account)
    watching.cancel()
    return [*samples, sample_memory()]


async def soak(
    engine: Engine, rate: float, seconds: float, sample: int, seed: int, growth: float
) -> Report:
    account = Account(sample, random.Random(seed))
    samples = await run_load(engine, rate, seconds, account, seed)
    stuck, stats, held = await wait_until_free(engine), engine.stats(), memory(samples)
    report: Report = {
        "seconds": seconds,
        "rate": rate,
        "seed": seed,
        "two_bytes": is_half_precision(engine),
    }
    report |= {end: account.ends[end] for end in ("whole", "left", "refused", "failed", "stuck")}
    report |= {"remains": stuck, "slots": stats.slots, "failed_steps": stats.failed_steps}
    report |= {"gaps": stats.gaps, "steps": stats.steps, "memory": held}
    report["again"], wrong = await compare_with_alone(engine, account.kept)
    report["wrong"] = [*account.wrong, *find_faults(report, growth), *wrong]
    return report | {"good": not report["wrong"]}


async def compare_with_alone(engine: Engine, kept: Sequence[Received]) -> tuple[Report, list[str]]:
    """Compare with the same requests one by one, and with the codec alone."""
    try:
        found = await rerun_alone(engine, kept)
        await wait_until_free(engine)
        return compare(found, sounds(engine, kept), is_half_precision(engine))
    except Exception as error:
        return {"error": repr(error)[:300]}, [f"nothing could be compared: {error!r}"[:300]]


def find_faults(report: Report, growth: float) -> Iterator[str]:
    if report["remains"]:
        yield f"remains: {report['remains']}"
    if report["failed_steps"]:
        yield f"{report['failed_steps']} steps failed"
    for name, held in report["memory"].items():
        if held["grown_mb"] > growth:
            yield f"memory ({name}) has grown by {held['grown_mb']} MB"


def summary(report: Report) -> Iterator[str]:
    """A summary of at most eight lines."""
    ends = ", ".join(f"{report[end]} {end}" for end in ("whole", "left", "refused", "failed"))
    yield f"{report['seconds']:g} s, {report['rate']:g} a second: {ends}, {report['stuck']} stuck"
    remains = report["remains"] or "nothing"
    yield f"remains: {remains} of {report['slots']} slots, {report['gaps']} gaps"
    for name, held in report["memory"].items():
        span = f"{held['first_mb']:9.1f} to {held['last_mb']:9.1f} MB"
        yield f"{name:10}{span}, {held['mb_a_minute']:+.3f} a minute of the last two thirds"
    yield from comparison_lines(report["again"])
    yield "good" if report["good"] else f"WRONG: {'; '.join(report['wrong'])}"


def comparison_lines(found: Report) -> Iterator[str]:
    if "error" in found:
        yield f"again: {found['error']}"
        return
    apart = f", others part at {found['parted_at']}" if found["parted_at"] else ""
    yield f"codes alone: {found['same']} of {found['compared']} the same{apart}"
    yield (
        f"sound of the codes: at most {found['largest_difference']:.2e} off, "
        f"{found['within']} within 1e-3, noisiest frame {found['least_decibels']} dB below"
    )


def main(
    model: str,
    minutes: Annotated[float, typer.Option(min=0.01)] = 10,
    rate: Annotated[float, typer.Option(help="arrivals a second", min=0.01)] = 6,
    sample: Annotated[int, typer.Option(help="complete answers that are compared", min=1)] = 50,
    growth: Annotated[float, typer.Option(help="megabytes that memory may grow by")] = 64,
    seed: int = 7,
    device: str = "auto",
    dtype: str = "auto",
    profile: str | None = None,
    change: Annotated[
        list[str], typer.Option("--set", help="of the engine: max_num_seqs=256")
    ] = [],  # noqa: B006
    out: Path = Path("."),
) -> None:
    """Soak an engine: prints a summary and writes OUT/soak.json."""
    how: Report = {"device": device, "dtype": dtype, "profile": profile, **changes(change)}
    with open_engine([model], **how) as engine:
        report = asyncio.run(soak(engine, rate, 60 * minutes, sample, seed, growth))
    out.mkdir(parents=True, exist_ok=True)
    (out / "soak.json").write_text(json.dumps({"model": model, **report, **machine()}, indent=1))
    print("\n".join(summary(report)), flush=True)
    sys.exit(not report["good"])


if __name__ == "__main__":
    typer.run(main)
