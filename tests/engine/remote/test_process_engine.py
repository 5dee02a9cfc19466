"""An engine in a process of its own: the same sound, ends and errors, and what its death means."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing
from dataclasses import replace
from functools import partial
from pathlib import Path
from threading import Event, Thread
from typing import Any, cast

import numpy as np
import pytest

from engine import (
    CheckpointError,
    EngineClosed,
    EngineError,
    EngineSettings,
    InvalidSetting,
    Preset,
    SpeechRequest,
)
from engine.plan import Checkpoint
from engine.remote import process
from engine.remote.process import EngineProcess, process_engine
from engine.remote.protocol import Lost
from engine.remote.remote_engine import MOST_LOSSES, RemoteEngine
from engine.testing import Costs, FakeCheckpoint, FakeEngine, fake_capabilities
from tests.support.serving import wait_until

if sys.platform == "win32":
    pytest.skip("a process gets its socket by number, as on POSIX", allow_module_level=True)

ROOT = Path(__file__).parents[3]
HELLO = SpeechRequest("Hello there, and good evening.", Preset("ryan"), seed=4)
LONG = replace(HELLO, text="x" * 300)
SLOW = Costs(step=0.01)

soon = partial(wait_until, seconds=60.0)  # on a busy machine
Open = Callable[..., RemoteEngine]


def fake(
    costs: Costs | None, settings: dict[str, int], checkpoints: Mapping[str, Checkpoint]
) -> FakeEngine:
    configured = EngineSettings(**{"max_num_seqs": 4, **settings})  # type: ignore[arg-type]
    there = tuple(cast(FakeCheckpoint, each) for each in checkpoints.values())
    return FakeEngine(there or (FakeCheckpoint(),), configured, costs)


def broken_at_first(mark: Path, checkpoints: Mapping[str, Checkpoint]) -> FakeEngine:
    """The first process's device fails at every call, as a card does after some errors."""
    engine = fake(None, {}, checkpoints)
    if not mark.exists():
        mark.touch()

        def fault(*_: object) -> None:
            raise RuntimeError("illegal memory access")

        engine.worker.fault = fault
        engine.worker.reset = fault  # type: ignore[method-assign]
    return engine


def no_model(checkpoints: Mapping[str, Checkpoint]) -> FakeEngine:
    raise CheckpointError("There is no model in {folder}.", folder="there")


def no_process(checkpoints: Mapping[str, Checkpoint]) -> FakeEngine:
    os._exit(7)


def model_once(mark: Path, checkpoints: Mapping[str, Checkpoint]) -> FakeEngine:
    if mark.exists():
        no_model(checkpoints)
    mark.touch()
    return fake(None, {}, checkpoints)


def only_once(mark: Path, checkpoints: Mapping[str, Checkpoint]) -> FakeEngine:
    if mark.exists():
        os._exit(7)
    mark.touch()
    return fake(None, {}, checkpoints)


@pytest.fixture
def open_engine() -> Iterator[Open]:
    opened: list[RemoteEngine] = []

    def start(costs: Costs | None = None, **settings: int) -> RemoteEngine:
        opened.append(process_engine(partial(fake, costs, settings)))
        return opened[-1]

    yield start
    for engine in opened:
        engine.close()


def its(engine: RemoteEngine) -> EngineProcess:
    return cast(EngineProcess, engine.transport)


def kill(engine: RemoteEngine) -> None:
    its(engine)._process.kill()


def test_what_is_made_and_held_back_there_is_known_here(open_engine: Open) -> None:
    engine = open_engine(SLOW)
    stream = engine.submit(replace(LONG, live=False))  # nothing of it is sent before its end
    [sequence] = engine._registry.sequences()
    soon(lambda: sequence.made > 20)
    assert (sequence.delivered, stream.end) == (0, None)


def test_methods_answer_and_refuse_like_those_of_any_engine(open_engine: Open) -> None:
    engine = open_engine(SLOW)
    assert engine.clone(np.ones(24_000, np.float32), "One.").codes is not None
    (name,) = engine.capabilities()
    other = FakeCheckpoint(fake_capabilities("other"))
    engine.add("other", other)
    assert set(engine.capabilities()) == {name, "other"}
    with pytest.raises(InvalidSetting, match="in the list of models already"):
        engine.add("other", other)
    engine.unload("other")
    engine.exchange("other", "third", FakeCheckpoint(fake_capabilities("third")))
    engine.load("third")
    assert engine.stats().talkers == (name, "third")
    engine.remove("third")
    assert set(engine.capabilities()) == {name}
    assert engine.stats().talkers == (name,)
    stream = engine.submit(LONG)
    next(stream)
    with pytest.raises(EngineError):
        engine.unload(name)


def test_a_process_that_dies_ends_its_requests_and_another_one_serves(open_engine: Open) -> None:
    engine = open_engine(SLOW)
    engine.add("other", FakeCheckpoint(fake_capabilities("other")))
    running = engine.submit(LONG)
    next(running)
    kill(engine)
    with pytest.raises(EngineClosed, match="starting anew"):
        running.collect()
    soon(lambda: engine.alive)
    assert len(engine.submit(HELLO).collect())
    assert len(engine.capabilities()) == 2
    assert not engine.ended


def test_an_engine_that_cannot_go_on_in_its_process_goes_on_in_another(tmp_path: Path) -> None:
    with closing(process_engine(partial(broken_at_first, tmp_path / "mark"))) as engine:
        first = its(engine)._process
        with pytest.raises(EngineError):  # a step fails, and the worker cannot be cleared
            engine.submit(HELLO).collect()
        soon(lambda: its(engine)._process is not first and engine.alive)
        assert first.poll() == process.ENDED
        assert engine.submit(HELLO).collect().size
        assert not engine.ended


def test_processes_that_die_before_they_speak_are_given_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with closing(process_engine(partial(only_once, tmp_path / "mark"))) as engine:
        kill(engine)
        soon(lambda: engine.ended)
        with pytest.raises(EngineClosed):
            engine.submit(HELLO)
        with pytest.raises(EngineClosed):
            engine.load("fake")
        assert engine.stats().steps == 0
    monkeypatch.setattr(process, "MOST_LOSSES", 1)
    with closing(process_engine(partial(fake, None, {}))) as engine:
        first = its(engine)._process
        kill(engine)
        soon(lambda: its(engine)._process is not first and engine.alive)
        kill(engine)
        soon(lambda: engine.ended)


def test_a_process_that_cannot_be_made_again_is_the_end(tmp_path: Path) -> None:
    with closing(process_engine(partial(model_once, tmp_path / "mark"))) as engine:
        kill(engine)
        soon(lambda: engine.ended, seconds=30)
        with pytest.raises(EngineClosed, match="no model in there"):
            engine.submit(HELLO)


def test_closing_while_another_process_starts_ends_that_one_too(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    engine = process_engine(partial(fake, None, {}))
    first, starts, pair = its(engine)._process, Event(), socket.socketpair

    def late_pair() -> tuple[socket.socket, socket.socket]:
        starts.set()
        soon(its(engine)._closed.is_set)
        time.sleep(0.2)  # `close` has written to the old process
        return pair()

    monkeypatch.setattr(socket, "socketpair", late_pair)
    kill(engine)
    assert starts.wait(60)
    closing_thread = Thread(target=engine.close, daemon=True)
    closing_thread.start()
    closing_thread.join(30)
    assert not closing_thread.is_alive()
    assert its(engine)._process is not first
    assert its(engine)._process.poll() == 0


def test_who_is_told_of_a_loss_hears_it_before_any_listener_and_not_of_a_close() -> None:
    told: list[tuple[bool, object]] = []
    made = partial(fake, SLOW, {})
    engine = process_engine(made, on_loss=lambda: told.append((its(engine).alive, stream.end)))
    with closing(engine):
        stream = engine.submit(LONG)
        next(stream)
        kill(engine)
        with pytest.raises(EngineClosed):
            list(stream)
        assert told == [(True, None)]
        soon(lambda: its(engine)._lost is None)
    assert len(told) == 1


def test_what_has_ended_here_is_not_spoken_there(open_engine: Open) -> None:
    engine = open_engine(SLOW)
    stream = engine.submit(replace(HELLO, max_frames=4000, ignore_end=True))  # 40 s
    next(stream)
    (sequence,) = engine._registry.sequences()
    engine.hear(sequence.id, Lost(EngineClosed(process.LOST)))
    soon(lambda: not engine.stats().running, seconds=20)


def test_an_answer_that_is_late_is_not_waited_for(
    open_engine: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(process, "STATS_SECONDS", 0.1)
    engine = open_engine()
    its(engine)._process.send_signal(signal.SIGSTOP)
    for _ in range(3):
        engine.stats()
    its(engine)._process.send_signal(signal.SIGCONT)
    assert not its(engine)._calls


def test_a_process_that_stops_is_replaced_and_what_nobody_heard_is_begun_again(
    open_engine: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    with FakeEngine() as plain:
        expected = plain.submit(HELLO).collect()
    engine = open_engine(SLOW, max_num_seqs=1, max_wait=600)
    heard, waiting, left = (engine.submit(each) for each in (LONG, HELLO, HELLO))
    text = engine.submit(replace(HELLO, text="", open_text=True))
    text.append("Hello ")
    next(heard)
    first = its(engine)._process
    first.send_signal(signal.SIGSTOP)
    monkeypatch.setattr(process, "NOTICED", 2)
    monkeypatch.setattr(process, "MOST_SILENT", 4)
    soon(lambda: engine.restarting)
    assert not engine.alive
    left.cancel()
    text.append("there.")
    soon(lambda: its(engine)._process is not first)
    monkeypatch.undo()  # it may load as long as others do
    text.close_text()
    with pytest.raises(EngineClosed, match="starting anew"):
        heard.collect()
    assert np.array_equal(waiting.collect(), expected)
    assert text.collect().size == 1920 * len("Hello there.")
    assert left.collect().size == 0
    assert engine.alive
    assert not engine.restarting
    assert not engine._lost


def made_slowly(begun: Path, go: Path, checkpoints: Mapping[str, Checkpoint]) -> FakeEngine:
    """From the second time on only when it may."""
    if begun.exists():
        begun.with_name("again").touch()
        wait_until(go.exists, seconds=60)
    begun.touch()
    return fake(SLOW, {"max_num_seqs": 1}, checkpoints)


def test_who_leaves_while_another_process_starts_does_not_come_back(tmp_path: Path) -> None:
    begun, go = tmp_path / "begun", tmp_path / "go"
    with closing(process_engine(partial(made_slowly, begun, go))) as engine:
        heard, left, waiting = (engine.submit(each) for each in (LONG, LONG, HELLO))
        next(heard)
        kill(engine)
        soon((tmp_path / "again").exists)
        left.cancel()
        go.touch()
        assert len(waiting.collect())
        for _ in left:
            pass
        assert left.end is not None
        assert left.end.reason == "cancelled"
        assert not engine._lost


def test_a_request_that_ends_each_process_is_given_up(open_engine: Open) -> None:
    engine = open_engine(SLOW, max_num_seqs=1)
    first, second = engine.submit(LONG), engine.submit(HELLO)
    next(first)  # the second one waits
    lost = engine._lost[second._progress.id]  # type: ignore[attr-defined]
    lost.extend([""] * (MOST_LOSSES - 1))
    kill(engine)
    for stream in (first, second):
        with pytest.raises(EngineClosed):
            stream.collect()


def loads_for_ever(checkpoints: Mapping[str, Checkpoint]) -> FakeEngine:
    while True:
        time.sleep(1)


def stops_while_it_loads(checkpoints: Mapping[str, Checkpoint]) -> FakeEngine:
    os.kill(os.getpid(), signal.SIGSTOP)
    return fake(None, {}, checkpoints)


@pytest.mark.parametrize(
    ("make", "limit", "says"),
    [
        (loads_for_ever, "MOST_LOADING", "within an hour"),
        (stops_while_it_loads, "MOST_SILENT_LOADING", "did not answer"),
    ],
)
def test_loading_has_a_limit(
    make: Any, limit: str, says: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(process, limit, 10)
    monkeypatch.setattr(process, "LOOK_SECONDS", 0.2)
    with pytest.raises(EngineError, match=says):
        process_engine(make)


def test_an_engine_that_cannot_be_opened_says_why() -> None:
    with pytest.raises(CheckpointError, match="no model in there"):
        process_engine(no_model)
    with pytest.raises(EngineError, match="ended while it started"):
        process_engine(no_process)


def test_signals_of_a_terminal_are_for_the_server_alone(open_engine: Open) -> None:
    engine = open_engine()
    for each in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        its(engine)._process.send_signal(each)
    assert len(engine.submit(HELLO).collect())
    assert engine.drain(30)
    assert its(engine)._process.wait(30) == 0


def tells_and_loads_for_ever(mark: Path, checkpoints: Mapping[str, Checkpoint]) -> FakeEngine:
    mark.with_suffix(".part").write_text(str(os.getpid()))
    mark.with_suffix(".part").rename(mark)
    return loads_for_ever(checkpoints)


def test_it_ends_with_the_server_also_while_it_loads(tmp_path: Path) -> None:
    mark = tmp_path / "pid"
    script = (
        "import os, sys, threading\n"
        "from functools import partial\n"
        "from pathlib import Path\n"
        "from tests.engine.remote import test_process_engine as own\n"
        "mark = Path(sys.argv[1])\n"
        "make = partial(own.tells_and_loads_for_ever, mark)\n"
        "threading.Thread(target=own.process_engine, args=(make,), daemon=True).start()\n"
        "own.soon(mark.exists)\n"
        "os.kill(os.getpid(), 9)\n"
    )
    command = [sys.executable, "-c", script, str(mark)]
    assert subprocess.run(command, cwd=ROOT, check=False).returncode == -9
    soon(lambda: _gone(int(mark.read_text())))


def test_it_ends_with_the_server_however_that_ends() -> None:
    script = (
        "from functools import partial\n"
        "from tests.engine.remote.test_process_engine import process_engine, fake, its\n"
        "engine = process_engine(partial(fake, None, {}))\n"
        "print(its(engine)._process.pid, flush=True)\n"
        "import os; os.kill(os.getpid(), 9)\n"
    )
    command = [sys.executable, "-c", script]
    run = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert run.returncode == -9, run.stderr
    soon(lambda: _gone(int(run.stdout)))


def _gone(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
        return state == "Z"  # nobody in a container may wait for it
    except OSError:
        return True
