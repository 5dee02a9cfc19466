"""The overload bench tells served, refused and broken apart, and what was true of Retry-After."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from bench.stress.overload import Visit, measure, report, true_wait
from engine import EngineSettings, Library
from engine.testing import Costs, FakeEngine
from studio.api import create_api
from tests.support.serving import serving


def test_a_server_that_is_asked_too_much(tmp_path: Path) -> None:
    settings = EngineSettings(max_num_seqs=2, max_waiting=2)
    with (
        FakeEngine(settings=settings, costs=Costs(step=0.002)) as engine,
        serving(create_api(engine, Library(tmp_path))) as url,
    ):
        result = asyncio.run(measure(url, times=9, seconds=2, listeners=2))
    assert result["broken"] == []
    assert result["served"] + result["refused"] == result["asked"]
    assert result["served"] > 2
    assert result["refused"] > 2
    assert result["retry_after_s"]["least"] >= 1


def test_truth_is_when_everybody_ahead_was_heard() -> None:
    served = [Visit(0, first=1, total=30), Visit(1, first=9, total=12), Visit(5, first=90)]
    assert true_wait(Visit(2, retry=4), served) == (8, 28)
    figures = report([*served, Visit(2, retry=4), Visit(3, broken="reset")])
    assert figures["off_s"]["most"] == pytest.approx(4)
    assert report([*served, Visit(2, retry=20)])["off_s"]["most"] == 0
    assert report([*served, Visit(2, retry=31)])["off_s"]["most"] == pytest.approx(3)
    assert (figures["refused"], figures["broken"]) == (1, ["reset"])
