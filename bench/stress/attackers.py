"""Processes that attack, on cores of their own if they are told which.

A process runs several attacks side by side, each again and again from an address of its own.
"""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Sequence
from concurrent.futures import Executor, Future
from typing import Final

import httpx

from bench.stress.attacks import ATTACKS
from bench.stress.target import Tally, Target

PAUSE: Final = 1.0  # between two rounds of an attack, in seconds


def start_attackers(
    pool: Executor,
    target: Target,
    names: Sequence[str],
    seconds: float,
    cores: Sequence[int],
    niceness: int = 0,
) -> list[Future[list[Tally]]]:
    """Start one process for each core; a single one if no cores are named."""
    numbered = list(enumerate(names, 2))
    groups = [numbered[start :: max(1, len(cores))] for start in range(max(1, len(cores)))]
    return [pool.submit(run, target, group, seconds, cores, niceness) for group in groups if group]


def run(
    target: Target,
    numbered: Sequence[tuple[int, str]],
    seconds: float,
    cores: Sequence[int],
    niceness: int,
) -> list[Tally]:
    """The work of one process: attacks by name, with the last number of their address."""
    pin(cores)
    os.nice(niceness)
    return asyncio.run(_run(target, numbered, seconds))


def pin(cores: Sequence[int]) -> None:
    """Keep this process to some cores; none named: to all that it has."""
    if cores:
        os.sched_setaffinity(0, cores)


async def _run(target: Target, numbered: Sequence[tuple[int, str]], seconds: float) -> list[Tally]:
    until = time.monotonic() + seconds
    everybody = (
        repeat(name, target.from_address(f"127.0.0.{number}"), until) for number, name in numbered
    )
    return list(await asyncio.gather(*everybody))


async def repeat(name: str, target: Target, until: float) -> Tally:
    tally = Tally(name)
    while time.monotonic() < until:
        tally.rounds += 1
        try:
            await ATTACKS[name](target, tally)
        except (OSError, httpx.HTTPError) as error:  # the connection was refused or dropped
            tally.note(type(error).__name__)
        await asyncio.sleep(PAUSE)
    return tally
