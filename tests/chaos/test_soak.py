"""Many visitors for a while: each answer is complete or refused, nothing is stuck or grows."""

from __future__ import annotations

import asyncio
import os
import sys
from pathlib import Path
from typing import Any

import pytest

from bench.stress import soak_watch
from bench.stress.soak import Crowd, metric, soak, studio
from bench.stress.soak_visits import Broken, Refused, check, expect
from bench.stress.soak_watch import Sample, Watch, slope
from tests.chaos.test_drain import served
from tests.conftest import GOLDEN

pytestmark = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="reads /proc")
API = ("file", "stream", "events", "socket", "listing")


def judge(report: dict[str, Any]) -> None:
    print(report)
    assert report["wrong"] == []
    assert report["stuck"] == {}
    assert report["good"]
    assert all(ends["whole"] for ends in report["by_action"].values())
    assert report["left"] > 0


def test_a_few_seconds_of_visitors(tmp_path: Path) -> None:
    with served(tmp_path, grace=5, step=0.003) as server:
        url = str(server.client.base_url).rstrip("/")
        judge(asyncio.run(soak(Crowd(url, 12, 4.0, API), server.process.pid)))


@pytest.mark.slow
def test_a_minute_and_a_half_of_the_whole_program() -> None:
    with studio(str(GOLDEN / "custom_voice-1b7")) as (url, pid):
        judge(asyncio.run(soak(Crowd(url, 6, 90.0, (*API, "page")), pid)))


# The soak finds what it is there to find.


def test_slopes_are_those_of_what_was_measured() -> None:
    samples = [Sample(at, 100 + 0.5 * at, int(10 + at // 6), 3) for at in range(120)]
    assert slope(samples, "megabytes") == pytest.approx(30)
    assert slope(samples, "handles") == pytest.approx(10, abs=0.5)
    watch = Watch(0, samples)
    assert watch.figures()["memory_growth_mb"] == pytest.approx(30 * 79 / 60, abs=0.1)


def test_threads_and_children_that_end_do_not_end_the_watch(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They may end between two looks at /proc."""
    gone = tmp_path / "children"
    monkeypatch.setattr(soak_watch.Path, "glob", lambda *_: iter([gone]))
    assert soak_watch._children(os.getpid()) == []
    monkeypatch.setattr(soak_watch, "_children", lambda _: [2**22 + 1])  # above the largest id
    assert Watch(os.getpid()).look().megabytes > 1


def test_a_watch_that_fails_says_so() -> None:
    async def watch() -> None:
        async with Watch(2**22 + 1).running():
            await asyncio.sleep(0)

    with pytest.raises(FileNotFoundError):
        asyncio.run(watch())


@pytest.mark.parametrize(
    ("status", "content", "error"),
    [
        (500, b'{"error": {"message": "x"}}', Broken),
        (503, b"Service Unavailable", Broken),
        (429, b'{"error": {"message": "x"}}', Refused),
        (404, b'{"error": {"message": "x"}}', Broken),
    ],
)
def test_only_a_plain_no_is_a_refusal(status: int, content: bytes, error: type[Exception]) -> None:
    check(200, b"")
    with pytest.raises(error):
        check(status, content)


def test_an_answer_cut_short_is_broken() -> None:
    with pytest.raises(Broken, match="3 instead of 4"):
        expect(3, 4)


def test_a_metric_is_found_by_its_name() -> None:
    metrics = "# TYPE timbre_running gauge\ntimbre_running 2.0\ntimbre_running_total 9\n"
    assert metric(metrics, "running") == 2.0
    assert metric(metrics, "waiting") == -1.0
