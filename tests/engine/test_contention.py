"""Other work takes the cores again and again, on a virtual clock: after the first times whoever
comes has the lead that it takes. On a quiet machine nothing is different.
"""

from __future__ import annotations

import asyncio
import random
import time
from dataclasses import dataclass, field

import pytest

from engine import Preset, SpeechRequest
from engine.plan import StepPlan
from engine.scheduler.lateness import Lateness
from engine.testing import Clock, Costs, FakeEngine
from engine.thresholds import LATENESS_HALF_LIFE, MOST_RESERVE
from engine.types import FRAME_SECONDS
from tests.engine.test_cpu_overload import CPU, NOTICED, cpu
from tests.support.serving import wait_until
from tests.support.simulation import Simulation, text

EVERY, HELD = 5.0, 0.8  # seconds from one time of other work to the next, and for which it lasts
SHARE = 4.0  # as long as a step takes meanwhile


@dataclass(frozen=True)
class Contended(Costs):
    """Steps beside other work."""

    clock: Clock = field(default_factory=Clock)
    every: float = EVERY
    held: float = HELD
    share: float = SHARE

    def of(self, plan: StepPlan) -> float:
        held_up = self.clock.now() % self.every > self.every - self.held
        return super().of(plan) * (self.share if held_up else 1)


def talk(contended: bool, seed: int = 0) -> Simulation:
    """A hundred texts at a rate that the machine can bear."""
    simulation, source, now = cpu(), random.Random(seed), 0.0
    if contended:
        simulation.worker.costs = Contended(**vars(CPU), clock=simulation.clock)
    arrivals = []
    for _ in range(100):
        now += source.expovariate(0.25)
        arrivals.append((now, SpeechRequest(text(50, source), Preset("ryan"), seed=1)))
    simulation.play(arrivals)
    return simulation


def with_gaps(simulation: Simulation) -> int:
    """Listeners after the first times of other work that heard a gap."""
    later = [each for each in simulation.listeners if each.arrived > 3 * EVERY]
    assert len(later) > 80
    return sum(max(each.gaps, default=0.0) > NOTICED for each in later)


@pytest.mark.parametrize("seed", range(4))
def test_who_begins_after_a_hold_up_has_the_lead_for_the_next(
    seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    simulation = talk(True, seed)
    assert with_gaps(simulation) <= 2  # a hold-up can be longer than any before it
    waits = sorted(each.first - each.arrived for each in simulation.listeners if each.first)
    assert waits[len(waits) // 2] < 1.0
    monkeypatch.setattr(Lateness, "reserve", lambda self, now, factor=1.0: 0.0)
    assert with_gaps(talk(True, seed)) > 10


def test_on_a_quiet_machine_nobody_waits_for_a_lead() -> None:
    simulation = talk(False)
    alone = [each for each in simulation.listeners if each.chunks[0].frames == 1]
    assert len(alone) > 60  # the first chunk of a stream that is alone is as short as can be
    assert not any(gap > NOTICED for each in simulation.listeners for gap in each.gaps)


@pytest.mark.parametrize("seed", range(20))
def test_the_reserve_is_the_worst_hold_up_of_late(seed: int) -> None:
    source, lateness, now = random.Random(seed), Lateness(), 0.0
    behind = worst = 0.0
    for _ in range(300):
        seconds = source.expovariate(1 / 0.06)
        now += seconds
        lateness.observe(seconds, now)
        behind = max(0.0, behind + seconds - FRAME_SECONDS)
        worst = max(worst, behind)
    reserve = lateness.reserve(now)
    assert reserve <= min(worst, MOST_RESERVE)
    assert reserve >= min(worst, MOST_RESERVE) * 0.5 ** (now / LATENESS_HALF_LIFE)
    assert lateness.reserve(now, 2.0) == min(MOST_RESERVE, 2 * reserve)


def test_what_was_is_forgotten() -> None:
    lateness = Lateness()
    lateness.observe(1.0, 10.0)
    assert lateness.late
    assert lateness.reserve(10.0) > lateness.reserve(30.0) > lateness.reserve(50.0) > 0
    assert lateness.reserve(200.0) == 0.0
    lateness.reset()
    assert not lateness.late


def test_an_event_loop_that_lags_makes_a_reserve() -> None:
    with FakeEngine(costs=Costs(step=0.005)) as engine:

        async def listen() -> None:
            async with engine.submit(SpeechRequest("x" * 200, Preset("ryan"))) as stream:
                await anext(stream)
                chunk = asyncio.ensure_future(anext(stream))
                await asyncio.sleep(0)  # it waits for the next one
                wait_until(lambda: len(stream._output), 60)
                time.sleep(0.2)  # the loop is busy
                await chunk

        asyncio.run(listen())
        lateness = engine.loop.scheduler.lateness
        wait_until(lambda: lateness.reserve(time.monotonic()) > 0.15, 60)
