"""Models are loaded on request and unloaded for memory, and no request starves."""

from __future__ import annotations

import threading
import time
import weakref
from dataclasses import replace

import numpy as np
import pytest

from engine import (
    Clone,
    Design,
    EngineError,
    EngineSettings,
    InvalidSetting,
    OutOfMemory,
    Preset,
    SpeechRequest,
)
from engine.testing import Costs, FakeCheckpoint, FakeEngine
from engine.testing.fake_engine import VirtualClock
from engine.types import FRAME_SAMPLES
from tests.engine.test_engine import BASE, CUSTOM, DESIGN, RYAN, VECTOR, ask
from tests.support.serving import OwnTime, wait_until


def test_a_model_is_loaded_when_somebody_wants_it():
    with FakeEngine([CUSTOM, BASE], loaded=False) as engine:
        assert engine.stats().talkers == ()
        assert engine.submit(ask()).collect().size
        assert engine.stats().talkers == ("custom",)
        engine.load("base")
        engine.load("base")
        assert engine.stats().talkers == ("custom", "base")
        engine.unload("custom")
        assert engine.stats().talkers == ("base",)
        with pytest.raises(InvalidSetting, match="base"):
            engine.load("nothing")


def test_a_model_is_removed_unless_it_speaks_or_is_the_only_one():
    with FakeEngine([CUSTOM, BASE], costs=Costs(step=0.02)) as engine:
        engine.load("base")
        stream = engine.submit(ask("x" * 40))
        next(stream)
        with pytest.raises(EngineError, match="custom is speaking"):
            engine.remove("custom")
        assert "custom" in engine.capabilities()
        stream.collect()
        engine.remove("custom")
        assert [*engine.capabilities()] == [*engine.stats().talkers] == ["base"]
        with pytest.raises(InvalidSetting, match="the only model"):
            engine.remove("base")
        engine.add("custom", CUSTOM)
        assert engine.submit(ask()).collect().size


def test_a_model_that_cannot_be_removed_after_all_stays():
    """A request that came before, and was long in preparation, has loaded it anew."""
    with FakeEngine([CUSTOM, BASE]) as engine:

        def in_use(name: str) -> None:
            raise EngineError("{name} is in use again. Try once more.", name=name)

        engine.worker.remove = in_use
        with pytest.raises(EngineError, match="in use again"):
            engine.remove("custom")
        assert [*engine.capabilities()] == ["custom", "base"]
        assert engine.submit(ask()).collect().size


def test_what_was_timed_while_loading_is_known_from_the_first_steps():
    capacity = []
    for timed in ({}, {1: 0.004, 64: 0.006}):
        engine = FakeEngine([CUSTOM], loaded=False, costs=Costs(step=0.02, row=0.0))
        with engine:
            engine.loop._worker.timed = timed
            engine.submit(ask("x" * 20)).collect()
            capacity.append(engine.stats().realtime_capacity)
    assert capacity[0] < 8 <= capacity[1]


def test_models_are_added_one_after_another():
    """Slots go by a model's place, so one that fails must not move another."""
    with FakeEngine([CUSTOM]) as engine:
        loading, go, added = threading.Event(), threading.Event(), list[str]()

        def load(talker: str) -> range:
            loading.set()
            go.wait(20)
            return range(8, 16)

        engine.worker.load = load
        engine.worker.add = lambda name, checkpoint: added.append(name)
        first, second = (
            threading.Thread(target=engine.add, args=(each.capabilities.name, each))
            for each in (BASE, DESIGN)
        )
        first.start()
        assert loading.wait(20)
        second.start()
        second.join(0.2)
        assert added == ["base"]
        go.set()
        first.join(20)
        second.join(20)
        assert added == ["base", "design"]


def test_steps_go_on_while_one_model_is_loaded_and_another_unloaded():
    """The worker does one of both at a time."""
    with FakeEngine([CUSTOM, BASE, DESIGN], loaded=False) as engine:
        engine.load("custom")
        engine.load("design")
        load, unload, one = engine.worker.load, engine.worker.unload, threading.Lock()
        loading, go = threading.Event(), threading.Event()

        def slow_load(talker: str) -> range:
            with one:
                loading.set()
                go.wait(120)
                return load(talker)

        def patient_unload(talker: str) -> None:
            with one:
                unload(talker)

        engine.worker.load, engine.worker.unload = slow_load, patient_unload
        loader = threading.Thread(target=engine.load, args=("base",))
        unloader = threading.Thread(target=engine.unload, args=("custom",))
        loader.start()
        assert loading.wait(20)
        unloader.start()
        unloader.join(0.2)
        assert engine.submit(ask(voice=Design("calm"))).collect().size
        assert loader.is_alive()
        go.set()
        loader.join(20)
        unloader.join(20)
        assert engine.stats().talkers == ("design", "base")


def test_weights_that_did_not_fit_are_freed_while_the_model_waits_for_room():
    with FakeEngine([CUSTOM, BASE], room=1, loaded=False, costs=Costs(step=0.03)) as engine:
        running = engine.submit(ask("x" * 600))
        next(iter(running))
        load, held = engine.worker.load, list[weakref.ref[np.ndarray]]()

        def load_weights(talker: str) -> range:
            weights = np.zeros(8)
            held.append(weakref.ref(weights))
            return load(talker)

        engine.worker.load = load_weights
        waiting = engine.submit(ask(voice=Clone(VECTOR)))
        wait_until(lambda: held and held[0]() is None, 10)
        assert engine.stats().talkers == ("custom",)
        running.cancel()
        assert waiting.collect().size


@pytest.mark.parametrize("room", [3, 2])
def test_steps_go_on_while_a_model_is_unloaded(room: int) -> None:
    """When somebody asks for that, or for the memory of it."""
    with FakeEngine([CUSTOM, BASE, DESIGN], loaded=False, room=room) as engine:
        engine.load("custom")
        engine.load("design")
        unload, unloading, go = engine.worker.unload, threading.Event(), threading.Event()

        def slow_unload(talker: str) -> None:
            unloading.set()
            go.wait(20)
            unload(talker)

        engine.worker.unload = slow_unload
        ask_for, name = (engine.unload, "custom") if room == 3 else (engine.load, "base")
        changer = threading.Thread(target=ask_for, args=(name,))
        changer.start()
        assert unloading.wait(20)
        assert engine.submit(ask(voice=Design("calm"))).collect().size
        waiting = engine.submit(ask())  # of the model that goes
        assert changer.is_alive()
        go.set()
        changer.join(20)
        assert waiting.collect().size
        assert "custom" in engine.stats().talkers


def test_an_unload_that_fails_is_told_and_the_next_load_runs() -> None:
    with FakeEngine([CUSTOM, BASE], loaded=False) as engine:
        engine.load("custom")
        engine.worker.unload = _broken
        with pytest.raises(ValueError, match="another shape"):
            engine.unload("custom")
        engine.load("base")
        assert engine.stats().talkers == ("base",)


def test_a_speaking_model_is_not_unloaded():
    with FakeEngine([CUSTOM], costs=Costs(step=0.01)) as engine:
        with engine.submit(ask("x" * 500)) as stream:
            next(stream)
            with pytest.raises(EngineError, match="speaking"):
                engine.unload("custom")
        while stream.end is None:
            time.sleep(0.002)
        engine.unload("custom")
        assert engine.stats().talkers == ()


def test_the_least_recently_used_idle_model_makes_room():
    with FakeEngine([CUSTOM, BASE, DESIGN], loaded=False, room=2) as engine:
        for voice in (RYAN, Clone(VECTOR), RYAN, Design("calm")):
            assert engine.submit(ask(voice=voice)).collect().size
        assert engine.stats().talkers == ("custom", "design")


def test_models_take_turns_when_only_one_fits():
    settings = EngineSettings(max_num_seqs=2, max_waiting=200, max_wait=1e6)
    costs = Costs(step=0.0002)
    checkpoints = [CUSTOM, BASE, DESIGN]
    with FakeEngine(checkpoints, settings, costs, loaded=False, room=1) as engine:
        voices = [RYAN, Clone(VECTOR), Design("calm")] * 12
        streams = [engine.submit(ask(voice=voice)) for voice in voices]
        sizes = [stream.collect().size for stream in streams]
    assert sizes == [len("hello there") * FRAME_SAMPLES] * 36


def test_a_steady_crowd_at_one_model_does_not_starve_another():
    settings = EngineSettings(max_num_seqs=2, max_waiting=200, max_wait=1e6)
    with FakeEngine([CUSTOM, BASE], settings, Costs(step=0.002), loaded=False, room=1) as engine:
        stop = threading.Event()

        def crowd() -> None:
            while not stop.is_set():
                engine.submit(ask("x" * 20)).collect()

        threads = [threading.Thread(target=crowd) for _ in range(4)]
        for each in threads:
            each.start()
        time.sleep(0.1)
        with OwnTime() as took:
            assert engine.submit(ask(voice=Clone(VECTOR))).collect().size
        stop.set()
        for each in threads:
            each.join(30)
    assert took.seconds < 20


def test_a_text_between_two_groups_whose_model_made_room_keeps_nobody_waiting():
    """It goes on first where its model is; without it, it kept the only stream from the other."""
    clock = VirtualClock()
    custom = FakeCheckpoint(replace(CUSTOM.capabilities, max_letters=40))
    engine = FakeEngine(
        [custom, BASE], costs=Costs(step=0.07), clock=clock, loaded=False, room=1, start=False
    )
    loop = engine.loop

    def finish() -> None:
        while loop.run_once(wait=False) or loop.models._busy:
            wait_until(lambda: not loop.models._busy or loop.commands._commands.qsize())

    assert engine.worker.load("custom")
    loop.models.register("custom", engine.worker.slots("custom"))
    other = engine.submit(ask(voice=Clone(VECTOR)))
    clock.sleep(1.0)
    text = engine.submit(ask("A sentence of some thirty letters. And another one that is as long."))
    finish()
    assert text.end
    assert other.end
    assert {text.end.reason, other.end.reason} == {"finished"}


def test_a_model_that_never_fits_is_told():
    with FakeEngine([CUSTOM], loaded=False, room=0) as engine:
        with pytest.raises(OutOfMemory):
            engine.submit(ask()).collect()
        with pytest.raises(OutOfMemory):
            engine.load("custom")


def test_a_load_that_fails_ends_those_who_waited_for_it():
    with FakeEngine([CUSTOM, BASE], loaded=False) as engine:
        engine.worker.load = _broken  # type: ignore[method-assign]
        stream = engine.submit(ask())
        with pytest.raises(EngineError, match="custom could not be loaded"):
            stream.collect()
        assert engine.alive


def _broken(talker: str) -> range:
    raise ValueError("weights of another shape")


def test_unloading_right_after_speaking_waits_for_the_device_to_know() -> None:
    with FakeEngine() as engine:
        [name] = engine.capabilities()
        for _ in range(20):
            engine.submit(SpeechRequest("Hello.", Preset("ryan"))).collect()
            engine.unload(name)
            assert engine.stats().talkers == ()
