"""Audio that is ready after its step's codes: nothing waits for it, and none is lost."""

from __future__ import annotations

import random
from dataclasses import replace

import numpy as np
import pytest

from engine import EngineError, Preset, SpeechRequest, StepFailed
from engine.plan import FirstAudio, StepPlan, StepResult
from engine.scheduler.scheduler import Delivery
from engine.testing import Costs
from engine.testing.fake_worker import FakeStep
from engine.types import FRAME_SAMPLES, Pcm
from tests.support.simulation import Simulation, ask, poisson


def sounds(lag: int, later: float) -> tuple[list[bytes], float]:
    """The audio of all streams, and the time it took."""
    simulation = Simulation(Costs(step=0.01), max_num_seqs=4, pipeline_depth=lag)
    simulation.worker.sound_later, loop = later, simulation.engine.loop
    turn = simulation.turn

    def watched() -> bool:
        busy = turn()
        assert len(loop._decoding) <= lag + 1
        return busy

    simulation.turn = watched
    simulation.play(poisson(12, 20, random.Random(9), files=0.3))
    heard = [
        b"".join(chunk.pcm.tobytes() for chunk in each.chunks) for each in simulation.listeners
    ]
    return heard, simulation.clock.now()


@pytest.mark.parametrize("lag", [1, 2])
@pytest.mark.parametrize("later", [0.004, 0.012, 0.035])
def test_sound_that_comes_after_its_frames_holds_no_step_up(lag, later):
    at_once, seconds = sounds(lag, 0.0)
    late, longer = sounds(lag, later)
    assert late == at_once
    assert longer < seconds + 2 * later + 0.001 if later < 0.02 else longer > seconds


def test_sound_of_a_worker_that_waits_for_it_itself_holds_no_step_up():
    """Without steps in flight, as on CPUs; at the end nothing is due."""
    heard, seconds = {}, {}
    for follows in (False, True):
        simulation = Simulation(Costs(step=0.01), max_num_seqs=2, pipeline_depth=0)
        simulation.worker.sound_later, simulation.worker.sound_follows = 0.025, follows
        listeners = [ask(simulation, "a" * 60, seed=seed) for seed in range(3)]
        simulation.finish()
        assert all(each.stream.end.reason == "finished" for each in listeners)
        assert not simulation.engine.loop._decoding
        heard[follows] = [
            b"".join(chunk.pcm.tobytes() for chunk in each.chunks) for each in listeners
        ]
        seconds[follows] = simulation.clock.now()
    assert heard[True] == heard[False]
    assert seconds[True] < 0.8 * seconds[False]


@pytest.mark.parametrize("live", [True, False])
def test_after_the_last_sound_of_a_group_the_next_one_begins(live):
    """Nothing is left to plan when it comes, and no command will wake the engine."""
    simulation = Simulation(Costs(step=0.01), max_letters=60, max_num_seqs=2, pipeline_depth=0)
    simulation.worker.sound_later, simulation.worker.sound_follows = 0.025, True
    listener = ask(simulation, "Hello there, my friend. " * 6, seed=3, live=live)
    simulation.finish()
    assert listener.ended is not None
    assert listener.stream.end.reason == "finished"


def test_sound_is_delivered_before_the_frames_of_the_next_step():
    simulation = Simulation(Costs(step=0.01), max_num_seqs=2, pipeline_depth=1)
    simulation.worker.sound_later = 0.002
    listener = simulation.ask(SpeechRequest("a" * 60, Preset("ryan"), seed=1))
    while listener.first is None:
        simulation.turn()
    heard = listener.stream._progress.playback.began
    assert heard == pytest.approx(0.012, abs=0.0002)


def test_sound_that_was_made_before_a_step_fails_is_heard():
    """All its frames are there, its slot is free again: another's step is not its affair."""
    simulation = Simulation(Costs(step=0.01), max_num_seqs=4, pipeline_depth=1)
    simulation.worker.sound_later = 0.02
    short, long = ask(simulation, "abcd", seed=1), ask(simulation, "a" * 200, seed=2)
    run = short.stream._progress.attempt
    while run is None or run.total_frames is None or run.planned_codec_frames < run.total_frames:
        simulation.turn()
        run = run or short.stream._progress.attempt
    assert run.decoded_frames < run.total_frames
    assert simulation.engine.loop._decoding

    def fault(plan: StepPlan) -> None:
        simulation.worker.fault = lambda _: None
        raise RuntimeError("illegal memory access")

    simulation.worker.fault = fault
    simulation.finish()
    assert short.stream.end is not None
    assert short.stream.end.reason == "finished"
    assert long.stream.end is not None
    assert long.stream.end.reason == "error"


def test_the_engine_gives_up_when_no_sound_comes_back(monkeypatch):
    def broken(self: FakeStep) -> dict[int, Pcm]:
        raise StepFailed("The codec broke.")

    monkeypatch.setattr(FakeStep, "audio", broken)
    simulation = Simulation(Costs(step=0.01), max_num_seqs=1, pipeline_depth=1)
    for seed in range(20):
        ask(simulation, "a" * 20, seed=seed)
    with pytest.raises(EngineError, match="in a row"):
        simulation.finish()


def heard_of(simulation: Simulation) -> list[tuple[bytes, bytes]]:
    """The audio and the codes of all streams, whatever their chunks."""
    for listener in simulation.listeners:
        assert [chunk.index for chunk in listener.chunks] == [*range(len(listener.chunks))]
    return [
        (
            b"".join(chunk.pcm.tobytes() for chunk in listener.chunks),
            b"".join(chunk.codes.tobytes() for chunk in listener.chunks),
        )
        for listener in simulation.listeners
    ]


@pytest.mark.parametrize("lag", [0, 1, 2])
@pytest.mark.parametrize("later", [0.0, 0.004])
def test_first_sound_is_heard_before_the_codes_of_its_step_are_known(lag, later):
    """And is the same, with what follows it, as if it had been waited for: streams and files, of
    one frame and of several groups, and some that are left."""
    heard, firsts = {}, {}
    for ahead in (0.0, 0.006):
        source = random.Random(4)
        simulation = Simulation(
            Costs(step=0.01, row=0.001), max_letters=60, max_num_seqs=4, pipeline_depth=lag
        )
        simulation.worker.first_ahead, simulation.worker.sound_later = ahead, later
        for number, (when, request) in enumerate(poisson(20, 6, source, files=0.2)):
            if number % 5 == 0:
                request = replace(request, text="a" if number % 2 else "Hello there. " * 9)
            while simulation.clock.now() < when:
                if not simulation.turn():
                    simulation.clock.sleep(when - simulation.clock.now())
            listener = simulation.ask(request)
            assert listener is not None
            if number % 7 == 3:
                listener.stream.cancel()
        simulation.finish()
        heard[ahead] = heard_of(simulation)
        firsts[ahead] = [
            listener.stream._progress.playback.began - listener.arrived
            for listener in simulation.listeners
            if listener.chunks and listener.request.live
        ]
    assert heard[0.006] == heard[0.0]
    sooner = [slow - fast for slow, fast in zip(firsts[0.0], firsts[0.006], strict=True)]
    assert min(sooner) > 0.004
    assert sorted(sooner)[len(sooner) // 2] == pytest.approx(0.006 + later, abs=0.001)


def test_a_step_that_fails_after_its_first_sound_ends_its_streams():
    simulation = Simulation(Costs(step=0.01), max_num_seqs=2, pipeline_depth=1)
    simulation.worker.first_ahead = 0.005
    listener = ask(simulation, "a" * 40, seed=1)
    commit = simulation.engine.loop.scheduler.commit_first

    def heard(first: FirstAudio, now: float) -> list[Delivery]:
        simulation.engine.loop.scheduler.commit_first = commit
        deliveries = commit(first, now)

        def fail(self: FakeStep) -> StepResult:
            raise StepFailed("The card broke.")

        patch.setattr(FakeStep, "result", fail)
        return deliveries

    with pytest.MonkeyPatch.context() as patch:
        simulation.engine.loop.scheduler.commit_first = heard
        while listener.ended is None:
            simulation.turn()
            if simulation.engine.loop.counters.failed_steps:
                patch.undo()
    assert [chunk.index for chunk in listener.chunks] == [0]
    assert listener.stream.end.reason == "error"
    after = ask(simulation, "a" * 10, seed=2)
    simulation.finish()
    assert after.stream.end.reason == "finished"


@pytest.mark.parametrize("reserve", [0.0, 0.1])
def test_first_sound_is_never_delivered_before_sound_of_an_earlier_step(monkeypatch, reserve):
    """Both become ready while the loop is held up between its looks at them."""
    heard, ready = {}, FakeStep.audio_ready

    def held_up(self: FakeStep) -> bool:
        there = ready(self)
        if not there and self.due + self.later - self.clock.now() < 2e-4:
            self.clock.sleep(0.0012)
        return there

    monkeypatch.setattr(FakeStep, "audio_ready", held_up)
    for ahead in (0.0, 0.003):
        simulation = timed_simulation()
        simulation.worker.sound_later = 0.006
        simulation.engine.loop.note_lag(reserve)
        ask(simulation, "a" * 20, seed=1)
        simulation.turn()
        simulation.worker.first_ahead = ahead
        ask(simulation, "a" * 20, seed=2)
        simulation.finish()
        heard[ahead] = heard_of(simulation)
    assert heard[0.003] == heard[0.0]


def timed_simulation() -> Simulation:
    """Has timed a stream, so that it takes others together."""
    simulation = Simulation(Costs(step=0.01), max_num_seqs=8, pipeline_depth=1)
    ask(simulation, "a" * 20, seed=1)
    simulation.finish()
    return simulation


def test_a_file_that_ends_in_silence_is_no_other_beside_a_first_sound():
    """Whether its last frame is the end of its speech is not known with its sound."""
    ends = {}
    for ahead in (0.0, 0.004):
        simulation = timed_simulation()
        simulation.worker.first_ahead = ahead
        for seed in range(5):
            ask(simulation, seed=seed, ignore_end=True, max_frames=150)  # may be silent
        simulation.worker.sound_of = lambda codes: np.zeros(len(codes) * FRAME_SAMPLES, np.int16)
        file = ask(simulation, "b" * 84, seed=1, live=False)
        progress = file.stream._progress
        while progress.attempt is None or progress.attempt.planned_frames < 83:
            assert simulation.turn()
        ask(simulation, "a" * 20, seed=2)
        while file.ended is None:
            assert simulation.turn()
        ends[ahead] = file.stream.end, simulation.engine.loop.scheduler.retries
    assert ends[0.004] == ends[0.0]
