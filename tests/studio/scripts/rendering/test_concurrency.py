"""Lines beside the one that is heard next: none without a lead, all with plenty."""

from __future__ import annotations

from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from engine import SAMPLE_RATE
from engine.testing import FakeEngine
from studio.scripts.line_audio import LineAudio
from studio.scripts.rendering.batch_synthesis import BatchSynthesis
from studio.scripts.rendering.concurrency import PLENTY, STEP, Pace
from studio.scripts.tracks import Track
from tests.support.script_makers import LINES, Unruly, jobs_of, run

seconds = st.floats(0, 60)


def paced(made: list[tuple[float, bool]], at_once: int, elapsed: float) -> Pace:
    """A pace that heard its first sound `elapsed` seconds ago; `made`: seconds, is it ended."""
    now = [0.0]
    tracks = [
        Track(job=None, samples=round(each * SAMPLE_RATE), ended=ended) for each, ended in made
    ]  # type: ignore[arg-type]
    pace = Pace(tracks, at_once, lambda: now[0])
    pace.lead()
    now[0] = elapsed
    return pace


@given(st.lists(st.tuples(seconds, st.booleans()), max_size=6), st.integers(1, 64), seconds)
def test_at_least_one_and_never_more_than_may_be(
    made: list[tuple[float, bool]], at_once: int, elapsed: float
) -> None:
    assert 1 <= paced(made, at_once, elapsed).allowed() <= at_once


@given(seconds, seconds, st.integers(1, 64), seconds)
def test_more_lead_allows_no_less(one: float, more: float, at_once: int, elapsed: float) -> None:
    less = paced([(one, False)], at_once, elapsed).allowed()
    assert less <= paced([(one + more, False)], at_once, elapsed).allowed()


def test_only_what_can_be_heard_without_a_gap_counts() -> None:
    assert paced([(3.0, True), (2.0, False), (50.0, True)], 8, 1.0).lead() == 4.0
    assert paced([(0.0, False), (50.0, True)], 8, 1.0).lead() == 0.0


def test_plenty_holds_nothing_back() -> None:
    assert paced([(PLENTY, True)], 64, 0.0).allowed() == 64
    assert paced([(STEP * 2.5, True)], 64, 0.0).allowed() == 3


def test_the_first_line_is_made_alone_and_all_are_made(tmp_path: Path) -> None:
    async def work(engine: Unruly, listening: bool) -> int:
        sounds = LineAudio(tmp_path / str(listening))
        jobs = jobs_of(LINES)
        async with BatchSynthesis(
            engine, jobs, sounds, at_once=6, listening=listening
        ) as rendering:
            assert (await rendering.wait()).done == len(jobs)
        return engine.most

    assert run(work(Unruly(1), listening=True)) == 1  # its lines are shorter than a lead
    assert run(work(Unruly(1), listening=False)) == 6


def test_a_fast_engine_is_soon_used_in_full(tmp_path: Path) -> None:
    async def work() -> None:
        jobs = jobs_of("\n\n".join(f"Here stands sentence number {n}." for n in range(40)))
        with FakeEngine() as engine:
            async with BatchSynthesis(engine, jobs, LineAudio(tmp_path), at_once=8) as rendering:
                most = 0
                while not rendering.over:
                    await rendering.changed()
                    statuses = [rendering.status(job.line) for job in jobs]
                    most = max(most, statuses.count("speaking"))
        assert most == 8

    run(work())
