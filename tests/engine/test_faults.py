"""Faults of the device or a listener: every request gets one end, and the engine continues."""

from __future__ import annotations

import random

import numpy as np
import pytest

from engine import (
    Chunk,
    Clone,
    EngineClosed,
    EngineError,
    InvalidText,
    OutOfMemory,
    Preset,
    SpeechRequest,
    StepFailed,
)
from engine.plan import StepPlan
from engine.testing import Costs
from engine.types import End
from tests.support.simulation import FAST, Listener, Simulation, ask, text

STEP = Costs(step=0.01)


def burn(simulation: Simulation, times: int = 1) -> None:
    """The next steps raise."""
    left = [times]

    def fault(plan: StepPlan) -> None:
        left[0] -= 1
        if left[0] >= 0:
            raise RuntimeError("illegal memory access")

    simulation.worker.fault = fault


@pytest.mark.parametrize("lag", [0, 1, 2])
def test_a_step_that_raises_ends_who_was_running_and_nobody_else(lag):
    simulation = Simulation(STEP, max_num_seqs=2, pipeline_depth=lag)
    running, waiting = [ask(simulation) for _ in range(2)], [ask(simulation) for _ in range(3)]
    for _ in range(5):
        simulation.turn()
    burn(simulation)
    simulation.finish()
    assert [each.stream.end.reason for each in running] == ["error"] * 2
    for each in running:
        with pytest.raises(StepFailed, match=r"illegal memory access.*Try again"):
            each.stream.collect()
    assert [each.stream.end.reason for each in waiting] == ["finished"] * 3
    assert simulation.worker.resets == 1
    assert simulation.engine.loop.scheduler.slots.free == 2
    assert simulation.engine.stats().failed_steps == 1


def test_sound_on_its_way_when_a_step_fails_ends_too():
    """The slot may be another's already while a sequence's last sound is not here yet."""
    simulation = Simulation(STEP, max_num_seqs=1, pipeline_depth=2)
    first, second = ask(simulation, "abc"), ask(simulation, "defg")
    while not second.stream._progress.attempt:
        simulation.turn()
    burn(simulation)
    simulation.finish()
    assert first.stream.end
    assert second.stream.end
    assert not simulation.engine.loop.scheduler.active


def test_failures_far_between_do_not_add_up():
    simulation = Simulation(STEP, max_num_seqs=2, max_failed_steps=2)
    for _ in range(6):
        ask(simulation)
        simulation.turn()
        burn(simulation)
        simulation.turn()
        simulation.finish()
        ask(simulation)
        simulation.finish()
    assert simulation.worker.resets == 6
    assert simulation.listeners[-1].stream.end.reason == "finished"


def test_the_engine_gives_up_after_failures_in_a_row_and_tells_everybody():
    simulation = Simulation(STEP, max_num_seqs=1, max_failed_steps=3)
    burn(simulation, times=100)
    listeners = [ask(simulation) for _ in range(6)]
    simulation.engine._run()
    assert [each.stream.end.reason for each in listeners] == ["error"] * 6
    kinds = [type(each.stream.end.error) for each in listeners]
    assert kinds == [StepFailed] * 3 + [EngineClosed] * 3
    assert not simulation.engine.alive
    assert simulation.worker.closed
    with pytest.raises(EngineClosed, match="3 steps in a row"):
        simulation.engine.submit(SpeechRequest("later", Preset("ryan")))


def test_a_worker_that_cannot_be_reset_is_the_end():
    simulation = Simulation(STEP, max_num_seqs=1)
    burn(simulation)

    def reset() -> None:
        raise RuntimeError("the card is gone")

    simulation.worker.reset = reset
    listeners = [ask(simulation) for _ in range(3)]
    simulation.engine._run()
    assert all(each.stream.end.reason == "error" for each in listeners)
    with pytest.raises(EngineClosed, match="the card is gone"):
        simulation.ask(SpeechRequest("later", Preset("ryan")))


def test_a_launch_that_raises_is_a_step_that_raises():
    simulation = Simulation(STEP, max_num_seqs=2)
    first = ask(simulation)
    launch = simulation.worker.launch

    def broken(plan: StepPlan) -> object:
        simulation.worker.launch = launch
        raise RuntimeError("no such kernel")

    simulation.worker.launch = broken
    simulation.finish()
    second = ask(simulation)
    simulation.finish()
    assert isinstance(first.stream.end.error, StepFailed)
    assert second.stream.end.reason == "finished"


# No room at admission.


@pytest.mark.parametrize("lag", [0, 1])
def test_out_of_memory_waits_while_others_have_the_room(lag):
    simulation = Simulation(STEP, max_num_seqs=4, pipeline_depth=lag)
    simulation.worker.refuse = lambda admit: (
        OutOfMemory("no room") if len(simulation.worker.running) >= 2 else None
    )
    listeners = [ask(simulation, "x" * 20) for _ in range(8)]
    simulation.finish()
    assert [each.stream.end.reason for each in listeners] == ["finished"] * 8
    assert simulation.engine.loop.scheduler.slots.free == 4


@pytest.mark.parametrize("lag", [0, 1])
def test_out_of_memory_with_nobody_else_running_is_told(lag):
    simulation = Simulation(STEP, max_num_seqs=4, pipeline_depth=lag)
    simulation.worker.refuse = lambda admit: OutOfMemory("no room")
    listeners = [ask(simulation) for _ in range(3)]
    simulation.finish()
    assert all(isinstance(each.stream.end.error, OutOfMemory) for each in listeners)
    simulation.worker.refuse = lambda admit: None
    later = ask(simulation)
    simulation.finish()
    assert later.stream.end.reason == "finished"


def test_another_refusal_ends_only_the_refused():
    simulation = Simulation(STEP, max_num_seqs=4)
    simulation.worker.refuse = lambda admit: ValueError("bad row") if admit.seed == 13 else None
    good, bad = ask(simulation, seed=1), ask(simulation, seed=13)
    simulation.finish()
    assert good.stream.end.reason == "finished"
    assert isinstance(bad.stream.end.error, ValueError)
    assert simulation.engine.loop.scheduler.slots.free == 4


# Everything at once.


class Audience:
    """Does random things, and records every end."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.simulation = Simulation(
            FAST, max_num_seqs=self.random.choice([1, 3, 8]),
            pipeline_depth=self.random.choice([0, 1, 2]),
            max_waiting=self.random.choice([2, 30]), max_failed_steps=50, text_timeout=3.0,
        )  # fmt: skip
        self.ends: dict[int, list[End]] = {}
        self.chunks_after_end = 0
        self._watch()

    def _watch(self) -> None:
        put = self.simulation.engine._registry.deliver

        def watched(sequence, item: Chunk | End) -> None:
            known = self.ends.setdefault(sequence.id, [])
            if isinstance(item, End):
                known.append(item)
            else:
                self.chunks_after_end += bool(known)
            put(sequence, item)

        self.simulation.engine._registry.deliver = watched

    def act(self) -> None:
        action = self.random.choice(
            [self.ask, self.ask, self.cancel, self.append, self.close, self.fail, self.squeeze]
            + [self.simulation.turn] * 8
        )
        action()

    def ask(self) -> None:
        voice = self.random.choice([Preset("ryan"), Clone(np.ones(16, np.float32))])
        request = SpeechRequest(
            text(self.random.randint(2, 60), self.random), voice,
            live=self.random.random() < 0.7, open_text=self.random.random() < 0.3,
        )  # fmt: skip
        self.simulation.ask(request)

    def someone(self) -> Listener | None:
        return self.random.choice(self.simulation.listeners) if self.simulation.listeners else None

    def cancel(self) -> None:
        listener = self.someone()
        if listener:
            listener.stream.cancel()

    def append(self) -> None:
        listener = self.someone()
        if listener and listener.request.open_text:
            try:
                listener.stream.append(text(self.random.randint(1, 9), self.random) + " ")
            except InvalidText:
                assert listener.stream._handles.text._closed

    def close(self) -> None:
        listener = self.someone()
        if listener and listener.request.open_text:
            listener.stream.close_text()

    def fail(self) -> None:
        if self.random.random() < 0.2:
            burn(self.simulation)

    def squeeze(self) -> None:
        chance = self.random.choice([0.0, 0.0, 0.5])
        self.simulation.worker.refuse = lambda admit: (
            OutOfMemory("no room") if self.random.random() < chance else None
        )

    def leave(self) -> None:
        """Texts that no client completes run into their timeout, slot after slot."""
        self.simulation.worker.refuse = lambda admit: None
        for _ in range(len(self.simulation.listeners)):
            self.simulation.finish()
            self.simulation.clock.sleep(4.0)


@pytest.mark.parametrize("seed", range(25))
def test_every_request_ends_exactly_once_whatever_happens(seed):
    audience = Audience(seed)
    for _ in range(300):
        audience.act()
    audience.leave()
    streams = [listener.stream for listener in audience.simulation.listeners]
    assert len(streams) > 10
    assert all(stream.end for stream in streams)
    assert [len(ends) for ends in audience.ends.values()] == [1] * len(streams)
    assert audience.chunks_after_end == 0
    scheduler = audience.simulation.engine.loop.scheduler
    assert scheduler.slots.free == scheduler.slots.total
    assert not scheduler.active
    assert not scheduler.attempts
    assert not scheduler._in_flight
    assert not audience.simulation.worker.running
    for listener in audience.simulation.listeners:
        heard = sum(chunk.frames for chunk in listener.chunks)
        assert heard == listener.stream.end.frames


@pytest.mark.parametrize("seed", range(8))
def test_an_engine_closed_in_the_middle_ends_everybody_once(seed):
    audience = Audience(seed)
    for _ in range(120):
        audience.act()
    audience.ask()
    audience.simulation.engine.close()
    streams = [listener.stream for listener in audience.simulation.listeners]
    assert all(stream.end for stream in streams)
    assert [len(ends) for ends in audience.ends.values()] == [1] * len(audience.ends)
    cut = [stream.end.error for stream in streams if isinstance(stream.end.error, EngineClosed)]
    assert cut
    assert all(isinstance(error, EngineError) for error in cut)
