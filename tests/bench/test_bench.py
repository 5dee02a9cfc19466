"""The bench measures correctly: on the fake engine its figures are known in advance."""

from __future__ import annotations

import asyncio
import json
import sys
import time
from collections.abc import AsyncIterator
from pathlib import Path

import numpy as np
import pytest
import typer
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from bench import __main__ as command
from bench.gpu_monitor import watched
from bench.in_process import InProcess
from bench.load_generator import Measured, Run, burst, closed_loop, measure, poisson
from bench.report import figures, json_line, percentile, table
from bench.workload import Job, Work
from engine import FRAME_SECONDS, Preset, SpeechRequest
from engine.testing import Costs, FakeEngine


def test_a_closed_loop_hears_every_frame() -> None:
    work = Work(("preset", "vector", "context", "cold", "design"), 5, 9)
    jobs = work.jobs(17)
    with FakeEngine(costs=Costs(step=0.01)) as engine:
        asking = InProcess(engine, work.kinds, None)
        row = figures(asyncio.run(closed_loop(asking.listen, jobs, 3)))
    assert set(asking.step_ms()) <= {1, 2, 3}
    assert all(milliseconds > 8 for milliseconds in asking.step_ms().values())
    assert (row["ok"], row["failed"]) == (17, 0)
    assert row["audio_seconds"] == pytest.approx(sum(job.frames for job in jobs) * FRAME_SECONDS)
    assert 0 < row["first_p50_ms"] <= row["first_p95_ms"] <= row["first_p99_ms"]
    assert set(row["kinds"]) == {job.kind for job in jobs}


def test_a_refused_request_is_counted_and_told() -> None:
    with FakeEngine() as engine:
        asking = InProcess(engine, ("preset",), "nobody at all")
        row = figures(asyncio.run(closed_loop(asking.listen, Work().jobs(1), 1)))
    assert (row["ok"], row["failed"]) == (0, 1)
    assert "nobody at all" in row["first_error"]


class Script:
    """A server that sends a tenth of a second of audio at set times, and counts its clients."""

    def __init__(self, *times: float, level: int = 1000) -> None:
        self.times, self.level = times, level
        self.there = self.most = 0
        self.asked: list[float] = []
        self.said: list[float] = []  # seconds after the request

    async def listen(self, job: Job) -> AsyncIterator[NDArray[np.int16]]:
        start = time.perf_counter()
        self.asked.append(start)
        self.there += 1
        self.most = max(self.most, self.there)
        for at in self.times:
            await asyncio.sleep(start + at - time.perf_counter())
            self.said.append(time.perf_counter() - start)
            yield np.full(2400, self.level, np.int16)
        self.there -= 1


def test_times_and_silences_are_what_happened() -> None:
    server = Script(0.05, 0.1, 1.2)
    heard = asyncio.run(measure(server.listen, Job("x", 1, 0)))
    first, _, last = server.said  # later than planned where the machine is busy
    assert heard.first == pytest.approx(first, abs=0.4)
    assert heard.audible == heard.first
    assert heard.total == pytest.approx(last, abs=0.4)
    assert heard.audio == pytest.approx(0.3)
    assert heard.deficit == pytest.approx(last - first - 0.2, abs=0.4)
    silent = asyncio.run(measure(Script(0.0, level=100).listen, Job("x", 1, 0)))
    assert (silent.audible, silent.error) == (0, "")
    assert asyncio.run(measure(Script().listen, Job("x", 1, 0))).error == "no sound came"


def test_a_closed_loop_has_so_many_and_a_burst_all() -> None:
    closed, once = Script(0.0, 0.01), Script(0.0, 0.01)
    asyncio.run(closed_loop(closed.listen, Work().jobs(12), 4))
    run = asyncio.run(burst(once.listen, Work().stream(), 12))
    assert (closed.most, once.most) == (4, 12)
    assert (run.load, len(run.streams)) == ("burst 12", 12)


def test_arrivals_come_by_chance_whatever_the_others_do() -> None:
    script = Script(0.0, 0.3)
    run = asyncio.run(poisson(script.listen, Work().stream(), 100, 1.0))
    gaps = np.diff(script.asked)
    assert run.load == "poisson 100"
    assert len(run.streams) == len(script.asked) == pytest.approx(100, abs=35)
    assert script.most > 15  # the answers take 0.3 s, so about 30 are there
    assert gaps.std() > gaps.mean() / 2  # by chance, not by a clock


def test_gaps_and_underruns_are_told_apart() -> None:
    smooth, gap, underrun = (Measured(0.01, 1, 1, deficit) for deficit in (0.0, 0.05, 0.3))
    row = figures(Run("closed 3", [smooth, gap, underrun], 1.0))
    assert row["gap_rate"] == pytest.approx(2 / 3)
    assert row["underrun_rate"] == pytest.approx(1 / 3)
    assert row["worst_deficit_ms"] == pytest.approx(300)
    assert json.loads(json_line(row)) == row
    assert "closed 3" in table([row])


@given(st.lists(st.floats(0, 1e6), min_size=1), st.floats(1, 100))
def test_a_percentile_has_its_share_at_or_below(values: list[float], percent: float) -> None:
    found = percentile(values, percent)
    assert found in values
    assert sum(value <= found for value in values) >= percent / 100 * len(values) - 1e-6


def test_the_same_seed_is_the_same_work() -> None:
    work = Work(("preset", "design"))
    assert work.jobs(5) == work.jobs(5)
    assert work.jobs(5)[:3] == work.jobs(3)


def test_without_a_model_the_embedded_one_is_measured(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """As `make bench` does."""
    monkeypatch.setattr(command, "in_process", lambda *_, **__: {"loads": []})
    command.main()
    report = json.loads(capsys.readouterr().out.splitlines()[-1])
    assert (Path(report["model"]) / "config.json").exists()
    with pytest.raises(typer.BadParameter, match="either"):
        command.main(model="a", url="b")


def test_a_random_checkpoint_speaks_until_its_budget(tmp_path: Path) -> None:
    from bench.random_checkpoint import main
    from engine import open_engine

    main(tmp_path / "tiny", size="tiny")
    with open_engine([tmp_path / "tiny"]) as engine:
        request = SpeechRequest("Hello.", Preset("ryan"), max_frames=12, seed=1)
        stream = engine.submit(request)
        pcm = stream.collect()
    assert stream.end is not None
    assert (stream.end.reason, stream.end.frames) == ("length", 12)
    assert len(pcm) == 12 * 1920
    assert pcm.any()


def test_the_tokenizer_of_a_random_checkpoint_reads_alike_from_all_its_files(
    tmp_path: Path,
) -> None:
    from bench.random_checkpoint import save_tokenizer
    from bench.random_config import tokenizer
    from engine.checkpoints.tokens import Tokens

    save_tokenizer(tmp_path, tokenizer("tiny"))
    text = "The assistant said: zwölf user-names?"
    ids = Tokens(tmp_path).encode(text)
    (tmp_path / "tokenizer.json").unlink()
    assert Tokens(tmp_path).encode(text) == ids != []


def test_the_card_is_sampled_until_the_load_ends(tmp_path: Path) -> None:
    program = "print('50, 1000\\n100, 3000\\n[N/A], 1\\n7', flush=True)"
    wait = f"import pathlib, time; pathlib.Path({str(tmp_path / 'told')!r}).touch(); time.sleep(60)"
    with watched([sys.executable, "-c", f"{program}; {wait}"]) as card:
        while not (tmp_path / "told").exists():
            time.sleep(0.01)
    assert card.figures() == {"card_busy": 0.75, "card_memory_mib": 3000}
    with watched(["no such program"]) as card:
        pass
    assert card.figures() == {}
