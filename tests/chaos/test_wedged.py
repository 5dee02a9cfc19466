"""A step that never returns: streams end, another worker takes over, /ready is right."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from fastapi.testclient import TestClient

import engine.engine as engine_module
from engine import (
    EngineClosed,
    EngineSettings,
    Library,
    OutOfMemory,
    Preset,
    SpeechRequest,
    StepFailed,
)
from engine.engine import MAX_REPLACEMENTS
from engine.plan import StepPlan
from engine.testing import Costs, FakeEngine
from engine.watchdog import LOOKS, Watchdog
from studio.api import create_api
from tests.support.serving import OwnTime, wait_until

TIMEOUT = 0.4
ASKED = SpeechRequest("Hello there, all of you.", Preset("ryan"), seed=3)


class Wedge:
    """Holds a step until it is let go."""

    def __init__(self) -> None:
        self.held, self.free = threading.Event(), threading.Event()

    def __call__(self, plan: StepPlan) -> None:
        self.held.set()
        self.free.wait(60)


@pytest.fixture
def engine() -> Iterator[FakeEngine]:
    settings = EngineSettings(max_num_seqs=2, step_timeout=TIMEOUT)
    with FakeEngine(settings=settings, costs=Costs(step=0.002)) as engine:
        yield engine


@pytest.fixture
def wedge() -> Iterator[Wedge]:
    wedge = Wedge()
    yield wedge
    wedge.free.set()


def test_whoever_was_here_is_told_and_the_next_is_served(engine: FakeEngine, wedge: Wedge) -> None:
    right = engine.submit(ASKED).collect()
    broken = engine.worker
    broken.fault = wedge
    streams = [engine.submit(ASKED) for _ in range(5)]  # two run, three wait
    with OwnTime() as took:
        for stream in streams:
            with pytest.raises(EngineClosed, match=r"got stuck.*Try again in a minute"):
                stream.collect()
    assert took.seconds < 20  # the step would have taken a minute
    wait_until(lambda: engine.alive)
    assert (engine.submit(ASKED).collect() == right).all()
    assert engine.worker is not broken
    assert engine.stats().failed_steps == 1
    assert engine.stats().running == 0
    wedge.free.set()
    wait_until(lambda: broken.closed)  # the step returned at last, and changed nothing
    assert (engine.submit(ASKED).collect() == right).all()


def test_a_step_that_comes_back_late_is_heard_by_nobody(engine: FakeEngine, wedge: Wedge) -> None:
    engine.worker.fault = wedge
    stream = engine.submit(ASKED)
    with pytest.raises(EngineClosed):
        stream.collect()
    frames = stream.end.frames if stream.end else -1
    wedge.free.set()
    time.sleep(0.05)
    assert stream.end is not None
    assert (stream.end.frames, list(stream)) == (frames, [])


def test_ready_tells_the_truth(engine: FakeEngine, wedge: Wedge, tmp_path: Path) -> None:
    build, release = engine._rebuild, threading.Event()
    assert build is not None

    def slow_build(checkpoints: object) -> object:
        release.wait(60)
        return build(checkpoints)  # type: ignore[arg-type]

    engine._rebuild = slow_build  # type: ignore[assignment]
    with TestClient(create_api(engine, Library(tmp_path / "voices"))) as client:
        assert client.get("/ready").status_code == 200
        engine.worker.fault = wedge
        body = {"input": "Hello.", "response_format": "wav"}
        answer = client.post("/v1/audio/speech", json=body)
        assert answer.status_code == 503
        assert "got stuck" in answer.json()["error"]["message"]
        assert client.get("/ready").status_code == 503
        refused = client.post("/v1/audio/speech", json=body)
        assert (refused.status_code, refused.headers["retry-after"]) == (503, "5")
        release.set()
        wait_until(lambda: client.get("/ready").status_code == 200)
        assert client.post("/v1/audio/speech", json=body).status_code == 200


def test_who_waits_for_a_model_to_load_is_told_too(engine: FakeEngine, wedge: Wedge) -> None:
    engine.worker.fault = wedge
    stream = engine.submit(ASKED)
    assert wedge.held.wait(30)
    with pytest.raises(EngineClosed):
        engine.load(next(iter(engine.capabilities())))
    with pytest.raises(EngineClosed):
        stream.collect()


def test_an_engine_that_cannot_be_built_again_closes(engine: FakeEngine, wedge: Wedge) -> None:
    def fail(checkpoints: object) -> object:
        raise OutOfMemory("no room for another worker")

    engine._rebuild = fail  # type: ignore[assignment]
    engine.worker.fault = wedge
    with pytest.raises(EngineClosed):
        engine.submit(ASKED).collect()
    wait_until(lambda: engine._registry.is_closed)
    with pytest.raises(EngineClosed, match=r"no room for another worker.*Start it again"):
        engine.submit(ASKED)


def test_workers_that_all_get_stuck_are_given_up(wedge: Wedge) -> None:
    settings = EngineSettings(max_num_seqs=2, step_timeout=0.1)
    with FakeEngine(settings=settings) as engine:
        build, built = engine._rebuild, []
        assert build is not None

        def rebuild(checkpoints: object) -> object:
            built.append(build(checkpoints))  # type: ignore[arg-type]
            built[-1].fault = wedge
            return built[-1]

        engine._rebuild = rebuild  # type: ignore[assignment]
        engine.worker.fault = wedge
        while not engine._registry.is_closed:
            try:
                engine.submit(ASKED).collect()
            except EngineClosed:
                time.sleep(0.01)
        assert len(built) == MAX_REPLACEMENTS
        wedge.free.set()


def test_closing_while_a_step_is_wedged_does_not_hang(wedge: Wedge) -> None:
    engine = FakeEngine(settings=EngineSettings(max_num_seqs=2, step_timeout=0.2))
    engine.worker.fault = wedge
    stream = engine.submit(ASKED)
    assert wedge.held.wait(30)
    closing = threading.Thread(target=engine.close)
    closing.start()
    with pytest.raises(EngineClosed):
        stream.collect()
    wedge.free.set()
    closing.join(30)
    assert not closing.is_alive()
    assert not engine.alive


def test_closing_ends_the_requests_of_a_step_that_never_returns(
    wedge: Wedge, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(engine_module, "JOIN_SECONDS", 0.1)
    engine = FakeEngine(settings=EngineSettings(max_num_seqs=2))
    engine.worker.fault = wedge
    streams = [engine.submit(ASKED) for _ in range(3)]
    assert wedge.held.wait(30)
    engine.close()
    for stream in streams:
        assert stream.end is not None
        with pytest.raises(EngineClosed):
            stream.collect()


def test_a_worker_that_is_built_while_the_engine_closes_is_closed_too(
    engine: FakeEngine, wedge: Wedge
) -> None:
    build, stuck = engine._rebuild, engine.worker
    assert build is not None

    def rebuild(checkpoints: object) -> object:
        engine._registry.close("The engine is closed.")
        return build(checkpoints)  # type: ignore[arg-type]

    engine._rebuild = rebuild  # type: ignore[assignment]
    engine.worker.fault = wedge
    with pytest.raises(EngineClosed):
        engine.submit(ASKED).collect()
    wait_until(lambda: engine.worker is not stuck and engine.worker.closed)


def test_slow_steps_and_idleness_are_no_wedge(wedge: Wedge) -> None:
    settings = EngineSettings(max_num_seqs=2, step_timeout=0.7)
    with FakeEngine(settings=settings, costs=Costs(step=0.3)) as engine:
        worker = engine.worker
        time.sleep(0.8)
        engine.submit(SpeechRequest("Hi.", Preset("ryan"))).collect()
        assert engine.worker is worker


def test_out_of_memory_in_a_step_is_no_wedge(engine: FakeEngine) -> None:
    worker, left = engine.worker, [1]

    def fault(plan: StepPlan) -> None:
        left[0] -= 1
        if left[0] >= 0:
            raise OutOfMemory("CUDA out of memory")

    worker.fault = fault
    with pytest.raises((OutOfMemory, StepFailed), match="memory"):
        engine.submit(ASKED).collect()
    assert len(engine.submit(ASKED).collect())
    assert engine.worker is worker


# The watchdog alone.


def bites(beats: Iterator[int], ticks: int) -> int:
    """How often the watchdog acts when it looks so many times."""
    bitten: list[int] = []
    dog = Watchdog(lambda: next(beats), lambda: bitten.append(1), seconds=1)
    waits = iter([False] * ticks + [True])
    dog._stopped.wait = lambda _: next(waits)  # type: ignore[assignment, method-assign]
    dog._watch()
    return len(bitten)


def test_only_a_step_that_stands_still_is_bitten() -> None:
    assert bites(iter([1] * 100), LOOKS) == 1
    assert bites(iter([1] * 100), LOOKS - 1) == 0
    assert bites(iter([2] * 100), 50) == 0  # idle
    assert bites(iter(range(100)), 50) == 0  # at work
    assert bites(iter([1] * LOOKS + [3] * LOOKS), 2 * LOOKS - 2) == 0
