"""Clocks that jump: speech continues, and nothing saved is lost or locked."""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from engine import Clone, EngineSettings, Library, Preset, SpeechRequest
from engine.testing import Costs, FakeEngine
from studio.api import ApiSettings
from studio.api.errors import ApiError
from studio.api.rates import Rates
from studio.scripts import Casting, Project, Projects
from studio.takes.take_store import Keeping, Takes

HOUR, DECADE = 3_600.0, 315_360_000.0
JUMPS = [-DECADE, -HOUR, HOUR, DECADE]
Jump = Callable[[float], None]


@pytest.fixture
def jump(monkeypatch: pytest.MonkeyPatch) -> Jump:
    """Sets the clock on the wall."""
    real, offset = time.time, [0.0]
    monkeypatch.setattr(time, "time", lambda: real() + offset[0])

    def jump(seconds: float) -> None:
        offset[0] = seconds

    return jump


def is_let_in(rates: Rates) -> bool:
    try:
        rates.take({"address": "127.0.0.1"})
    except ApiError:
        return False
    return True


@pytest.mark.parametrize("seconds", JUMPS)
def test_nobody_is_locked_out_by_a_clock_that_was_wrong(jump: Jump, seconds: float) -> None:
    """A clock put back by an hour used to exhaust every rate limit for an hour."""
    rates = Rates(ApiSettings(address_rate="3/minute"))
    assert [is_let_in(rates) for _ in range(4)] == [True, True, True, False]
    jump(seconds)
    assert [is_let_in(rates) for _ in range(4)] == [True, True, True, False]
    jump(0)
    assert is_let_in(rates)


@pytest.mark.parametrize("seconds", JUMPS)
def test_speaking_keeps_its_own_time(jump: Jump, seconds: float) -> None:
    # a machine that was late has a gap now and then, a jump that counts has one every time
    assert 0 in (gaps_of_a_jump(jump, seconds) for _ in range(100))


def gaps_of_a_jump(jump: Jump, seconds: float) -> int:
    """How many silences the engine sees where the clock on the wall jumps in a stream."""
    request = SpeechRequest("Hello there, all of you.", Preset("ryan"), seed=2)
    settings = EngineSettings(max_num_seqs=2, step_timeout=1.0, text_timeout=5.0)
    jump(0.0)
    with FakeEngine(settings=settings, costs=Costs(step=0.01)) as engine:
        whole = engine.submit(request).collect()
        stream = engine.submit(request)
        first = next(stream)
        jump(seconds)
        rest = [chunk.pcm for chunk in stream]
        np.testing.assert_array_equal(np.concatenate([first.pcm, *rest]), whole)
        return engine.stats().gaps


def test_what_is_kept_is_found_whatever_the_clock_said(jump: Jump, tmp_path: Path) -> None:
    chosen = random.Random(3)
    takes, projects = Takes(tmp_path / "t"), Projects(tmp_path / "s")
    library = Library(tmp_path / "v")
    for number in range(20):
        jump(chosen.choice([0.0, *JUMPS]))
        takes.add(np.zeros(2_400, np.int16), str(number), "ryan", number)
        projects.create(Project(title=str(number), casting=Casting(default="ryan")))
        library.save(f"voice {number}", Clone(np.ones(16, np.float32)))
    wanted = {str(number) for number in range(20)}
    assert {take.text for take in Takes(tmp_path / "t").search()} == wanted
    assert {each.title for each in Projects(tmp_path / "s").listed()} == wanted
    assert len(Library(tmp_path / "v").list()) == 20


@pytest.mark.parametrize("seconds", [-DECADE, -HOUR])
def test_a_clock_put_back_removes_nothing(jump: Jump, tmp_path: Path, seconds: float) -> None:
    takes = Takes(tmp_path)
    kept = [takes.add(np.zeros(2_400, np.int16), "x", "ryan", each) for each in range(3)]
    takes.delete(kept[0].id)
    jump(seconds)
    assert takes.tidy(Keeping(days=1, trash_days=1)) == 0
    assert takes.restore(kept[0].id).deleted is None
    assert len(Takes(tmp_path).search()) == 3
