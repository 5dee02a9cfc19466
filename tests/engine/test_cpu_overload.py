"""Nine times what two cores can bear, on a virtual clock: who is admitted is heard soon and without
a gap, the queue is as long as a person waits, and the rest is told when it is worth coming back.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from itertools import pairwise

import pytest

from engine import Preset, SpeechRequest
from engine.testing import Costs
from tests.support.simulation import Listener, Simulation, text

# About the embedded model on two cores: three streams in real time.
CPU = Costs(step=0.022, row=0.009, prefill_row=0.0012, decoded_frame=0.004)
PROFILE = {
    "max_num_seqs": 4,
    "max_seq_len": 2048,
    "max_prefill_tokens": 128,
    "chunk_schedule": (1, 2, 4, 8),
    "max_waiting": 32,
    "pipeline_depth": 0,
}
GROUP = 60  # letters that are spoken in one run: the longest texts have four groups
BEARABLE = 0.33  # requests a second
NOTICED = 0.05  # seconds of silence
PATIENCE = 15.0  # the default of max_wait


def sentences(length: int, source: random.Random) -> str:
    parts = [text(min(25, length - done), source) for done in range(0, length, 25)]
    return " ".join(part for part in parts if len(part) > 1)


def crowd(count: int, rate: float, seed: int) -> Iterator[tuple[float, SpeechRequest]]:
    source, now = random.Random(seed), 0.0
    for _ in range(count):
        now += source.expovariate(rate)
        words = sentences(source.choice([30, 50, 90, 200]), source)
        yield now, SpeechRequest(words, Preset("ryan"), seed=source.randrange(1000))


def cpu(**settings: object) -> Simulation:
    simulation = Simulation(CPU, max_letters=GROUP, **{**PROFILE, **settings})
    known = {rows: CPU.step + rows * (CPU.row + CPU.decoded_frame) for rows in (1, 2, 4)}
    simulation.engine.loop.scheduler.step_cost.decode.anchor(known)  # as when a model is loaded
    return simulation


def overloaded(seed: int, **settings: object) -> Simulation:
    simulation = cpu(**settings)
    simulation.play(crowd(200, 9 * BEARABLE, seed))
    return simulation


def waited(listener: Listener) -> float:
    assert listener.first is not None
    return listener.first - listener.arrived


@pytest.mark.parametrize("seed", range(6))
def test_who_is_admitted_is_heard_soon_and_without_a_gap(seed: int) -> None:
    simulation = overloaded(seed)
    assert len(simulation.refused) > len(simulation.listeners) > 20
    assert all(each.stream.end.reason == "finished" for each in simulation.listeners)
    gaps = [gap for each in simulation.listeners for gap in each.gaps if gap > NOTICED]
    assert gaps == []
    waits = sorted(map(waited, simulation.listeners))
    assert waits[-1] < 1.5 * PATIENCE
    assert waits[len(waits) // 2] < PATIENCE


def test_a_burst_on_a_cold_engine_meets_the_same_bound() -> None:
    simulation = cpu()
    simulation.play((0.0, request) for _, request in crowd(40, 1.0, 3))
    assert simulation.refused
    assert max(map(waited, simulation.listeners)) < 1.5 * PATIENCE
    assert not any(gap > NOTICED for each in simulation.listeners for gap in each.gaps)


@pytest.mark.parametrize("patience", [5.0, 30.0])
def test_the_queue_is_as_long_as_a_person_waits(patience: float) -> None:
    waits = sorted(map(waited, overloaded(1, max_wait=patience).listeners))
    assert patience * 0.4 < waits[-1] < patience * 2


@pytest.mark.parametrize("seed", range(3))
def test_a_refusal_tells_the_truth(seed: int) -> None:
    """A client that waits for Retry-After is served soon if no other has come."""
    simulation = cpu()
    for when, request in crowd(60, 9 * BEARABLE, seed):
        while simulation.clock.now() < when:
            if not simulation.turn():
                simulation.clock.sleep(when - simulation.clock.now())
        simulation.ask(request)
        if len(simulation.refused) == 25:  # by then some have been served and measured
            break
    promised, start = simulation.refused[-1].retry_after, simulation.clock.now()
    while simulation.clock.now() < start + promised:
        if not simulation.turn():
            simulation.clock.sleep(start + promised - simulation.clock.now())
    again = simulation.ask(SpeechRequest("Here I am again.", Preset("ryan")))
    assert again is not None
    simulation.finish()
    assert waited(again) < 0.4 * promised
    assert PATIENCE <= promised < 2.5 * PATIENCE


def test_a_long_text_keeps_its_place_between_its_groups() -> None:
    """A text's next group had to wait behind a request that took its slot."""
    simulation, source = cpu(), random.Random(5)
    long = simulation.ask(SpeechRequest(sentences(400, source), Preset("ryan")))
    for _ in range(12):
        simulation.ask(SpeechRequest(sentences(90, source), Preset("ryan")))
    simulation.finish()
    assert long is not None
    assert len(long.chunks) > 10
    assert [gap for gap in long.gaps if gap > NOTICED] == []


def test_files_wait_as_long_as_they_must() -> None:
    simulation, source = cpu(), random.Random(6)
    for _ in range(20):
        simulation.ask(SpeechRequest(sentences(200, source), Preset("ryan"), live=False))
    assert not simulation.refused
    listener = simulation.ask(SpeechRequest("Somebody listens.", Preset("ryan")))
    simulation.finish()
    assert listener is not None
    assert waited(listener) < 3


def test_estimates_fall_while_one_waits() -> None:
    simulation = cpu()
    for _, request in crowd(12, 1.0, 7):
        simulation.ask(request)
    simulation.turn()
    waiting = list(simulation.engine.loop.scheduler.waiting)
    estimates = [each.estimate for each in waiting]
    assert len(estimates) > 3
    assert all(a <= b for a, b in pairwise(estimates))
    assert estimates[-1] > 1
