"""The bench measures what happens: on the fake engine its figures are known beforehand."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bench.figures import figures, json_line, percentile, table
from bench.measure import Measured, Run, closed_loop
from bench.texts import Work
from engine import FRAME_SECONDS, FakeEngine, Preset, SpeechRequest


def test_a_closed_loop_hears_every_frame() -> None:
    with FakeEngine() as engine:
        speaker = next(iter(engine.capabilities().values())).speakers[0]
        requests = Work(Preset(speaker), 5, 9).requests(7)
        run = asyncio.run(closed_loop(engine, requests, 3))
    row = figures(run)
    frames = sum(request.max_frames or 0 for request in requests)
    assert (row["ok"], row["failed"]) == (7, 0)
    assert row["audio_seconds"] == pytest.approx(frames * FRAME_SECONDS)
    assert 0 < row["first_p50_ms"] <= row["first_p95_ms"] <= row["first_p99_ms"]


def test_a_refused_request_is_counted_and_told() -> None:
    with FakeEngine() as engine:
        bad = SpeechRequest("Hello.", Preset("nobody at all"))
        row = figures(asyncio.run(closed_loop(engine, [bad], 1)))
    assert (row["ok"], row["failed"]) == (0, 1)
    assert "nobody at all" in row["first_error"]


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
    work = Work(Preset("ryan"))
    assert work.requests(5) == work.requests(5)
    assert work.requests(5)[:3] == work.requests(3)


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
