"""What a listener gets while a script is spoken: pieces, heartbeats, the time left."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from engine import EngineSettings, Pcm
from engine.testing import Costs, FakeEngine
from studio.scripts.line_audio import LineAudio
from studio.scripts.rendering.batch_synthesis import BatchSynthesis
from studio.scripts.rendering.render_stream import ScriptStream
from studio.takes.live_take import LiveTake
from tests.support.script_makers import LINES, Unruly, heard, jobs_of, run


@pytest.fixture
def engine() -> Iterator[FakeEngine]:
    with FakeEngine() as fake:
        yield fake


def test_only_the_lines_asked_for_are_spoken(engine: FakeEngine, tmp_path: Path) -> None:
    jobs, sounds = jobs_of(LINES), LineAudio(tmp_path)

    async def work() -> None:
        async with BatchSynthesis(engine, jobs, sounds, only={2, 5}) as rendering:
            parts = await heard(rendering)
            assert [line for line, pcm in parts if np.any(pcm)] == [2, 5]

    run(work())
    assert [job.line for job in jobs if job.key in sounds] == [2, 5]


def test_a_second_listener_joins_in_the_middle(engine: FakeEngine, tmp_path: Path) -> None:
    jobs, sounds = jobs_of(LINES), LineAudio(tmp_path)

    async def work() -> None:
        async with BatchSynthesis(engine, jobs, sounds) as rendering:
            first, second = await asyncio.gather(heard(rendering), heard(rendering, start=7))
        assert [line for line, _ in second] == list(range(7, 12))
        for (_, one), (_, other) in zip(first[7:], second, strict=True):
            np.testing.assert_array_equal(one, other)

    run(work())


def test_a_listener_who_waits_gets_a_heartbeat_and_status_is_told(tmp_path: Path) -> None:
    with FakeEngine(settings=EngineSettings(max_num_seqs=1), costs=Costs(step=0.02)) as engine:

        async def work() -> None:
            async with BatchSynthesis(
                engine, jobs_of(LINES), LineAudio(tmp_path), at_once=2
            ) as rendering:
                beats = 0
                async for piece in rendering.play(heartbeat=0.01):
                    beats += len(piece.pcm) == 0
                    if beats >= 2:
                        break
                assert rendering.status(0) == "speaking"
                assert rendering.status(11) == "waiting"

        run(work())


def test_the_time_left_is_told_and_falls(tmp_path: Path) -> None:
    with FakeEngine(settings=EngineSettings(max_num_seqs=2), costs=Costs(step=0.001)) as engine:

        async def work() -> list[float]:
            left: list[float] = []
            async with BatchSynthesis(
                engine, jobs_of(LINES), LineAudio(tmp_path), at_once=2, listening=False
            ) as rendering:
                assert rendering.progress().seconds_left is None
                while not rendering.over:
                    await rendering.changed()
                    progress = rendering.progress()
                    if progress.seconds_left is not None:
                        left.append(progress.seconds_left)
                assert (progress.speed or 0) > 1
            return left

        left = run(work())
    assert left[-1] == 0.0
    assert left[0] > left[-1]


def test_a_script_plays_like_any_other_stream(engine: FakeEngine, tmp_path: Path) -> None:
    jobs, sounds = jobs_of(LINES), LineAudio(tmp_path)

    async def work() -> tuple[LiveTake, list[Pcm]]:
        async with BatchSynthesis(engine, jobs, sounds) as rendering:
            take = LiveTake(ScriptStream(rendering, seed=7, lead=3600))
            parts = [pcm for _, pcm in await heard(rendering)]
            while not take.ended:
                await take.change(0.1)
        return take, parts

    take, parts = run(work())
    np.testing.assert_array_equal(take.pcm(), np.concatenate(parts))
    assert take.end
    assert (take.end.reason, take.end.seed, take.failure) == ("finished", 7, "")


def test_stopping_the_stream_stops_the_rendering(tmp_path: Path) -> None:
    with FakeEngine(settings=EngineSettings(max_num_seqs=2), costs=Costs(step=0.01)) as engine:

        async def work() -> None:
            async with BatchSynthesis(
                engine, jobs_of(LINES), LineAudio(tmp_path), at_once=4
            ) as rendering:
                take = LiveTake(ScriptStream(rendering))
                while not take.made:
                    await take.change(1)
                take.cancel()
                while not take.ended:
                    await take.change(1)
                assert rendering.over
                assert take.end
                assert take.end.reason == "cancelled"
            while engine.stats().waiting or engine.stats().running:
                await asyncio.sleep(0.01)

        run(work())


def test_a_script_nothing_of_which_can_be_spoken_says_why(tmp_path: Path) -> None:
    engine = Unruly(1, lambda _: "refused")

    async def work() -> LiveTake:
        async with BatchSynthesis(
            engine, jobs_of("One line, and no other."), LineAudio(tmp_path)
        ) as each:
            take = LiveTake(ScriptStream(each))
            while not take.ended:
                await take.change(1)
        return take

    end = run(work()).end
    assert end
    assert end.reason == "error"
    assert "cannot speak this text" in str(end.error)
