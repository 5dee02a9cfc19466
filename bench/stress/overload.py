"""`python -m bench.stress.overload --model DIR`: more listeners than a server can bear.

First a closed loop shows how many requests a second it serves; then `--times` as many arrive at
random. Reported: who was served and refused, when the served heard their first sound, their gaps,
and whether Retry-After was true: it should be between the seconds until everybody who was ahead of
the refused one had been heard, and until all of them had heard everything. One JSON line last.
"""

from __future__ import annotations

import asyncio
import json
import random
import time
from contextlib import ExitStack
from dataclasses import dataclass, replace
from itertools import islice
from typing import Annotated, Any

import numpy as np
import typer

from bench import MINI
from bench.http_lines import Refused, Server
from bench.load_generator import GAP, UNDERRUN, StreamMeter
from bench.stress.soak import studio
from bench.workload import Job, Work

WARM = 8  # requests that are not counted
LONG = 5  # every fifth text is this many times as long: it is spoken in groups


@dataclass(frozen=True)
class Visit:
    """`asked` in seconds since the start; `retry` is set for who was refused."""

    asked: float
    first: float = 0.0  # from asking to the first sound
    deficit: float = 0.0  # the longest gap
    total: float = 0.0  # from asking to the end
    retry: float | None = None
    broken: str = ""


async def visit(server: Server, job: Job, start: float) -> Visit:
    begun, meter = time.perf_counter() - start, StreamMeter()
    try:
        await hear(server, job, meter)
    except Refused as refused:
        return Visit(begun, retry=retry_after(refused.body), broken=fault_of(refused))
    except OSError as error:
        return Visit(begun, broken=repr(error)[:200])
    return Visit(begun, meter.first, meter.deficit, time.perf_counter() - start - begun)


async def hear(server: Server, job: Job, meter: StreamMeter) -> None:
    """Stream one text as PCM. Raises Refused or OSError."""
    body = {"input": job.text, "response_format": "pcm", "seed": job.seed}
    odd = b""
    async for piece in server.ask("POST", "/v1/audio/speech", json.dumps(body).encode()):
        data = odd + piece
        odd = data[len(data) // 2 * 2 :]
        meter.add(np.frombuffer(data[: len(data) // 2 * 2], np.int16))


def retry_after(body: bytes) -> float | None:
    try:
        return float(json.loads(body)["error"]["retry_after"])
    except (ValueError, KeyError, TypeError):
        return None


def fault_of(refused: Refused) -> str:
    """Empty for a plain refusal that says when to come back."""
    return "" if retry_after(refused.body) is not None else str(refused)[:200]


def with_long_texts(jobs: list[Job]) -> list[Job]:
    """Every fifth text several times as long."""
    return [
        replace(job, text=" ".join([job.text] * LONG)) if number % LONG == 0 else job
        for number, job in enumerate(jobs)
    ]


async def closed_loop_rate(server: Server, listeners: int, count: int) -> float:
    """Requests a second in a closed loop."""
    jobs = iter(with_long_texts(Work(seed=1).jobs(WARM + count)))
    start, ended = time.perf_counter(), list[float]()

    async def listener() -> None:
        for job in jobs:
            await visit(server, job, start)
            ended.append(time.perf_counter() - start)

    await asyncio.gather(*(listener() for _ in range(listeners)))
    return count / (ended[-1] - ended[WARM - 1])


async def overload(server: Server, rate: float, seconds: float) -> list[Visit]:
    """Arrivals at random times, `rate` a second."""
    tasks, chance, due = [], random.Random(3), 0.0
    start = time.perf_counter()
    for job in with_long_texts(list(islice(Work(seed=2).stream(), int(2 * rate * seconds) + 10))):
        due += chance.expovariate(rate)
        if due > seconds:
            break
        await asyncio.sleep(max(0.0, start + due - time.perf_counter()))
        tasks.append(asyncio.create_task(visit(server, job, start)))
    return list(await asyncio.gather(*tasks))


def report(visits: list[Visit]) -> dict[str, Any]:
    served = [each for each in visits if each.first]
    refused = [each for each in visits if each.retry is not None]
    promised = [each.retry or 0.0 for each in refused]
    true = [true_wait(each, served) for each in refused]
    off = [
        max(0.0, low - seconds, seconds - high)
        for seconds, (low, high) in zip(promised, true, strict=True)
    ]
    return {
        "asked": len(visits),
        "served": len(served),
        "refused": len(refused),
        "broken": [each.broken for each in visits if each.broken][:5],
        "first_s": spread([each.first for each in served]),
        "gaps": sum(each.deficit > GAP for each in served),
        "underruns": sum(each.deficit > UNDERRUN for each in served),
        "worst_gap_s": round(max((each.deficit for each in served), default=0.0), 3),
        "retry_after_s": spread(promised),
        "heard_s": spread([low for low, _ in true]),
        "ended_s": spread([high for _, high in true]),
        "off_s": spread(off),
    }


def true_wait(refused: Visit, served: list[Visit]) -> tuple[float, float]:
    """Seconds after which everybody ahead had been heard, and had heard everything."""
    ahead = [each for each in served if each.asked < refused.asked]
    heard = max((each.asked + each.first for each in ahead), default=0.0)
    ended = max((each.asked + each.total for each in ahead), default=0.0)
    return max(0.0, heard - refused.asked), max(0.0, ended - refused.asked)


def spread(values: list[float]) -> dict[str, float]:
    if not values:
        return {}
    low, middle, high = np.percentile(values, [0, 50, 100])
    return {name: round(float(value), 2) for name, value in zip(
        ("least", "middle", "most"), (low, middle, high), strict=True)}  # fmt: skip


async def measure(url: str, times: float, seconds: float, listeners: int) -> dict[str, Any]:
    server = Server(url)
    rate = await closed_loop_rate(server, listeners, 3 * listeners)
    visits = await overload(server, times * rate, seconds)
    server.close()
    return {"bearable_per_s": round(rate, 3), "times": times, "seconds": seconds, **report(visits)}


def main(
    model: str = "",
    url: Annotated[str, typer.Option(help="a server instead: http://HOST:PORT")] = "",
    times: Annotated[float, typer.Option(min=1, help="of what it can bear")] = 9,
    seconds: float = 60,
    listeners: Annotated[int, typer.Option(help="of the closed loop")] = 4,
) -> None:
    with ExitStack() as stack:
        if not url:
            url, _ = stack.enter_context(studio(model or str(MINI)))
        report = asyncio.run(measure(url.rstrip("/"), times, seconds, listeners))
    print(json.dumps(report))
    raise SystemExit(1 if report["broken"] else 0)


if __name__ == "__main__":
    typer.run(main)
