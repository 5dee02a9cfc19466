"""`python -m bench.stress.mixed_load --model DIR`: visitors and attacks beside one listener.

Visitors of `soak.py` use a server that asks for a key, every attack of `attacks.py` goes on beside
them, and somebody listens all the time. Attackers and listener are processes of their own;
`--server-cores` and `--attack-cores` keep them apart. It fails when the listener hears a gap, a
visitor's answer is broken, an attack gets what it must not get, a slot stays taken, or memory
grows. One JSON line last: gaps, memory, and what each attack got back.
"""

from __future__ import annotations

import asyncio
import json
import multiprocessing
import time
from collections.abc import Iterable, Sequence
from concurrent.futures import Executor, ProcessPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Final

import typer

from bench import MINI
from bench.stress import listener
from bench.stress.attackers import start_attackers
from bench.stress.attacks import ATTACKS
from bench.stress.listener import Heard
from bench.stress.soak import ENDS, GROWTH, Account, Crowd, stuck, studio
from bench.stress.soak_watch import Watch
from bench.stress.target import Tally, Target, look_at

KEY: Final = "a-key-of-the-mixed-load"
ROOM: Final = 1000  # voices that may be saved besides those of the beginning
API_ACTIONS: Final = ("file", "stream", "events", "socket", "listing")


@dataclass(frozen=True)
class Load:
    """What goes on beside the server, and on which cores."""

    seconds: float
    visitors: int = 2
    attacks: Sequence[str] = tuple(ATTACKS)
    attack_cores: Sequence[int] = ()
    listener_cores: Sequence[int] = ()
    attack_niceness: int = 0

    @property
    def processes(self) -> int:
        return 1 + max(1, len(self.attack_cores))


async def mixed(load: Load, target: Target, pid: int, pool: Executor) -> dict[str, Any]:
    actions = (*API_ACTIONS, "page") if target.cookie or not target.key else API_ACTIONS
    everybody = Crowd(target.url, load.visitors, load.seconds, actions, target.credentials)
    account, watch, started = Account(), Watch(pid), time.monotonic()
    async with watch.running():
        attackers = start_attackers(
            pool, target, load.attacks, load.seconds, load.attack_cores, load.attack_niceness
        )
        listening = pool.submit(
            listener.run, target.url, target.key, load.seconds, load.listener_cores
        )
        await everybody.live(account)
        heard = await asyncio.wrap_future(listening)
        groups = await asyncio.gather(*map(asyncio.wrap_future, attackers))
    tallies = [tally for group in groups for tally in group]
    seconds = round(time.monotonic() - started)
    left = await stuck(target.url, target.key)
    return {"seconds": seconds, **report(heard, account, tallies, left, watch.figures())}


def report(
    heard: Heard,
    account: Account,
    tallies: Iterable[Tally],
    left: dict[str, float],
    held: dict[str, Any],
) -> dict[str, Any]:
    tallies = sorted(tallies, key=lambda tally: tally.name)
    faults = [fault for tally in tallies for fault in tally.faults]
    ends = {end: account.total(end) for end in ENDS}
    steady = held["memory_growth_mb"] <= GROWTH
    good = heard.undisturbed and steady and not (faults or left or ends["broken"])
    return {
        "good": good,
        "listener": heard.figures(),
        "visitors": {**ends, "wrong": account.wrong},
        "attacks": {
            tally.name: {"rounds": tally.rounds, **dict(sorted(tally.answers.items()))}
            for tally in tallies
        },
        "faults": faults[:20],
        "stuck": left,
        **held,
    }


def cores_of(written: str) -> tuple[int, ...]:
    """`0-2,5` as numbers."""
    ranges = (part.partition("-") for part in written.split(",") if part)
    return tuple(core for low, _, high in ranges for core in range(int(low), int(high or low) + 1))


def main(
    model: str = "",
    url: Annotated[str, typer.Option(help="A server instead; needs --pid.")] = "",
    pid: int = 0,
    key: Annotated[str, typer.Option(help="One of its keys.")] = KEY,
    minutes: Annotated[float, typer.Option(min=0.01)] = 30,
    visitors: Annotated[int, typer.Option(min=1)] = 2,
    attack: Annotated[list[str] | None, typer.Option(help=f"Only: {', '.join(ATTACKS)}")] = None,
    server_cores: Annotated[str, typer.Option(help="Like 0-1, for the server.")] = "",
    attack_cores: Annotated[str, typer.Option(help="Like 2-13; a process a core.")] = "",
    listener_cores: Annotated[str, typer.Option(help="Like 14-15.")] = "",
    attack_niceness: Annotated[
        int, typer.Option(help="19 where they share the server's cores: they take what is left.")
    ] = 0,
    saved_voices: Annotated[int, typer.Option(help="In the library from the beginning.")] = 0,
    page: Annotated[bool, typer.Option(help="Serve the page, and attack it.")] = True,
    out: Annotated[Path | None, typer.Option(help="A file for the report.")] = None,
) -> None:
    load = Load(
        minutes * 60,
        visitors,
        attack or tuple(ATTACKS),
        cores_of(attack_cores),
        cores_of(listener_cores),
        attack_niceness,
    )
    variables = {"TIMBRE_API_KEYS": key, "TIMBRE_PAGE": str(page).lower()}
    variables["TIMBRE_API_SAVED_VOICES"] = str(saved_voices + ROOM)
    with ExitStack() as stack:
        if not url:
            cores = cores_of(server_cores)
            place = studio(model or str(MINI), variables, cores, saved_voices)
            url, pid = stack.enter_context(place)
        context = multiprocessing.get_context("spawn")
        pool = stack.enter_context(ProcessPoolExecutor(load.processes, mp_context=context))
        report = asyncio.run(mixed(load, look_at(url.rstrip("/"), key), pid, pool))
    line = json.dumps(report)
    if out:
        out.write_text(line + "\n")
    print(line)
    raise SystemExit(0 if report["good"] else 1)


if __name__ == "__main__":
    typer.run(main)
