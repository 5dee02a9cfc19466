"""Simulated load on a virtual clock: hundreds of listeners, no GPU, seconds."""

from __future__ import annotations

import random
from itertools import pairwise

import pytest

from engine import Preset, SpeechRequest
from engine.plan import StepPlan
from engine.testing import Costs
from tests.support.simulation import FAST, SLOW, Listener, Simulation, poisson, text

BELOW, ABOVE = 15.0, 80.0  # requests a second; the fast card saturates at about 25
NOTICED = 0.01  # seconds of silence that a careful ear notices
AUDIBLE = 0.05


def played(rate: float, seed: int, costs=FAST, count: int = 500, files: float = 0.0) -> Simulation:
    simulation = Simulation(costs, max_waiting=100)
    simulation.play(poisson(count, rate, random.Random(seed), files))
    return simulation


def all_complete(simulation: Simulation) -> bool:
    """Every accepted request was spoken to its end, in order, once."""
    return all(
        listener.stream.end.reason == "finished"
        and listener.frames == len(listener.request.text) == listener.stream.end.frames
        and [chunk.index for chunk in listener.chunks] == list(range(len(listener.chunks)))
        for listener in simulation.listeners
    )


def live(simulation: Simulation) -> list[Listener]:
    return [each for each in simulation.listeners if each.request.live]


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_below_saturation_nobody_waits_and_nothing_stops(seed):
    simulation = played(BELOW, seed)
    assert not simulation.refused
    assert all_complete(simulation)
    assert not any(listener.gaps for listener in simulation.listeners)
    assert max(listener.first - listener.arrived for listener in simulation.listeners) < 0.2


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_above_saturation_the_rest_is_refused_and_the_accepted_are_served(seed):
    simulation = played(ABOVE, seed)
    assert len(simulation.refused) > 100
    assert len(simulation.listeners) + len(simulation.refused) == 500
    assert simulation.most_running == 64
    assert all_complete(simulation)
    assert not any(gap > NOTICED for listener in simulation.listeners for gap in listener.gaps)
    # 100 places in the queue; the card makes about 25 requests a second
    assert max(listener.first - listener.arrived for listener in simulation.listeners) < 8


def test_a_refusal_says_when_to_come_back():
    simulation = played(ABOVE, 1)
    assert all(busy.waiting >= 100 for busy in simulation.refused)
    assert all(0.5 < busy.retry_after < 30 for busy in simulation.refused)
    assert "Try again in about" in str(simulation.refused[0])


def test_live_requests_are_served_in_the_order_in_which_they_came():
    simulation = Simulation(max_waiting=400)
    simulation.play(poisson(400, ABOVE, random.Random(4)))
    begun = [listener.stream._progress.id for listener in sorted(live(simulation), key=_began)]
    assert begun == sorted(begun)


def _began(listener: Listener) -> tuple[float, int]:
    return listener.first, listener.stream._progress.id


def test_a_slow_card_lets_in_what_it_can_serve():
    simulation = played(4.0, 1, SLOW, count=150)
    assert all_complete(simulation)
    assert simulation.most_running <= 12  # of 64 slots
    assert not any(gap > AUDIBLE for listener in simulation.listeners for gap in listener.gaps)
    assert sum(len(listener.gaps) for listener in simulation.listeners) <= 8


def test_the_slowest_card_still_serves_one():
    simulation = Simulation(Costs(step=0.5))
    simulation.play(poisson(3, 100, random.Random(1)))
    assert simulation.most_running == 1
    assert all_complete(simulation)


def test_a_burst_on_a_cold_engine():
    simulation = Simulation()
    simulation.play((0.0, request) for _, request in poisson(64, 1, random.Random(2)))
    assert all_complete(simulation)
    assert not any(listener.gaps for listener in simulation.listeners)
    assert max(listener.first for listener in simulation.listeners) < 1.5


@pytest.mark.parametrize("costs", [FAST, SLOW])
def test_files_take_what_listeners_leave(costs):
    simulation = played(4.0, 3, costs, count=150, files=0.4)
    assert all_complete(simulation)
    assert not any(gap > AUDIBLE for listener in simulation.listeners for gap in listener.gaps)


def test_listeners_who_come_to_a_card_full_of_files_are_served_in_time():
    simulation = Simulation(SLOW, max_num_seqs=24, max_prefill_tokens=10_000)
    source = random.Random(8)
    files = [SpeechRequest(text(90, source), Preset("ryan"), live=False) for _ in range(18)]
    for file in files:
        simulation.ask(file)
    for _ in range(12):
        simulation.turn()
    assert simulation.most_running == 18
    begun = simulation.clock.now()
    simulation.play((begun + 0.3 * number, request) for number, (_, request) in _numbered(source))
    assert all_complete(simulation)
    assert not any(gap > AUDIBLE for listener in simulation.listeners for gap in listener.gaps)
    assert max(each.first - each.arrived for each in live(simulation)) < 1


def _numbered(source: random.Random):
    return enumerate(poisson(6, 1.0, source))


def decoded_frames(plan: StepPlan) -> int:
    return sum(piece.stop - piece.start for piece in plan.codec_decode)


def test_large_chunks_do_not_fall_on_one_step():
    simulation = Simulation()
    for _, request in poisson(64, 1, random.Random(2)):
        simulation.ask(request)
    while simulation.turn():
        plan = simulation.worker.plans[-1]
        assert decoded_frames(plan) <= max(2 * len(plan.decode), 12)


def test_a_file_is_not_starved_by_listeners():
    source = random.Random(5)
    simulation = Simulation(SLOW, max_num_seqs=16, max_waiting=1000)
    file = simulation.ask(SpeechRequest(text(60, source), Preset("ryan"), live=False))
    simulation.play(poisson(150, 4.0, source))
    last = max(listener.ended for listener in live(simulation))
    assert file.ended < last / 2


def test_a_waiting_file_lets_younger_listeners_pass_for_a_while_only():
    simulation = Simulation(max_num_seqs=1, file_patience=1.0, file_share=1.0)
    source = random.Random(6)
    requests = [SpeechRequest(text(40, source), Preset("ryan")) for _ in range(12)]
    simulation.ask(requests[0])
    file = simulation.ask(SpeechRequest(text(40, source), Preset("ryan"), live=False))
    simulation.play((0.2 * number, request) for number, request in enumerate(requests[1:], 1))
    before = [each for each in live(simulation) if each.ended < file.ended]
    passed = [each for each in before if each.arrived > file.arrived]
    assert passed
    assert all(each.arrived <= file.arrived + 1.0 for each in passed)
    assert len(before) < len(requests)


def test_files_leave_slots_and_queue_to_listeners():
    simulation = Simulation(max_num_seqs=8, max_waiting=8, file_share=0.5)
    source = random.Random(7)
    for _ in range(40):
        simulation.ask(SpeechRequest(text(40, source), Preset("ryan"), live=False))
    assert simulation.refused
    for _ in range(8):
        simulation.turn()
    assert simulation.most_running == 4
    listener = simulation.ask(SpeechRequest("hello there", Preset("ryan")))
    simulation.finish()
    assert listener.first - listener.arrived < 0.2


def test_waiting_listeners_know_their_place():
    simulation = Simulation(max_num_seqs=2)
    streams = [simulation.ask(request).stream for _, request in poisson(6, 100, random.Random(8))]
    for _ in range(6):
        simulation.turn()
    capacity = [stream.position for stream in streams]
    assert capacity == [None, None, 0, 1, 2, 3]
    estimates = [stream.estimate for stream in streams[2:]]
    assert all(0 < a < b for a, b in pairwise(estimates))
    simulation.finish()
    assert {stream.position for stream in streams} == {None}


def chunks_at(lag: int) -> list[list[bytes]]:
    simulation = Simulation(Costs(step=0.001), max_num_seqs=4, pipeline_depth=lag)
    simulation.play(poisson(12, 20, random.Random(9), files=0.3))
    return [[chunk.pcm.tobytes() for chunk in each.chunks] for each in simulation.listeners]


def test_reading_results_late_changes_no_chunk():
    assert chunks_at(0) == chunks_at(1) == chunks_at(2)


@pytest.mark.parametrize(("slower", "seed"), [(1.0, 0), (1.0, 2), (1.5, 1), (2.0, 1)])
def test_who_comes_all_at_once_hears_no_gap(slower, seed):
    """The second chunk is due while the others' prompts make steps long."""
    costs = Costs(
        step=0.0036 * slower,
        row=0.00006 * slower,
        prefill_row=0.00005 * slower,
        decoded_frame=0.00005 * slower,
    )
    simulation = Simulation(costs, max_num_seqs=64, max_waiting=200)
    known = {rows: costs.step + costs.row * rows for rows in (1, 8, 64)}
    simulation.engine.loop.scheduler.step_cost.decode.anchor(known)
    simulation.play(poisson(64 if slower == 1 else 150, 1e6, random.Random(seed)))
    assert all_complete(simulation)
    assert not any(listener.gaps for listener in simulation.listeners)


def test_nobody_waits_longer_for_a_prompt_that_is_filled():
    """Alone, a first chunk is one frame where a step is, whatever the own prompt took."""
    costs = Costs(step=0.019, prefill_row=0.0004)
    simulation = Simulation(costs, max_num_seqs=4, pipeline_depth=0)
    for seed in range(4):
        simulation.play(
            [(simulation.clock.now(), SpeechRequest("a" * 60, Preset("ryan"), seed=seed))]
        )
    assert [listener.chunks[0].frames for listener in simulation.listeners] == [1] * 4
