"""The rules of who goes first and how much at once, and what is learnt about steps."""

from __future__ import annotations

import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine import EngineSettings, Preset, SpeechRequest
from engine.requests.sequence import Run
from engine.scheduler.policy import chunk_frames, ranked, real_time_rows, rows_to_step
from engine.scheduler.step_cost import StepCost
from engine.types import FRAME_SECONDS
from tests.support.simulation import Simulation

SETTINGS = EngineSettings()


def runs(count: int, live: bool = True, heard: bool = True) -> list[Run]:
    theatre = Simulation(max_num_seqs=count, pipeline_depth=0, file_share=1.0)
    for _ in range(count):
        theatre.ask(SpeechRequest("words " * 20, Preset("ryan"), live=live))
    scheduler = theatre.engine.loop.scheduler
    while len(scheduler.runs) < count or (heard and not all(map(_spoken, scheduler.runs.values()))):
        theatre.turn()
    return list(scheduler.runs.values())


def _spoken(run: Run) -> bool:
    """Somebody has heard it, or it is a file with sound of its own."""
    return not run.unheard or bool(run.held)


@given(
    lead=st.floats(0, 60),
    step=st.floats(0.001, 0.5),
    rung=st.integers(0, len(SETTINGS.chunk_schedule) - 1),
)
@settings(deadline=None)
def test_chunks_climb_one_rung_then_two_and_never_past_the_lead(lead, step, rung):
    [run] = runs(1)
    run.sent = run.decoded = 1
    run.rung = rung
    size = chunk_frames(run, lead, step, SETTINGS)
    assert size in SETTINGS.chunk_schedule
    assert SETTINGS.chunk_schedule.index(size) <= rung + (2 if rung else 1)
    assert size == SETTINGS.chunk_schedule[0] or size * step * SETTINGS.lead_factor <= lead


@given(step=st.floats(0.001, 0.3))
@settings(deadline=None, max_examples=30)
def test_a_first_chunk_lasts_until_the_second(step):
    [run] = runs(1)
    run.sent = 0
    size = chunk_frames(run, 0.0, step, SETTINGS)
    assert size * FRAME_SECONDS >= step * SETTINGS.lead_factor
    smaller = [each for each in SETTINGS.chunk_schedule if each < size]
    assert not smaller or smaller[-1] * FRAME_SECONDS < step * SETTINGS.lead_factor


def test_the_unheard_come_first_then_the_shortest_lead_then_files():
    streams, files = runs(3), runs(2, live=False)
    now = 50.0
    for run, lead in zip(streams, (1.5, 0.2, 9.0), strict=True):
        run.sequence.playback._until = now + lead
        run.decoded = run.sent
    for run in files:
        run.stepped_at = now
    [new] = runs(1)
    new.sequence.playback.began, new.sent = None, 0
    order = [run for _, run in ranked([*files, *streams, new], SETTINGS, now)]
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
    now, pace = 100.0, StepCost()
    for rows in range(1, 9):
        pace.observe(rows, 0, cost * rows)
    streams, files = runs(len(leads)), runs(len(waits), live=False) if waits else []
    for run, lead in zip(streams, leads, strict=True):
        run.sequence.playback._until, run.decoded = now + lead, run.sent
    for run, wait in zip(files, waits, strict=True):
        run.stepped_at = now - wait
    order = ranked([*files, *streams], SETTINGS, now)
    chosen = [run for _, run in rows_to_step(order, pace, SETTINGS)]
    short = [run for run, lead in zip(streams, leads, strict=True) if lead < SETTINGS.ample_lead]
    assert all(run in chosen for run in short)
    assert chosen
    fitting = real_time_rows(pace, SETTINGS, len(order))
    most = max(fitting, len(short) + 1) if short else len(order)
    assert len(chosen) <= most
    if waits and max(waits) > SETTINGS.file_pause:
        others = [run for run in chosen if run not in short]
        assert others


# Learning how long steps take.


@given(fixed=st.floats(0.001, 0.05), each=st.floats(0.0001, 0.01), seed=st.integers(0, 99))
@settings(deadline=None, max_examples=50)
def test_pace_finds_the_line(fixed, each, seed):
    pace, source = StepCost(), random.Random(seed)
    for _ in range(300):
        rows = source.randint(1, 64)
        pace.observe(rows, 0, fixed + each * rows)
    for rows in (1, 10, 64):
        assert pace.seconds(rows) == pytest.approx(fixed + each * rows, rel=0.1, abs=0.002)
    within = pace.rows_within(pace.seconds(20) + 1e-9, 64)
    assert within >= 20


@given(st.floats(0.001, 0.02), st.floats(1e-5, 1e-3), st.integers(1, 500))
@settings(deadline=None, max_examples=30)
def test_a_timed_device_is_not_forgotten_after_a_time_alone(fixed, each, steps):
    """Where nothing was timed, one row count alone says the same of every row more."""
    timed, untimed = StepCost(), StepCost()
    timed.frames.anchor({rows: fixed + each * rows for rows in (1, 8, 64)})
    for pace in (timed, untimed):
        for _ in range(steps):
            pace.observe(1, 0, fixed + each)
    assert timed.seconds(32) == pytest.approx(fixed + each * 32, rel=0.01)
    assert untimed.seconds(32) > 0.9 * 32 * (fixed + each)
    assert not StepCost().frames


def test_pace_forgets_a_bad_first_step():
    pace = StepCost()
    pace.observe(1, 0, 5.0)  # something was compiled
    assert pace.rows_within(0.064, 64) == 1
    for _ in range(120):
        pace.observe(1, 0, 0.01)
    assert pace.rows_within(0.064, 64) >= 4


def test_pace_is_not_fooled_by_one_slow_step():
    pace = StepCost()
    for rows in (1, 2, 4, 8) * 20:
        pace.observe(rows, 0, 0.01 + 0.001 * rows)
    before = pace.rows_within(0.064, 64)
    pace.observe(8, 0, 30.0)
    assert pace.rows_within(0.064, 64) >= before * 0.7


def test_at_least_one_row_is_always_affordable():
    pace = StepCost()
    assert pace.rows_within(0.064, 64) == 1
    pace.observe(1, 0, 100.0)
    assert pace.rows_within(0.064, 64) == 1


@given(
    fixed=st.floats(0.0005, 0.05),
    each=st.floats(0.00001, 0.005),
    sizes=st.lists(st.integers(1, 500), min_size=8, max_size=30, unique=True),
    spare=st.floats(0, 1),
)
def test_prompts_are_learnt_as_a_pass_and_its_rows(fixed, each, sizes, spare):
    pace = StepCost()
    for rows in sizes:
        pace.observe(0, rows, fixed + each * rows)
    fitting = pace.prompts.within(spare, 512)
    assert 0 <= fitting <= 512
    for rows in range(1, fitting + 1, 50):
        assert pace.prompts.seconds(rows) <= spare
    if fitting < 512:
        assert pace.prompts.seconds(fitting + 1) > spare
    usual = round(sum(sizes) / len(sizes))
    assert pace.prompts.seconds(usual) == pytest.approx(fixed + each * usual, rel=0.3)
