"""The mixed load counts what each attack got back, and fails for what none may get."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from bench.stress.listener import Heard
from bench.stress.mixed_load import KEY, Load, cores_of, mixed, report
from bench.stress.soak import Account, pinned
from bench.stress.target import Tally, look_at
from engine import EngineSettings, Library
from engine.testing import Costs, FakeEngine
from studio.api import ApiSettings, create_api
from studio.server.public_server import protect
from studio.settings import StudioSettings
from tests.support.serving import serving

QUICK = ("large_bodies", "foreign_pages", "wrong_keys", "name_races", "crafted_imports",
         "bad_blends", "bad_batches")  # fmt: skip


def test_attacks_beside_a_listener(tmp_path: Path) -> None:
    configured = StudioSettings(api=ApiSettings(keys=(KEY,)))
    settings = EngineSettings(max_num_seqs=8)
    with (
        FakeEngine(settings=settings, costs=Costs(step=0.001)) as engine,
        ThreadPoolExecutor(4) as pool,
    ):
        api = create_api(engine, Library(tmp_path), configured.api)
        protect(api, engine, configured)
        with serving(api) as url:
            for seconds in (2, 10, 40):  # of which the machine may have slept some
                load = Load(seconds=seconds, visitors=1, attacks=QUICK)
                result = asyncio.run(mixed(load, look_at(url, KEY), os.getpid(), pool))
                keys = result["attacks"]["wrong_keys"]
                enough = result["listener"]["texts"] and result["visitors"]["whole"]
                if enough and keys.get("429", 0) > keys.get("401", 0):
                    break
    assert result["faults"] == []
    assert result["stuck"] == {}
    assert result["listener"]["texts"] > 0
    assert result["listener"]["broken"] == []
    assert result["visitors"]["whole"] > 0
    got = result["attacks"]
    assert set(got) == set(QUICK)
    assert all(len(answers) > 1 for answers in got.values())
    assert got["name_races"]["200"] >= 1
    assert got["name_races"]["409"] >= 3
    assert got["wrong_keys"]["429"] > got["wrong_keys"]["401"]
    assert set(got["foreign_pages"]) == {"rounds", "403", "421"}


def judged(heard: Heard, *tallies: Tally, growth: float = 0.0) -> bool:
    held = {"memory_growth_mb": growth}
    return bool(report(heard, Account(), tallies, {}, held)["good"])


def test_what_makes_a_run_bad() -> None:
    heard = Heard(texts=[(0.0, 0.1, 0.01)])
    refused, failed = Tally("crowds"), Tally("crowds")
    refused.note(429)
    refused.note(503)
    failed.note(500)
    assert judged(heard, refused)
    assert not judged(heard, failed)
    assert not judged(heard, growth=100.0)
    assert not judged(Heard())
    assert not judged(Heard(texts=[(0.0, 0.1, 0.03)]))
    assert not judged(Heard(texts=heard.texts, broken=["reset"]))


@pytest.mark.parametrize(
    ("written", "cores"), [("", ()), ("3", (3,)), ("0-2,5", (0, 1, 2, 5)), ("4,6-7", (4, 6, 7))]
)
def test_cores_are_written_as_for_taskset(written: str, cores: tuple[int, ...]) -> None:
    assert cores_of(written) == cores


@pytest.mark.skipif(sys.platform != "linux", reason="affinity is Linux's")
def test_a_server_is_started_on_its_own_cores() -> None:
    before = os.sched_getaffinity(0)
    core = min(before)
    tell = [sys.executable, "-c", "import os; print(sorted(os.sched_getaffinity(0)))"]
    with pinned((core,)):
        assert subprocess.check_output(tell, text=True).strip() == f"[{core}]"
    assert os.sched_getaffinity(0) == before
