"""One stream after another on a machine that makes them in half of real time or more, on a virtual
clock: the prompt is no hold-up, the codec gets chunks that cost it less, and other work that slows
the machine to below real time again and again is heard at most the first time.
"""

from __future__ import annotations

import random

import pytest

from engine import Preset, SpeechRequest
from engine.testing import Costs
from engine.types import FRAME_SECONDS
from tests.engine.test_contention import Contended
from tests.engine.test_cpu_overload import NOTICED
from tests.support.simulation import Simulation

PROFILE = {
    "max_num_seqs": 4,
    "max_prefill_tokens": 128,
    "chunk_schedule": (1, 2, 4, 8),
    "pipeline_depth": 0,
}
CHUNK, FRAME = 0.012, 0.006  # seconds of the codec: each chunk, and each frame of it
ONE = CHUNK + FRAME


def spoken(row: float, count: int = 12, seed: int = 1, **disturbance: float) -> Simulation:
    """Texts of 25 to 90 frames, one after the other; a frame takes `row` seconds and the codec.

    `disturbance`: other work, as Contended has it; then there are pauses between the texts.
    """
    costs = Costs(row=row, prefill_row=0.008, decoded_chunk=CHUNK, decoded_frame=FRAME)
    simulation, source = Simulation(costs, **PROFILE), random.Random(seed)
    if disturbance:
        simulation.worker.costs = Contended(**vars(costs), clock=simulation.clock, **disturbance)
    known = {rows: rows * row + ONE for rows in (1, 2, 4)}
    simulation.engine.loop.scheduler.step_cost.decode.anchor(known)
    for number in range(count):
        words = "a" * source.randint(25, 90)
        now = simulation.clock.now() + (source.uniform(0, 4) if disturbance else 0.0)
        simulation.play([(now, SpeechRequest(words, Preset("ryan"), seed=number))])
    return simulation


def with_gaps(simulation: Simulation, since: float) -> int:
    """Listeners who came later and heard a gap."""
    later = [each for each in simulation.listeners if each.arrived > since]
    assert len(later) > 0.7 * len(simulation.listeners)
    return sum(max(each.gaps, default=0.0) > NOTICED for each in later)


@pytest.mark.parametrize("row", [0.02, 0.031, 0.04, 0.05, 0.058])
def test_a_prompt_holds_up_no_listener(row: float) -> None:
    simulation = spoken(row)
    assert not any(each.gaps for each in simulation.listeners)
    for each in simulation.listeners:
        prompt = 0.008 * (len(each.request.text) + 20)
        frames = 2 if row + ONE < 0.75 * FRAME_SECONDS else 4
        assert each.first is not None
        assert each.first - each.arrived < prompt + frames * (row + ONE)
    assert simulation.engine.loop.scheduler.lateness.reserve(simulation.clock.now()) == 0.0


@pytest.mark.parametrize(("row", "least"), [(0.02, 4.5), (0.031, 3.5), (0.04, 3.0), (0.058, 4.0)])
def test_chunks_grow_where_a_frame_takes_most_of_its_time(row: float, least: float) -> None:
    simulation = spoken(row)
    sizes = [[chunk.frames for chunk in each.chunks] for each in simulation.listeners]
    assert sum(map(sum, sizes)) / sum(map(len, sizes)) > least


def test_a_prompt_that_takes_longer_than_others_is_a_hold_up() -> None:
    """Cores that other work has taken, seen before anybody listens."""
    simulation = spoken(0.02, count=6)
    simulation.worker.costs = Costs(row=0.08, prefill_row=0.032, decoded_chunk=CHUNK)
    simulation.ask(SpeechRequest("a" * 40, Preset("ryan")))
    scheduler = simulation.engine.loop.scheduler
    while not scheduler.attempts or not next(iter(scheduler.attempts.values())).planned_frames:
        simulation.turn()
    assert scheduler.lateness.reserve(simulation.clock.now()) > 0.5


@pytest.mark.parametrize("seed", range(6))
def test_other_work_below_real_time_is_heard_the_first_times_at_most(seed: int) -> None:
    """It was by a third: chunks of one frame, for the sake of a reserve, kept the lead from coming
    back, and chunks of eight, as for a slower machine, came when it was nearly used up."""
    simulation = spoken(0.058, 60, seed, every=5.0, held=0.8, share=3.0)
    assert with_gaps(simulation, since=10.0) <= 1  # a hold-up can be longer than any before it


@pytest.mark.parametrize("seed", range(16))
def test_any_other_work_that_leaves_enough_for_real_time_is_borne(seed: int) -> None:
    source = random.Random(seed)
    row, share = source.uniform(0.045, 0.06), source.uniform(2, 4)
    every, held = source.uniform(4, 8), source.uniform(0.4, 0.8)
    frame = row + CHUNK / 4 + FRAME  # with chunks of four
    assert (every - held + held / share) / every > 1.05 * frame / FRAME_SECONDS
    simulation = spoken(row, 40, seed, every=every, held=held, share=share)
    assert with_gaps(simulation, since=3 * every) <= 2


def test_below_real_time_speech_is_held_back_until_it_plays_without_a_gap() -> None:
    simulation = spoken(0.1, 40)
    assert not [gap for each in simulation.listeners for gap in each.gaps if gap > NOTICED]


def test_below_real_time_a_prompt_is_waited_for_once() -> None:
    """It was taken for a part of every frame's time, so that more frames were held back."""
    words, waits = "a" * 60, list[float]()
    for prefill_row in (0.0, 0.02):
        costs = Costs(row=0.1, prefill_row=prefill_row, decoded_chunk=CHUNK, decoded_frame=FRAME)
        simulation = Simulation(costs, **PROFILE)
        simulation.engine.loop.scheduler.step_cost.decode.anchor({1: 0.1 + ONE, 2: 0.2 + ONE})
        request = SpeechRequest(words, Preset("ryan"), max_frames=60, ignore_end=True)
        simulation.play([(0.0, request)])
        (listener,) = simulation.listeners
        assert listener.first is not None
        assert not any(gap > NOTICED for gap in listener.gaps)
        waits.append(listener.first)
    prompt = 0.02 * (len(words) + 20)
    assert waits[1] - waits[0] < prompt + FRAME_SECONDS


def test_a_file_waits_while_speech_is_held_back_for_a_listener() -> None:
    """Held audio was taken for audio that plays: files ran beside it and doubled the wait."""

    def wait(files: int) -> float:
        simulation = Simulation(Costs(row=0.1, decoded_chunk=CHUNK, decoded_frame=FRAME), **PROFILE)
        known = {rows: rows * 0.1 + ONE for rows in (1, 2, 4)}
        simulation.engine.loop.scheduler.step_cost.decode.anchor(known)
        request = SpeechRequest("a" * 60, Preset("ryan"), seed=3)
        file = SpeechRequest("a" * 90, Preset("ryan"), seed=9, live=False)
        simulation.play([*[(0.0, file)] * files, (5.0, request)])
        listener = next(each for each in simulation.listeners if each.request.live)
        assert listener.first is not None
        return listener.first - listener.arrived

    assert wait(files=2) < 1.3 * wait(files=0)


def test_speech_that_is_held_back_is_no_longer_waited_for() -> None:
    """A listener of slow speech hears nothing for long, while ever less of it is left to make."""
    simulation = Simulation(Costs(step=0.16), **PROFILE, max_wait=1.0)
    simulation.play([(0.0, SpeechRequest("a" * 20, Preset("ryan")))])  # something is measured
    simulation.ask(long := SpeechRequest("a" * 80, Preset("ryan")))
    listener, begun = simulation.listeners[-1], simulation.clock.now()
    while simulation.clock.now() < begun + 8.0:
        simulation.turn()
    assert not listener.frames
    assert simulation.ask(long) is None
    promised = simulation.clock.now() + simulation.refused[-1].retry_after
    simulation.finish()
    assert promised == pytest.approx(simulation.clock.now(), abs=1.5)
