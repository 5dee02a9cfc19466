"""A script spoken as one batch: heard in order, kept as it is done, resumed where it stopped."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine import (
    SAMPLE_RATE,
    EngineClosed,
    EngineSettings,
    Message,
    Pcm,
    Preset,
    SpeechEngine,
    SpeechRequest,
)
from engine.testing import Costs, FakeEngine
from studio.scripts import edits
from studio.scripts.line_audio import LineAudio, silence
from studio.scripts.line_requests import Delivery, Job, plan
from studio.scripts.pauses import Pauses
from studio.scripts.rendering.batch_synthesis import BatchSynthesis
from studio.scripts.text.typed import script_of_text
from studio.scripts.tracks import status_of
from studio.time_stretch import stretch
from tests.support.engines.kinds import KINDS
from tests.support.script_makers import LINES, Unruly, heard, jobs_of, run, spoken_alone


@pytest.fixture
def engine() -> Iterator[FakeEngine]:
    with FakeEngine() as fake:
        yield fake


def test_what_is_heard_is_every_line_in_order_with_its_pause(
    engine: FakeEngine, tmp_path: Path
) -> None:
    jobs = jobs_of()
    sounds = LineAudio(tmp_path)

    async def work() -> list[tuple[int, Pcm]]:
        async with BatchSynthesis(engine, jobs, sounds, at_once=3) as rendering:
            parts = await heard(rendering)
            progress = await rendering.wait()
        assert (progress.done, progress.failed, progress.seconds_left) == (len(jobs), 0, 0.0)
        assert {rendering.status(job.line) for job in jobs} == {"done"}
        return parts

    parts = run(work())
    assert [line for line, _ in parts] == [job.line for job in jobs if job.key or job.pause]
    for line, pcm in parts:
        job = next(job for job in jobs if job.line == line)
        expected = np.concatenate([spoken_alone(engine, job), silence(job.pause)])
        np.testing.assert_array_equal(pcm, expected)
        if job.request:
            np.testing.assert_array_equal(sounds.read(job.key), spoken_alone(engine, job))


@settings(max_examples=15, deadline=None)
@given(st.integers(0, 2**32), st.integers(1, 9))
def test_the_order_is_kept_whatever_finishes_first(
    tmp_path_factory: pytest.TempPathFactory, seed: int, at_once: int
) -> None:
    engine = Unruly(seed, lambda request: "busy", samples=SAMPLE_RATE)
    jobs = jobs_of(LINES, pauses=Pauses(paragraph=0))
    sounds = LineAudio(tmp_path_factory.mktemp("sounds"))

    async def work() -> list[tuple[int, Pcm]]:
        async with BatchSynthesis(engine, jobs, sounds, at_once=at_once) as rendering:
            return await heard(rendering)

    parts = run(work())
    assert [line for line, _ in parts] == [job.line for job in jobs]
    for job, (_, pcm) in zip(jobs, parts, strict=True):
        assert job.request
        assert set(pcm.tolist()) == {len(job.request.text)}
        np.testing.assert_array_equal(pcm, sounds.read(job.key))
    assert engine.most <= at_once
    assert len(engine.asked) == len(jobs)
    assert jobs[0].request
    assert next(each for each in engine.asked if each.text == jobs[0].request.text).live


@pytest.mark.parametrize("fate", ["refused", "error", "runaway", "length", "cancelled"])
def test_a_line_that_fails_says_so_and_the_others_go_on(tmp_path: Path, fate: str) -> None:
    jobs = jobs_of(LINES)
    bad = jobs[4].key

    def fate_of(request: SpeechRequest) -> str:
        return fate if jobs[4].request and request.text == jobs[4].request.text else ""

    sounds = LineAudio(tmp_path)

    async def work() -> BatchSynthesis:
        async with BatchSynthesis(Unruly(1, fate_of), jobs, sounds) as rendering:
            await heard(rendering)
            assert (await rendering.wait()).over
        return rendering

    rendering = run(work())
    assert rendering.progress().failed == 1
    assert rendering.status(jobs[4].line) == "failed"
    assert rendering.error(jobs[4].line).endswith(".")
    assert isinstance(rendering.error(jobs[4].line), Message)  # which a page translates
    assert bad not in sounds
    assert all(job.key in sounds for job in jobs if job.key != bad)


@settings(max_examples=12, deadline=None)
@given(st.integers(0, 2**32), st.floats(0, 0.03))
def test_a_rendering_that_is_stopped_goes_on_where_it_was(
    tmp_path_factory: pytest.TempPathFactory, seed: int, after: float
) -> None:
    engine = Unruly(seed)
    jobs = jobs_of(LINES)
    folder = tmp_path_factory.mktemp("sounds")

    async def stop() -> BatchSynthesis:
        async with BatchSynthesis(engine, jobs, LineAudio(folder), at_once=3) as rendering:
            await asyncio.sleep(after)
        return rendering

    async def finish() -> None:
        async with BatchSynthesis(engine, jobs, LineAudio(folder)) as rendering:
            await rendering.wait()

    stopped = run(stop())
    assert engine.running == 0
    assert all(stopped.status(job.line) in ("done", "waiting") for job in jobs)
    done = [job for job in jobs if job.key in LineAudio(folder)]
    before = len(engine.asked)
    run(finish())
    assert len(engine.asked) - before == len(jobs) - len(done)
    assert all(status_of(job, LineAudio(folder)) == "done" for job in jobs)


def test_leaving_frees_the_engine(tmp_path: Path) -> None:
    """What is in flight on a real engine is cancelled with the rendering."""
    with FakeEngine(settings=EngineSettings(max_num_seqs=2), costs=Costs(step=0.005)) as engine:

        async def work() -> None:
            async with BatchSynthesis(engine, jobs_of(LINES), LineAudio(tmp_path)) as rendering:
                async for piece in rendering.play():
                    if len(piece.pcm):
                        return

        run(work())
        for _ in range(200):
            if not engine.stats().running and not engine.stats().waiting:
                break
            run(asyncio.sleep(0.01))
        assert engine.stats().running == 0


def test_a_redo_speaks_one_line_and_an_edit_only_its_own(
    engine: FakeEngine, tmp_path: Path
) -> None:
    script = script_of_text(LINES)
    sounds = LineAudio(tmp_path)
    voices = {"": Preset("ryan")}

    async def speak(jobs: tuple[Job, ...]) -> None:
        async with BatchSynthesis(engine, jobs, sounds) as rendering:
            await rendering.wait()

    run(speak(plan(script, voices, Delivery())))
    for changed in (
        edits.redo(script, 3, 1234),
        edits.edit(script, 3, "A line that was not there at first."),
    ):
        jobs = plan(changed, voices, Delivery())
        waiting = [job.line for job in jobs if status_of(job, sounds) == "waiting"]
        assert waiting == [3]
        run(speak(jobs))
        assert all(status_of(job, sounds) == "done" for job in jobs)
    locked = edits.lock(script, 3, plan(script, voices, Delivery())[3].key)
    jobs = plan(locked, voices, Delivery(seed=99))
    assert status_of(jobs[3], sounds) == "locked"
    assert status_of(jobs[2], sounds) == "waiting"


def test_an_engine_that_closes_ends_every_line(tmp_path: Path) -> None:
    engine = FakeEngine(settings=EngineSettings(max_num_seqs=2), costs=Costs(step=0.02))

    async def work() -> None:
        async with BatchSynthesis(
            engine, jobs_of(LINES), LineAudio(tmp_path), at_once=2
        ) as rendering:
            await asyncio.sleep(0.05)
            await asyncio.to_thread(engine.close)
            progress = await rendering.wait()
            assert progress.over
            assert "closed" in rendering.error(11)
            with pytest.raises(EngineClosed):
                engine.submit(SpeechRequest("x", Preset("ryan")))

    run(work())


def test_a_lost_or_damaged_sound_is_spoken_again(engine: FakeEngine, tmp_path: Path) -> None:
    jobs = jobs_of(LINES)

    async def speak(sounds: LineAudio) -> None:
        async with BatchSynthesis(engine, jobs, sounds) as rendering:
            await heard(rendering)

    run(speak(LineAudio(tmp_path)))
    LineAudio(tmp_path).path(jobs[0].key).write_bytes(b"not a sound")
    LineAudio(tmp_path).path(jobs[1].key).unlink()
    sounds = LineAudio(tmp_path)
    assert sounds.samples(jobs[0].key) == 0
    run(speak(sounds))
    assert all(sounds.samples(job.key) for job in jobs)


def test_same_words_same_voice_are_spoken_once(tmp_path: Path) -> None:
    engine = Unruly(3)
    jobs = jobs_of()

    async def work() -> None:
        async with BatchSynthesis(engine, jobs, LineAudio(tmp_path)) as rendering:
            parts = dict(await heard(rendering))
        np.testing.assert_array_equal(parts[jobs[0].line][:1920], parts[jobs[4].line][:1920])

    run(work())
    assert len(engine.asked) == len({job.key for job in jobs if job.key})
    assert jobs[0].key == jobs[4].key


def test_what_another_page_has_spoken_meanwhile_is_not_spoken_again(tmp_path: Path) -> None:
    engine, jobs, sounds = Unruly(5), jobs_of(LINES), LineAudio(tmp_path)

    async def work() -> None:
        first, second = (BatchSynthesis(engine, jobs, sounds) for _ in range(2))
        async with first:
            sound = await heard(first)
        async with second:
            again = await heard(second)
            assert (await second.wait()).done == len(jobs)
        for (_, one), (_, other) in zip(sound, again, strict=True):
            np.testing.assert_array_equal(one, other)

    run(work())
    assert len(engine.asked) == len(jobs)


def test_pauses_last_as_long_as_they_say() -> None:
    assert len(silence(1.5)) == 1.5 * SAMPLE_RATE


@pytest.mark.parametrize("speed", [0.5, 1.5])
def test_another_speed_is_heard_and_asks_the_engine_for_nothing_twice(
    engine: FakeEngine, tmp_path: Path, speed: float
) -> None:
    plain, paced = jobs_of(), jobs_of(speed=speed)
    assert all(one.key != other.key for one, other in zip(plain, paced, strict=True) if one.key)

    async def spoken(jobs: tuple[Job, ...], sounds: LineAudio) -> list[tuple[int, Pcm]]:
        async with BatchSynthesis(engine, jobs, sounds) as rendering:
            return await heard(rendering)

    fresh, had = LineAudio(tmp_path / "fresh"), LineAudio(tmp_path / "had")
    run(spoken(plain, had))
    before = engine.stats().audio_seconds
    both = [dict(run(spoken(paced, sounds))) for sounds in (had, fresh)]
    for natural, job in zip(plain, paced, strict=True):
        if job.key:
            wanted = stretch(had.read(natural.key), speed)
            for sounds in (had, fresh):
                np.testing.assert_array_equal(sounds.read(job.key), wanted)
            np.testing.assert_array_equal(both[0][job.line], both[1][job.line])
    made = engine.stats().audio_seconds - before
    once = sum(had.samples(key) for key in {job.key for job in plain if job.key}) / SAMPLE_RATE
    assert made == pytest.approx(once)  # for the fresh one alone


VISITORS = 5


@pytest.mark.parametrize("kind", [each for each in KINDS if each != "zerogpu"])  # 17 s
def test_lines_wait_their_turn_under_every_engine(kind: str, tmp_path: Path) -> None:
    text = "\n".join(f"Anna: This is the line with the number {number}." for number in range(12))

    async def visit(engine: SpeechEngine, number: int) -> int:
        sounds = LineAudio(tmp_path / str(number))
        async with BatchSynthesis(engine, jobs_of(text), sounds, at_once=12) as rendering:
            return (await rendering.wait()).done

    async def visits(engine: SpeechEngine) -> list[int]:
        return await asyncio.gather(*(visit(engine, number) for number in range(VISITORS)))

    with KINDS[kind](Costs(step=0.001), max_num_seqs=4, max_waiting=4) as opened:
        assert asyncio.run(visits(opened.engine)) == [12] * VISITORS


def test_lines_not_done_are_spoken_as_they_are_planned_anew(
    engine: FakeEngine, tmp_path: Path
) -> None:
    before, sounds = jobs_of(LINES), LineAudio(tmp_path)
    spoken = [job for job in before if job.request]
    now = [
        replace(job, key=f"{job.key}x", request=replace(job.request, seed=99))
        if job.request
        else job
        for job in before
    ]

    async def work() -> list[tuple[int, Pcm]]:
        parts: list[tuple[int, Pcm]] = []
        async with BatchSynthesis(engine, before, sounds, at_once=1) as rendering:
            async for piece in rendering.play(heartbeat=0.05):
                if not parts and len(piece.pcm):
                    rendering.replan(now)  # while the first line is spoken
                parts.append((piece.line, piece.pcm))
            progress = await rendering.wait()
        assert progress.done == len(now)
        return parts

    parts = run(work())
    old, *new = [job.key for job in spoken]
    assert old in sounds  # ended and kept, and made anew as well
    assert all(f"{job.key}x" in sounds for job in spoken)
    assert not any(key in sounds for key in new)
    for job in [spoken[0], *[each for each in now if each.request][1:]]:
        sound = np.concatenate([pcm for line, pcm in parts if line == job.line])
        expected = np.concatenate([spoken_alone(engine, job), silence(job.pause)])
        np.testing.assert_array_equal(sound, expected)


@pytest.mark.parametrize("listening", [False, True])
def test_no_line_begins_while_others_are_in_a_hurry_unless_it_is_awaited(
    engine: FakeEngine, tmp_path: Path, listening: bool
) -> None:
    jobs, hurry = jobs_of(LINES), [True]
    spoken = [job for job in jobs if job.request]

    async def work() -> None:
        async with BatchSynthesis(
            engine, jobs, LineAudio(tmp_path), listening=listening, yields=lambda each: hurry[0]
        ) as rendering:
            while listening and not rendering.over:  # what is heard next, and nothing besides
                stands = [rendering.status(job.line) for job in spoken]
                assert stands.count("speaking") <= 1
                await rendering.changed(0.05)
            for _ in range(0 if listening else 3):
                await rendering.changed(0.05)
                assert {rendering.status(job.line) for job in spoken} == {"waiting"}
            hurry[0] = False
            await rendering.wait()
            assert rendering.progress().done == len(jobs)

    run(work())
