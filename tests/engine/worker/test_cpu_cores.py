"""A CPU's cores shared by steps and the codec beside them: no thread without a core, the same
sound."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from engine import Preset, SpeechRequest, open_engine
from engine.worker import cpu_cores
from engine.worker import worker as worker_module
from engine.worker.core_shares import ROWS, CoreShares, FrameTimes
from engine.worker.cpu_cores import QUICK, SharedCores
from engine.worker.device import LARGE_WEIGHTS
from engine.worker.kernels.cpu.threads import ThreadTeam
from studio.cli.app_context import MINI

CORES = 5  # of which one is left for streaming
TEXTS = ("Good morning.", "How do you do?", "Fine.")


@pytest.fixture(scope="module")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("cache")


class Meter:
    """Counts threads of all kernels that run at the same time."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.most, self.together, self._now, self._kernels = 0, 0, 0, 0
        self._lock, run = threading.Lock(), ThreadTeam.run

        def measured(team: ThreadTeam, kernel: Callable[[int, int], object], threads: int) -> None:
            def counted(number: int, threads: int) -> None:
                if number == 0:
                    self._count(1, threads)
                kernel(number, threads)  # all of them are done when one returns
                if number == 0:
                    self._count(-1, -threads)

            run(team, counted, threads)

        monkeypatch.setattr(ThreadTeam, "run", measured)

    def _count(self, kernels: int, threads: int) -> None:
        with self._lock:
            self._kernels, self._now = self._kernels + kernels, self._now + threads
            self.together = max(self.together, self._kernels)
            self.most = max(self.most, self._now)


def spoken(cache: Path) -> list[np.ndarray]:
    """Three texts, two at a time, so that one's prompt comes while others are heard."""
    waits = {"max_num_seqs": 2, "max_wait": 3600}  # on a busy machine a third text waits for long
    with open_engine([MINI], "cpu", weights="8bit", cache=cache, **waits) as engine:
        streams = [
            engine.submit(SpeechRequest(text, Preset("clara"), seed=3 + number))
            for number, text in enumerate(TEXTS)
        ]
        return [np.concatenate([chunk.pcm for chunk in stream]) for stream in streams]


@pytest.fixture
def many_cores(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(worker_module, "usable_cores", lambda: CORES)
    yield
    CoreShares.forced = None


@pytest.mark.usefixtures("many_cores")
def test_the_codec_beside_a_step_makes_the_same_sound_on_no_more_cores_than_there_are(
    cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    CoreShares.forced, found = 0, []
    meter = Meter(monkeypatch)
    wanted = spoken(cache)
    assert (meter.together, meter.most) == (1, CORES - 1)
    for threads in (1, 3):
        monkeypatch.undo()
        monkeypatch.setattr(worker_module, "usable_cores", lambda: CORES)
        CoreShares.forced, meter = threads, Meter(monkeypatch)
        found.append(spoken(cache))
        assert meter.together == 2, "nothing ran beside a step"
        assert meter.most == CORES - 1
    for sounds in found:
        for one, other in zip(sounds, wanted, strict=True):
            np.testing.assert_array_equal(one, other)


class Kernels:
    """A runner and a codec, of which each takes all of `cores` threads if it may."""

    def __init__(self, cores: int, weights: int = LARGE_WEIGHTS, seconds: float = 0.02) -> None:
        self.shared = SharedCores(cores)
        self.threads, self.weights, self.rows = self.shared.count, weights, 8
        self.threads_at_work, self.waits, self.left, self.seconds_of = 0, 0, [0], seconds
        self.steps: set[tuple[int, int]] = set()
        self.chunks: set[int] = set()
        self.on_cpu_kernels, self.shares = True, CoreShares(1, FrameTimes({1: {1: 1}}, {1: 1}))

    def wait(self) -> None:
        self.waits, self.threads_at_work = self.waits + 1, 0

    def leave_cores(self, threads: int) -> None:
        self.left.append(threads)

    def run_step(self, rows: int, threads: int) -> None:
        self.steps.add((rows, threads))

    def run_chunk(self, frames: int, threads: int) -> None:
        self.chunks.add(threads)

    def step_seconds(self) -> float:
        return self.seconds_of

    def seconds(self) -> float:
        return self.seconds_of / 2

    def codec_threads(self, rows: int, first: bool = False) -> int:
        return self.shares.codec(rows, first)

    def share(self, shares: CoreShares) -> None:
        self.shares = shares

    def leave(self, prompts: bool) -> int:
        """Cores that the next kernels may take."""
        runners: Any = {"one": self}
        self.shared.leave(runners, self, prompts)  # type: ignore[arg-type]
        return self.left[-1]


class Start:
    """What starts keep."""

    def __init__(self) -> None:
        self.bytes, self.kept = LARGE_WEIGHTS, dict[int, FrameTimes]()

    def frame_times(self, threads: int) -> FrameTimes | None:
        return self.kept.get(threads)

    def keep_frame_times(self, threads: int, times: FrameTimes) -> None:
        self.kept[threads] = times


def divide(kernels: Kernels, start: Start) -> FrameTimes:
    kernels.shared.divide(kernels, kernels, start)  # type: ignore[arg-type]
    return kernels.shares.times


@pytest.mark.parametrize(
    ("at_work", "prompts", "left", "waits"),
    [
        (0, False, 14, 0),
        (5, False, 9, 0),
        (14, False, 14, 1),  # the codec alone had something to do
        (2, True, 12, 0),
        (5, True, 14, 1),
    ],
)
def test_kernels_leave_the_codec_its_cores_or_wait_for_it(
    at_work: int, prompts: bool, left: int, waits: int
) -> None:
    kernels = Kernels(15)
    kernels.threads_at_work = at_work
    assert kernels.leave(prompts) == left
    assert kernels.waits == waits


def test_the_codec_has_all_cores_while_nothing_else_runs_where_it_may_run_beside_steps() -> None:
    """On the same thread, so that audio follows its step, as the scheduler counts on."""
    kernels = Kernels(15)
    runners: Any = {"one": kernels}
    kernels.shares = CoreShares(14, FrameTimes({1: {1: 0.02, 14: 0.02}}, {1: 0.02, 14: 0.01}))
    assert 0 < kernels.shared.codec_threads(runners, {"one": 1}, first=False) < 14
    assert kernels.shared.codec_threads(runners, {}, first=False) == 14
    kernels.shares = CoreShares(14, FrameTimes({1: {14: 0.02}}, {14: 0.01}))
    assert kernels.shared.codec_threads(runners, {"one": 1}, first=False) == 0
    assert kernels.shared.codec_threads(runners, {}, first=False) == 0


def test_a_prompt_s_only_thread_waits_for_no_codec() -> None:
    kernels = Kernels(2)
    kernels.threads, kernels.threads_at_work = 1, 1
    assert kernels.leave(prompts=True) == 1
    assert kernels.waits == 0


@pytest.mark.parametrize(
    ("cores", "weights", "tries"),
    [
        (2, LARGE_WEIGHTS, False),
        (4, LARGE_WEIGHTS, False),
        (5, LARGE_WEIGHTS, True),
        (16, LARGE_WEIGHTS, True),
        (1, 0, False),
        (3, 0, True),
    ],
)
def test_threads_are_tried_once_and_only_where_there_is_a_choice(
    cores: int, weights: int, tries: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("engine.worker.kernels.cpu.threads._lost_cores", lambda: 0)
    kernels, start = Kernels(cores, weights), Start()
    first = divide(kernels, start)
    assert bool(kernels.steps) == bool(kernels.chunks) == tries
    assert {rows for rows, _ in kernels.steps} == ({1, ROWS} if tries else set())
    again = Kernels(cores, weights)
    assert divide(again, start) == first
    assert not again.steps


def test_times_of_steps_with_more_rows_are_tried_where_an_earlier_start_had_one_slot(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("engine.worker.kernels.cpu.threads._lost_cores", lambda: 0)
    start, small = Start(), Kernels(16)
    small.rows = 1
    assert set(divide(small, start).steps) == {1}
    assert set(divide(Kernels(16), start).steps) == {1, ROWS}


@pytest.mark.parametrize("cores", [2, 16])
@pytest.mark.parametrize("quick", [True, False])
@pytest.mark.parametrize("quiet", [True, False])
def test_a_busy_machine_decides_nothing_and_is_believed_only_where_frames_are_short(
    cores: int, quick: bool, quiet: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    lost = iter(range(0, 1 << 20, 1000))
    monkeypatch.setattr("engine.worker.kernels.cpu.threads._lost_cores", lambda: next(lost))
    monkeypatch.setattr(cpu_cores, "_quiet", lambda run: (run(), quiet)[1])
    kernels, start = Kernels(cores, seconds=QUICK / 2 if quick else QUICK), Start()
    times = divide(kernels, start)
    assert set(times.steps) == {1}
    assert kernels.shares.codec(1) == 0
    assert bool(start.kept) == (cores == 2 and (quick or quiet))


def test_others_who_have_the_cores_are_not_held_up_by_trials(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """They may be listeners of a talker that was loaded before."""
    lost = iter(range(0, 1 << 20, 1000))
    monkeypatch.setattr("engine.worker.kernels.cpu.threads._lost_cores", lambda: next(lost))
    kernels = Kernels(16)
    divide(kernels, Start())
    assert kernels.steps == {(1, kernels.threads)}
    assert not kernels.chunks
