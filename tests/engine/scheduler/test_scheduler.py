"""The scheduler step by step, against a worker that refuses any plan out of order."""

from __future__ import annotations

import random
from collections.abc import Iterable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine import EngineSettings, Preset, SpeechRequest
from engine.requests.sequence import Attempt
from engine.scheduler.waiting_queue import WaitingQueue
from engine.testing import Costs
from tests.support.simulation import SLOW, Listener, Simulation, ask, poisson

SETTINGS = EngineSettings()


def run_of(listener: Listener) -> Attempt:
    return listener.stream._progress.attempt


def test_who_waits_moves_up_when_another_leaves_the_queue():
    simulation = Simulation(max_num_seqs=1)
    ask(simulation, "a" * 300)
    simulation.turn()
    second, third = ask(simulation), ask(simulation)
    simulation.turn()
    assert (second.stream.position, third.stream.position) == (0, 1)
    second.stream.cancel()
    simulation.turn()
    assert third.stream.position == 0


def test_those_who_come_at_once_are_told_their_places_once(monkeypatch):
    told, update = [], WaitingQueue.update

    def counted(self: WaitingQueue, estimates: Iterable[float]) -> None:
        told.append(len(self))
        update(self, estimates)

    monkeypatch.setattr(WaitingQueue, "update", counted)
    simulation = Simulation(SLOW, max_num_seqs=2)
    crowd = [ask(simulation, "abcd", seed=seed) for seed in range(30)]
    simulation.turn()
    assert told == [29]  # one has begun
    assert [each.stream.position for each in crowd] == [None, *range(29)]


def test_a_request_that_ended_before_the_loop_saw_it_takes_no_slot():
    simulation = Simulation()
    ask(simulation)
    simulation.engine._registry.pause("The engine got stuck.")
    simulation.engine._registry.resume()
    simulation.turn()
    assert not simulation.engine.loop.scheduler.active


# One step.


def test_the_first_plan_of_a_request_already_makes_sound():
    simulation = Simulation(max_num_seqs=2, pipeline_depth=0)
    listener = ask(simulation)
    simulation.turn()
    [plan] = simulation.worker.plans
    assert plan.admit
    assert plan.prefill
    assert plan.decode
    assert plan.codec_decode
    assert listener.frames == 1


@pytest.mark.parametrize("running", [5, 6])
def test_among_many_a_first_frame_is_made_one_step_after_its_prompt(running):
    simulation = Simulation(max_num_seqs=64, prefill_first_streams=5)
    for seed in range(running):
        ask(simulation, "a" * 300, seed=seed)
    while not all(each.frames for each in simulation.listeners):
        simulation.turn()
    late = ask(simulation, "z" * 30)
    simulation.turn()
    plan = simulation.worker.plans[-1]
    assert [piece.slot for piece in plan.prefill] == [run_of(late).slot]
    assert (run_of(late).slot in plan.decode) == (running == 5)
    assert len(plan.decode) >= running
    simulation.turn()
    assert run_of(late).slot in simulation.worker.plans[-1].decode


def test_prefill_is_bounded_in_every_step_and_complete():
    simulation = Simulation(max_num_seqs=8, max_prefill_tokens=64)
    for _ in range(8):
        ask(simulation, "a long text, " * 10)
    rows = []
    while simulation.turn():
        rows.append(sum(piece.stop - piece.start for piece in simulation.worker.plans[-1].prefill))
    assert max(rows) == 64
    assert all(listener.frames == 130 for listener in simulation.listeners)


def test_a_burst_is_laid_out_no_quicker_than_it_can_be_filled_in():
    simulation = Simulation(max_num_seqs=16, max_prefill_tokens=100)
    for _ in range(16):
        ask(simulation, "x" * 60)
    admitted = []
    while simulation.turn():
        rows = [len(each.prompt) for each in simulation.worker.plans[-1].admit]
        assert sum(rows[:-1]) < 100
        admitted += rows
    assert len(admitted) == 16


def test_prefill_shrinks_while_a_stream_is_short_of_sound():
    costs = Costs(step=0.03, prefill_row=0.001)
    simulation = Simulation(
        costs, max_num_seqs=8, pipeline_depth=0, max_prefill_tokens=512, min_prefill_tokens=16
    )
    ask(simulation, "somebody who listens already")
    for _ in range(3):
        simulation.turn()
    simulation.engine.loop.scheduler.step_cost.prefill.observe(100, 0.1)
    ask(simulation, "somebody new with a long text " * 8)
    simulation.turn()
    first = simulation.worker.plans[-1].prefill[0]
    assert 16 <= first.stop - first.start < 100
    simulation.finish()
    assert not any(listener.gaps for listener in simulation.listeners)


def test_slots_of_the_finished_are_refilled_at_once():
    simulation = Simulation(Costs(step=0.01), max_num_seqs=4, pipeline_depth=0)
    for number in range(12):
        ask(simulation, "x" * (10 + number))
    idle_rows = 0
    while simulation.turn():
        plan = simulation.worker.plans[-1]
        waiting = len(simulation.engine.loop.scheduler.waiting)
        idle_rows += (4 - len(simulation.worker.running)) if waiting and plan.number > 4 else 0
    assert idle_rows == 0


@pytest.mark.parametrize("lag", [0, 1])
@pytest.mark.parametrize("after", range(1, 9))
def test_a_cancel_frees_the_slot_within_a_step(lag, after):
    simulation = Simulation(Costs(step=0.01), max_num_seqs=1, pipeline_depth=lag)
    gone, next_one = ask(simulation, "x" * 40), ask(simulation, "y" * 20)
    for _ in range(after):
        simulation.turn()
    slot = run_of(gone).slot
    gone.stream.cancel()
    simulation.turn()
    plan = simulation.worker.plans[-1]
    assert slot in plan.release
    assert [admit.slot for admit in plan.admit] == [slot]
    assert gone.stream.end.reason == "cancelled"
    simulation.finish()
    assert next_one.frames == 20
    assert all(chunk.codes.shape[1] == 16 for chunk in next_one.chunks)


def test_results_that_arrive_late_do_not_reach_the_next_in_the_slot():
    simulation = Simulation(Costs(step=0.01), max_num_seqs=1, pipeline_depth=2)
    first = ask(simulation, "abcdefghij", seed=1)
    second = ask(simulation, "klmnopqrst", seed=2)
    for _ in range(5):
        simulation.turn()
    first.stream.cancel()
    simulation.finish()
    alone = Simulation(Costs(step=0.01), max_num_seqs=1, pipeline_depth=0)
    expected = ask(alone, "klmnopqrst", seed=2)
    alone.finish()
    assert _codes(second) == _codes(expected)


def _codes(listener: Listener) -> list[list[int]]:
    return [row.tolist() for chunk in listener.chunks for row in chunk.codes]


@pytest.mark.parametrize("lag", [0, 1])
def test_the_same_codes_whoever_else_is_served(lag):
    request = SpeechRequest("the same words again", Preset("ryan"), seed=11)
    alone = Simulation(max_num_seqs=8, pipeline_depth=lag)
    expected = alone.ask(request)
    alone.finish()
    crowd = Simulation(SLOW, max_num_seqs=8, pipeline_depth=lag)
    arrivals = list(poisson(30, 5, random.Random(3), files=0.3))
    crowd.play([*arrivals[:15], (arrivals[15][0], request), *arrivals[16:]])
    [crowded] = [each for each in crowd.listeners if each.request is request]
    assert _codes(crowded) == _codes(expected)


def test_an_unused_engine_plans_nothing():
    simulation = Simulation()
    assert not simulation.turn()
    assert not simulation.worker.plans


# Open text.


def test_an_open_text_is_stepped_as_far_as_its_words_go():
    simulation = Simulation(max_num_seqs=2, pipeline_depth=1)
    listener = ask(simulation, "", open_text=True)
    simulation.finish()
    assert not simulation.worker.plans  # it has no slot yet
    listener.stream.append("one two ")
    simulation.finish()
    spoken = listener.frames
    assert 0 < spoken < 8
    listener.stream.append("three four ")
    simulation.finish()
    assert listener.frames > spoken
    assert listener.stream.end is None
    listener.stream.close_text()
    simulation.finish()
    assert listener.stream.end.reason == "finished"
    assert listener.frames == len("one two three four ")
    assert run_of(listener) is None


@given(st.data())
@settings(max_examples=30, deadline=None)
def test_text_in_pieces_is_spoken_like_the_same_text_whole(data):
    words = data.draw(st.text("ab ,.é漢1", min_size=1, max_size=40).filter(str.strip))
    cuts = sorted(data.draw(st.lists(st.integers(0, len(words)), max_size=6)))
    pieces = [words[a:b] for a, b in zip([0, *cuts], [*cuts, len(words)], strict=True)]
    whole = Simulation(max_num_seqs=2)
    expected = ask(whole, words, seed=5, layout="streamed")
    whole.finish()
    simulation = Simulation(max_num_seqs=2, pipeline_depth=data.draw(st.integers(0, 1)))
    listener = ask(simulation, pieces[0], seed=5, open_text=True)
    for piece in pieces[1:]:
        for _ in range(data.draw(st.integers(0, 6))):
            simulation.turn()
        listener.stream.append(piece)
    listener.stream.close_text()
    simulation.finish()
    assert _codes(listener) == _codes(expected)


def test_silence_of_the_writer_is_no_gap_of_ours():
    simulation = Simulation(max_num_seqs=2)
    listener = ask(simulation, "one two three ", open_text=True)
    simulation.finish()
    simulation.clock.sleep(10)
    listener.stream.append("and more")
    listener.stream.close_text()
    simulation.finish()
    assert listener.stream.end.reason == "finished"
    assert simulation.engine.stats().gaps == 0


def test_a_writer_has_time_from_the_end_of_what_is_spoken():
    simulation = Simulation(Costs(step=0.05), max_letters=40, text_timeout=1.0)
    first = "These are the words of the first group. "  # two seconds, in a group of its own
    listener = ask(simulation, first + "And", open_text=True)
    simulation.finish()
    assert listener.frames == len(first.strip())
    assert listener.stream.end is None
    simulation.clock.sleep(0.5)
    listener.stream.append(" more.")
    listener.stream.close_text()
    simulation.finish()
    assert listener.stream.end.reason == "finished"


def test_a_text_left_open_is_ended_and_frees_its_slot():
    simulation = Simulation(max_num_seqs=1, text_timeout=60.0)
    listener = ask(simulation, "one two three ", open_text=True)
    simulation.finish()
    simulation.clock.sleep(59)
    simulation.finish()
    assert listener.stream.end is None
    simulation.clock.sleep(2)
    simulation.finish()
    assert listener.stream.end.reason == "error"
    assert not simulation.worker.running
    assert simulation.engine.loop.scheduler.slots.free == 1


def test_a_writer_who_waits_for_a_slot_is_not_timed_out():
    simulation = Simulation(Costs(step=0.05), max_num_seqs=1, text_timeout=1.0)
    ask(simulation, "x" * 60)
    listener = ask(simulation, "one two three ", open_text=True)
    while listener.first is None:
        simulation.turn()
    assert simulation.clock.now() > 2
    listener.stream.close_text()
    simulation.finish()
    assert listener.stream.end.reason == "finished"


def short_of_text() -> tuple[Simulation, list[Listener]]:
    """Four streams on a machine for four, all of them at the end of their text so far."""
    costs = Costs(step=0.002, row=0.015)
    simulation = Simulation(costs, max_num_seqs=16)
    known = {rows: costs.step + costs.row * rows for rows in (1, 4, 16)}
    simulation.engine.loop.scheduler.step_cost.decode.anchor(known)
    writers = [ask(simulation, "one two three ", open_text=True, seed=seed) for seed in range(4)]
    simulation.finish()
    assert simulation.engine.loop.scheduler.capacity == simulation.most_running == 4
    return simulation, writers


def test_texts_that_run_dry_for_a_moment_are_not_joined_by_others():
    simulation, writers = short_of_text()
    for seed in range(4, 8):
        ask(simulation, "x" * 60, seed=seed)
    simulation.finish()
    assert simulation.most_running == 4
    for writer in writers:
        writer.stream.append("y" * 100)
        writer.stream.close_text()
    simulation.finish()
    assert {each.stream.end.reason for each in simulation.listeners} == {"finished"}
    assert simulation.engine.stats().gaps == 0


def test_texts_that_pause_for_long_make_room_for_others():
    simulation, writers = short_of_text()
    late = ask(simulation, "x" * 60)
    simulation.finish()
    assert late.first is None
    scheduler, now = simulation.engine.loop.scheduler, simulation.clock.now()
    simulation.clock.sleep(scheduler.next_deadline(now) - now)  # the loop wakes by itself
    assert simulation.clock.now() < now + 10
    simulation.finish()
    assert late.stream.end.reason == "finished"
    assert scheduler.next_deadline(simulation.clock.now()) > now + 100  # and sleeps again
    assert not any(writer.stream.end for writer in writers)


def test_an_engine_that_was_held_up_and_waits_for_text_lets_others_begin():
    simulation = Simulation(Costs(step=0.2), max_num_seqs=4, pipeline_depth=0)
    simulation.engine.loop.scheduler.step_cost.decode.anchor({1: 0.001, 4: 0.004})
    ask(simulation, "one two three ", open_text=True)
    simulation.finish()
    simulation.worker.costs = Costs(step=0.004)
    assert simulation.engine.loop.scheduler.lateness.late
    late = ask(simulation, "x" * 60)
    simulation.finish()
    assert late.stream.end is not None
    assert late.stream.end.reason == "finished"


@pytest.mark.parametrize("beside", [True, False])
def test_a_stream_whose_audio_is_made_beside_the_steps_keeps_its_room_until_that_is_planned(beside):
    """The codec would have more streams than it makes in real time, each with all its frames."""
    costs = Costs(step=0.01, row=0.03, decoded_frame=0.015)
    simulation = Simulation(costs, max_num_seqs=2, pipeline_depth=0)
    simulation.worker.codec_beside = beside
    simulation.engine.loop.scheduler.step_cost.decode.anchor({1: 0.04, 2: 0.07})
    first, second = ask(simulation, "a" * 60, seed=1), ask(simulation, "b" * 60, seed=2)
    simulation.turn()
    slot = run_of(first).slot
    while run_of(second) is None:
        simulation.turn()
    [plan] = [each for each in simulation.worker.plans if each.admit][-1:]
    rest = [piece for piece in plan.codec_decode if piece.slot == slot and piece.start]
    assert bool(rest) != beside


def test_a_slow_host_counts_as_a_slow_step():
    simulation = Simulation(Costs(step=0.005), max_num_seqs=64)
    launch = simulation.worker.launch

    def dawdle(plan: object) -> object:
        simulation.clock.sleep(0.05)  # on the host
        return launch(plan)

    simulation.worker.launch = dawdle
    simulation.play(poisson(8, 100, random.Random(1)))
    assert simulation.engine.loop.scheduler.step_cost.seconds(1) > 0.04
