"""The rules of priority and batch size, and the estimates of step costs."""

from __future__ import annotations

import random

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from engine import EngineSettings, Preset, SpeechRequest
from engine.requests.sequence import Attempt
from engine.scheduler.batch_planner import plan_codec_decode
from engine.scheduler.policy import (
    SHORT_STEPS,
    TIGHT,
    Pace,
    affordable_prefill_rows,
    by_urgency,
    is_awaited,
    next_chunk_size,
    realtime_capacity,
    select_decodes,
)
from engine.scheduler.step_cost import StepCost
from engine.types import FRAME_SECONDS
from tests.support.simulation import Simulation

SETTINGS = EngineSettings()


def attempts(count: int, live: bool = True, heard: bool = True) -> list[Attempt]:
    simulation = Simulation(max_num_seqs=count, pipeline_depth=0, file_share=1.0)
    for _ in range(count):
        simulation.ask(SpeechRequest("words " * 20, Preset("ryan"), live=live))
    scheduler = simulation.engine.loop.scheduler
    while len(scheduler.attempts) < count or (
        heard and not all(map(_spoken, scheduler.attempts.values()))
    ):
        simulation.turn()
    return list(scheduler.attempts.values())


def _spoken(run: Attempt) -> bool:
    """A stream whose listener has audio, or a file that has some."""
    return not run.before_first_chunk or bool(run.held_chunks)


@given(
    lead=st.floats(0, 60),
    reserve=st.sampled_from([0.0, 0.5, 1.5]),
    step=st.floats(0.001, 0.5),
    schedule_index=st.integers(0, len(SETTINGS.chunk_schedule) - 1),
)
@settings(deadline=None)
def test_chunks_climb_one_rung_then_two_and_never_past_the_lead(
    lead, reserve, step, schedule_index
):
    [run] = attempts(1)
    run.planned_codec_frames = run.decoded_frames = 1
    run.schedule_index = schedule_index
    size = next_chunk_size(run, lead + reserve, reserve, Pace(step), SETTINGS)
    assert size in SETTINGS.chunk_schedule
    assert SETTINGS.chunk_schedule.index(size) <= schedule_index + (2 if schedule_index else 1)
    assert size == SETTINGS.chunk_schedule[0] or (size * step * SETTINGS.lead_factor <= lead + 1e-9)


@given(
    lead=st.floats(0, 4),
    step=st.floats(0.02, 0.078),
    latest=st.floats(0, 0.4),
    made=st.integers(1, 8),
)
@settings(deadline=None)
def test_near_real_time_a_chunk_grows_while_the_lead_covers_what_is_missing(
    lead, step, latest, made
):
    """Whatever is in reserve: small chunks would keep the lead from coming back."""
    [run] = attempts(1)
    run.planned_codec_frames = run.decoded_frames = len(run.codes) - made
    run.schedule_index = len(SETTINGS.chunk_schedule) - 1
    pace = Pace(step, alone=0.07, latest=latest)
    size = next_chunk_size(run, lead, 1.5, pace, SETTINGS)
    seconds = max(step, latest) * SETTINGS.lead_factor
    ready = run.undecoded_frames
    larger = [each for each in SETTINGS.chunk_schedule if each > size]
    assert all(max(1, each - ready) * seconds > lead for each in larger)
    assert size == SETTINGS.chunk_schedule[0] or max(1, size - ready) * seconds <= lead


@pytest.mark.parametrize("step", [0.03, 0.2])
def test_a_machine_slower_than_real_time_decodes_the_largest_chunks(step):
    """Where the lead is used up: small ones cost more a frame, and no size keeps it."""
    cost = StepCost()
    for _ in range(10):
        cost.observe(1, 0, step)
    [run] = attempts(1)
    run.planned_codec_frames = run.decoded_frames = run.schedule_index = 1
    pace = Pace(step, cost.decode.expected(1), cost.latest)
    assert pace.slow == (step > FRAME_SECONDS)
    size = next_chunk_size(run, step, 0.0, pace, SETTINGS)
    assert size == SETTINGS.chunk_schedule[-1 if pace.slow else 0]
    run.sequence.playback.began, run.planned_codec_frames = None, 0
    first = next_chunk_size(run, 0.0, 0.0, pace, SETTINGS)
    assert (first == SETTINGS.chunk_schedule[-1]) == pace.slow


def test_the_first_chunk_of_a_texts_next_group_does_not_wait_for_others():
    """A stream that plays already and may be running out of audio."""
    [run] = attempts(1)
    run.planned_codec_frames, run.schedule_index = 0, -1
    assert next_chunk_size(run, 0.05, 0.0, Pace(0.09), SETTINGS) == SETTINGS.chunk_schedule[0]


@given(step=st.floats(0.001, 0.3))
@settings(deadline=None, max_examples=30)
def test_a_first_chunk_lasts_until_the_second_or_near_real_time_until_the_third(step):
    [run] = attempts(1)
    run.planned_codec_frames, run.sequence.playback.began = 0, None
    size = next_chunk_size(run, 0.0, 0.0, Pace(step), SETTINGS)
    needed = step * SETTINGS.lead_factor * (2 if step > TIGHT * FRAME_SECONDS else 1)
    assert size * FRAME_SECONDS >= min(needed, SETTINGS.chunk_schedule[-1] * FRAME_SECONDS)
    smaller = [each for each in SETTINGS.chunk_schedule if each < size]
    assert not smaller or smaller[-1] * FRAME_SECONDS < needed


@given(step=st.floats(0.001, 0.06), lead=st.floats(0, 4))
@settings(deadline=None, max_examples=60)
def test_audio_that_follows_its_frames_is_waited_for_with_audio(step, lead):
    """A chunk is heard a step later than its frames are there."""
    [run] = attempts(1)
    run.planned_codec_frames = run.decoded_frames = run.schedule_index = 2
    pace = Pace(step, lag=step)
    size = next_chunk_size(run, lead, 0.0, pace, SETTINGS)
    assert size == next_chunk_size(run, lead - step, 0.0, Pace(step), SETTINGS)
    run.planned_codec_frames, run.sequence.playback.began = 0, None
    size = next_chunk_size(run, 0.0, 0.0, pace, SETTINGS)
    steps = 2 if step > TIGHT * FRAME_SECONDS else 1
    assert size * FRAME_SECONDS >= (steps * SETTINGS.lead_factor + 1) * step


@pytest.mark.parametrize(("lag", "most"), [(0.0, 48), (0.03, 24)])
def test_a_step_whose_audio_the_next_one_waits_for_decodes_what_it_generates(lag, most):
    rows = 24
    runs = attempts(rows)
    for run in runs:
        run.planned_codec_frames = run.decoded_frames = len(run.codes) - 2
        run.schedule_index = len(SETTINGS.chunk_schedule) - 1
    order = by_urgency(runs, SETTINGS, 1e3)  # all leads are used up
    pieces = plan_codec_decode(order, rows, Pace(0.03, lag=lag), 0.0, SETTINGS)
    assert sum(piece.stop - piece.start for piece in pieces) == most


@pytest.mark.parametrize("live", [True, False])
@pytest.mark.parametrize(("frame", "most"), [(0.0, 12), (0.006, 12), (0.016, 4), (0.1, 1)])
def test_a_chunk_beside_the_steps_takes_no_longer_than_a_frame_plays(live, frame, most):
    """Another's first chunk would wait for it. Nothing is left over of what ends."""
    [run] = attempts(1, live=live)
    run.planned_codec_frames = run.decoded_frames = len(run.codes) - 20
    run.schedule_index = len(SETTINGS.chunk_schedule) - 1
    for total in (None, len(run.codes)):
        run.total_frames = total
        order = [(60.0, run)]
        pace = Pace(0.01, lag=0.01, frame=frame)
        [piece] = plan_codec_decode(order, 1, pace, 0.0, SETTINGS)
        assert piece.stop - piece.start == most


def test_a_chunk_beside_the_steps_takes_its_time_of_the_lead():
    [run] = attempts(1)
    run.planned_codec_frames = run.decoded_frames = run.schedule_index = 2
    lead = 0.01 + 4 * 2 * 0.01  # enough for four frames that need nothing else
    assert next_chunk_size(run, lead, 0.0, Pace(0.01, lag=0.01), SETTINGS) == 4
    assert next_chunk_size(run, lead, 0.0, Pace(0.01, lag=0.01, frame=0.009), SETTINGS) == 2


@pytest.mark.parametrize(("frame", "first"), [(0.0, 2), (0.008, 1), (0.06, 2)])
def test_a_first_chunk_need_not_last_until_audio_that_is_waited_for(frame, first):
    """Steps of 30 ms, after each of which audio is another one late, unless there is the time for
    steps that wait for it."""
    [run] = attempts(1)
    run.planned_codec_frames, run.sequence.playback.began = 0, None
    assert next_chunk_size(run, 0.0, 0.0, Pace(0.03, lag=0.03, frame=frame), SETTINGS) == first


@pytest.mark.parametrize(
    ("start", "lead", "pace", "awaited"),
    [
        (0, -1.0, Pace(0.02), True),
        (0, -1.0, Pace(0.02, lag=0.02, frame=0.01, rows=4), True),
        (0, -1.0, Pace(0.06, lag=0.06, frame=0.01, rows=4), False),  # others would be late
        (0, -1.0, Pace(0.06, lag=0.06, frame=0.05), True),  # there are none
        (3, 0.05, Pace(0.02, lag=0.02, frame=0.01, rows=4), True),
        (3, 0.07, Pace(0.02, lag=0.02, frame=0.01, rows=4), False),  # heard after the next step
        (3, 0.05, Pace(0.06, lag=0.06, frame=0.01, rows=4), False),
        (3, 0.05, Pace(0.02), False),  # made by the step itself
    ],
)
def test_a_step_waits_for_audio_that_a_listener_needs(start, lead, pace, awaited):
    assert is_awaited(start, lead, 2, pace) == awaited


def test_chunks_that_are_waited_for_come_alone():
    soon, later = attempts(2)
    for run in (soon, later):
        run.planned_frames = 9
        run.planned_codec_frames = run.decoded_frames = 8
    pace = Pace(0.02, lag=0.02, frame=0.01, rows=2)
    planned = plan_codec_decode([(0.01, soon), (0.1, later)], 2, pace, 0.0, SETTINGS)
    assert [(piece.slot, piece.awaited) for piece in planned] == [(soon.slot, True)]
    planned = plan_codec_decode([(0.1, soon), (0.1, later)], 2, pace, 0.0, SETTINGS)
    assert [piece.slot for piece in planned] == [soon.slot, later.slot]


def test_first_chunks_leave_room_beside_the_steps_to_who_is_short_of_audio():
    short, new, ample = attempts(3)
    for run in (short, ample):
        run.planned_frames = 9
        run.planned_codec_frames = run.decoded_frames = 8
    new.planned_codec_frames, new.sequence.playback.began = 0, None
    lead = SHORT_STEPS * 0.05
    order = [(-1.0, new), (lead - 0.01, short), (lead + 0.01, ample)]
    for lag, first in ((0.0, new), (0.05, short)):
        pieces = plan_codec_decode(order, 3, Pace(0.05, lag=lag, frame=lag / 5), 0.0, SETTINGS)
        assert pieces[0].slot == first.slot


def test_audio_in_the_codec_beside_a_step_is_no_lead_for_its_prompts():
    """It is heard after the step."""
    [run] = attempts(1)
    run.planned_codec_frames = run.decoded_frames + 10
    step_cost = StepCost()
    step_cost.observe(1, 0, 0.01)
    step_cost.prefill.observe(100, 0.1)
    rows = [
        affordable_prefill_rows([(1.0, run)], 512, step_cost, SETTINGS, follows)
        for follows in (False, True)
    ]
    assert rows[0] == pytest.approx(490, abs=2)
    assert rows[1] == pytest.approx(90, abs=2)


def test_the_unheard_come_first_then_the_shortest_lead_then_files():
    streams, files = attempts(3), attempts(2, live=False)
    now = 50.0
    for run, lead in zip(streams, (1.5, 0.2, 9.0), strict=True):
        run.sequence.playback._until = now + lead
        run.decoded_frames = run.planned_codec_frames
    for run in files:
        run.planned_at = now
    [new] = attempts(1)
    new.sequence.playback.began, new.planned_codec_frames = None, 0
    order = [run for _, run in by_urgency([*files, *streams, new], SETTINGS, now)]
    assert order[:3] == [new, streams[1], streams[0]]
    assert set(order[3:5]) == set(files)
    assert order[5] is streams[2]


@given(
    leads=st.lists(st.floats(0, 20), min_size=1, max_size=12),
    waits=st.lists(st.floats(0, 5), max_size=6),
    cost=st.floats(0.001, 0.2),
)
@settings(deadline=None, max_examples=60)
def test_whoever_is_short_is_stepped_and_nobody_waits_for_ever(leads, waits, cost):
    now, step_cost = 100.0, StepCost()
    for rows in range(1, 9):
        step_cost.observe(rows, 0, cost * rows)
    streams, files = attempts(len(leads)), attempts(len(waits), live=False) if waits else []
    for run, lead in zip(streams, leads, strict=True):
        run.sequence.playback._until, run.decoded_frames = now + lead, run.planned_codec_frames
    for run, wait in zip(files, waits, strict=True):
        run.planned_at = now - wait
    order = by_urgency([*files, *streams], SETTINGS, now)
    chosen = [run for _, run in select_decodes(order, step_cost, SETTINGS)]
    short = [run for run, lead in zip(streams, leads, strict=True) if lead < SETTINGS.ample_lead]
    assert all(run in chosen for run in short)
    assert chosen
    fitting = realtime_capacity(step_cost, SETTINGS, len(order))
    most = max(fitting, len(short) + 1) if short else len(order)
    assert len(chosen) <= most
    if waits and max(waits) > SETTINGS.file_pause:
        others = [run for run in chosen if run not in short]
        assert others


# Learning how long steps take.


@given(fixed=st.floats(0.001, 0.05), each=st.floats(0.0001, 0.01), seed=st.integers(0, 99))
@settings(deadline=None, max_examples=50)
def test_pace_finds_the_line(fixed, each, seed):
    step_cost, source = StepCost(), random.Random(seed)
    for _ in range(300):
        rows = source.randint(1, 64)
        step_cost.observe(rows, 0, fixed + each * rows)
    for rows in (1, 10, 64):
        assert step_cost.seconds(rows) == pytest.approx(fixed + each * rows, rel=0.1, abs=0.002)
    within = step_cost.rows_within(step_cost.seconds(20) + 1e-9, 64)
    assert within >= 20


@given(st.floats(0.001, 0.02), st.floats(1e-5, 1e-3), st.integers(1, 500))
@settings(deadline=None, max_examples=30)
def test_a_timed_device_is_not_forgotten_after_a_time_alone(fixed, each, steps):
    """Where nothing was timed, one row count alone says the same of every row more."""
    timed, untimed = StepCost(), StepCost()
    timed.decode.anchor({rows: fixed + each * rows for rows in (1, 8, 64)})
    for step_cost in (timed, untimed):
        for _ in range(steps):
            step_cost.observe(1, 0, fixed + each)
    assert timed.seconds(32) == pytest.approx(fixed + each * 32, rel=0.01)
    assert untimed.seconds(32) > 0.9 * 32 * (fixed + each)
    assert not StepCost().decode


def test_a_timed_device_is_known_before_its_first_step():
    step_cost = StepCost()
    assert step_cost.seconds(1) == 0.0
    step_cost.decode.anchor({1: 0.05, 4: 0.08})
    assert step_cost.seconds(1) == pytest.approx(0.05, rel=0.01)
    assert not step_cost.decode


def test_the_slower_of_steps_and_the_codec_beside_them_counts():
    step_cost = StepCost()
    for _ in range(30):
        step_cost.observe(1, 0, 0.01)
    assert step_cost.rows_within(0.064, 64) == 6
    assert step_cost.codec_frame == 0.0
    for _ in range(30):
        step_cost.observe_codec(1, 4, 0.08)
        step_cost.observe_codec(2, 4, 0.08)
        step_cost.observe_codec(0, 4, 0.001)  # on cores that a step would have
    assert step_cost.codec_frame == pytest.approx(0.02, rel=0.01)
    assert step_cost.seconds(1) == step_cost.alone == pytest.approx(0.02, rel=0.01)
    assert step_cost.seconds(3) == pytest.approx(0.06, rel=0.01)
    assert step_cost.rows_within(0.064, 64) == 3
    assert step_cost.expected(0.064, 64) == (3, pytest.approx(0.06, rel=0.01))


def test_pace_forgets_a_bad_first_step():
    step_cost = StepCost()
    step_cost.observe(1, 0, 5.0)  # something was compiled
    assert step_cost.rows_within(0.064, 64) == 1
    for _ in range(120):
        step_cost.observe(1, 0, 0.01)
    assert step_cost.rows_within(0.064, 64) >= 4


def test_pace_is_not_fooled_by_one_slow_step():
    step_cost = StepCost()
    for rows in (1, 2, 4, 8) * 20:
        step_cost.observe(rows, 0, 0.01 + 0.001 * rows)
    before = step_cost.rows_within(0.064, 64)
    step_cost.observe(8, 0, 30.0)
    assert step_cost.rows_within(0.064, 64) >= before * 0.7


def test_at_least_one_row_is_always_affordable():
    step_cost = StepCost()
    assert step_cost.rows_within(0.064, 64) == 1
    step_cost.observe(1, 0, 100.0)
    assert step_cost.rows_within(0.064, 64) == 1


@given(
    fixed=st.floats(0.0005, 0.05),
    each=st.floats(0.00001, 0.005),
    sizes=st.lists(st.integers(1, 500), min_size=8, max_size=30, unique=True),
    spare=st.floats(0, 1),
)
@example(fixed=0.05, each=0.00001, sizes=[500, *range(1, 10)], spare=0.0)
def test_prompts_are_learnt_as_a_pass_and_its_rows(fixed, each, sizes, spare):
    step_cost = StepCost()
    for rows in sizes:
        step_cost.observe(0, rows, fixed + each * rows)
    fitting = step_cost.prefill.within(spare, 512)
    assert 0 <= fitting <= 512
    for rows in range(1, fitting + 1, 50):
        assert step_cost.prefill.seconds(rows) <= spare
    if fitting < 512:
        assert step_cost.prefill.seconds(fitting + 1) > spare
    usual = round(sum(sizes) / len(sizes))
    assert step_cost.prefill.seconds(usual) == pytest.approx(fixed + each * usual, rel=0.3)
