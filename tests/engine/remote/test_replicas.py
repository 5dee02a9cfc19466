"""A cluster's engine on replicas in this process: what is streamed, retried, refused and lost."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from functools import partial
from threading import Event

import pytest

from engine import (
    Busy,
    EngineError,
    EngineSettings,
    NotCapable,
    OutOfMemory,
    Preset,
    SpeechRequest,
    StepFailed,
    TooMany,
    UnknownVoice,
)
from engine.remote.remote_engine import RemoteEngine
from engine.remote.replicas import ReplicaPool
from engine.testing import Costs, FakeCheckpoint, FakeEngine
from tests.support.cluster.local_replicas import LocalReplicas
from tests.support.serving import wait_until

HELLO = SpeechRequest("Hello there, and good evening.", Preset("ryan"), seed=4)
LONG = replace(HELLO, text="x" * 300)
SLOW = Costs(step=0.01)
VERY_SLOW = Costs(step=0.05)

soon = partial(wait_until, seconds=30.0)  # on a busy machine


@contextmanager
def cluster(
    count: int = 2, costs: Costs | None = None, **settings: int
) -> Iterator[tuple[RemoteEngine, LocalReplicas]]:
    configured = EngineSettings(**{"max_num_seqs": 8, **settings})
    here = configured.model_copy(update={"max_waiting": 100})  # for each replica
    with ExitStack() as running:
        engines = {
            f"replica-{number}": running.enter_context(FakeEngine(settings=configured, costs=costs))
            for number in range(count)
        }
        replicas = LocalReplicas(engines)
        checkpoint = FakeCheckpoint()
        names = {checkpoint.capabilities.name: checkpoint}
        engine = RemoteEngine(names, here, ReplicaPool(replicas, here))
        yield running.enter_context(engine), replicas


@pytest.fixture
def pair() -> Iterator[tuple[RemoteEngine, LocalReplicas]]:
    with cluster() as made:
        yield made


@pytest.fixture(scope="module")
def expected() -> bytes:
    with FakeEngine() as engine:
        return engine.submit(HELLO).collect().tobytes()


def test_who_leaves_at_once_is_not_spoken_to(pair) -> None:
    engine, replicas = pair
    engine.admission_hook = lambda: lambda stream: stream.cancel()
    left = Event()
    engine.transport._call_soon(left.wait)  # the loop has something else to do until he has left
    stream = engine.submit(HELLO)
    left.set()
    assert stream.collect().size == 0
    assert stream.end is not None
    assert stream.end.reason == "cancelled"
    assert replicas.asked == []


def test_a_replica_that_is_full_is_passed_over_and_asked_again_once_all_are() -> None:
    with cluster(2, SLOW, max_num_seqs=1, max_waiting=0) as (engine, replicas):
        first, second = engine.submit(LONG), engine.submit(LONG)
        next(first), next(second)
        replicas.speaking["replica-1"] = -9  # seems to have the most room
        third = engine.submit(HELLO)
        soon(lambda: set(replicas.asked[2:]) == {"replica-0", "replica-1"})
        assert third.end is None
        first.cancel()
        assert third.collect().size


def test_a_request_that_nobody_has_heard_is_tried_again_elsewhere(expected: bytes) -> None:
    with cluster(2, VERY_SLOW, max_num_seqs=1, max_wait=600) as (engine, replicas):
        speaking = [engine.submit(LONG) for _ in range(2)]
        for stream in speaking:
            next(stream)
        waiting = engine.submit(HELLO)
        soon(lambda: len(replicas.asked) >= 3)
        lost = replicas.asked[2]
        replicas.kill(lost)
        speaking[1 - replicas.asked.index(lost)].cancel()
        assert waiting.collect().tobytes() == expected
        assert replicas.asked[3] != lost


def test_open_text_is_sent_again_with_the_request() -> None:
    with cluster(2, SLOW) as (engine, replicas):
        stream = engine.submit(replace(HELLO, text="", open_text=True))
        soon(lambda: replicas.asked)
        stream.append("Hello th")  # one word is certain, which is enough for nothing
        replicas.kill(replicas.asked[0])
        stream.append("ere, and good evening.")
        stream.close_text()
        assert stream.collect().size == 1920 * len(HELLO.text)


def test_a_stream_that_is_heard_is_never_spliced() -> None:
    with cluster(2, SLOW) as (engine, replicas):
        stream = engine.submit(LONG)
        next(stream)
        replicas.kill(replicas.asked[0])
        with pytest.raises(EngineError, match="has stopped"):
            stream.collect()
        assert len(replicas.asked) == 1
        assert engine.submit(HELLO).collect().size  # and the next one is served


def test_without_any_replica_it_says_so() -> None:
    with cluster(1) as (engine, replicas):
        soon(lambda: engine.stats().talkers)
        replicas.kill("replica-0")
        with pytest.raises(EngineError, match="No replica"):
            engine.submit(HELLO).collect()
        soon(lambda: not engine.stats().talkers)
        assert engine.alive  # it is there again with the next replica


def test_models_are_loaded_everywhere_and_exchanged_by_deployment(pair) -> None:
    engine, replicas = pair
    (name,) = engine.capabilities()
    engine.unload(name)
    assert {each.look()[1].talkers for each in replicas.there.values()} == {()}
    engine.load(name)
    assert {each.look()[1].talkers for each in replicas.there.values()} == {(name,)}
    with pytest.raises(NotCapable):
        engine.add("other", FakeCheckpoint())


def test_the_replicas_are_added_up(pair) -> None:
    engine, replicas = pair
    for stream in [engine.submit(HELLO) for _ in range(4)]:
        stream.collect()
    assert set(replicas.asked) == {"replica-0", "replica-1"}
    soon(lambda: engine.stats().ended.get("finished") == 4)
    stats = engine.stats()
    assert stats.slots == 16
    assert sum(each.ended.get("finished", 0) for each in stats.replicas.values()) == 4
    assert stats.audio_seconds == pytest.approx(4 * 0.08 * len(HELLO.text))
    assert stats.first_audio is not None


@pytest.mark.parametrize("end", [RemoteEngine.close, lambda engine: engine.drain(0.1)])
def test_the_end_leaves_the_replicas(end: Callable[[RemoteEngine], object]) -> None:
    with cluster(1, SLOW) as (engine, replicas):
        next(engine.submit(LONG))
        end(engine)
        soon(lambda: replicas.there["replica-0"].look()[1].running == 0)
        assert replicas.there["replica-0"].engine.alive


@pytest.mark.parametrize(
    "error",
    [
        Busy(3, 7.5),
        TooMany("Wait.", 3.0),
        UnknownVoice("No voice is called '{name}'.", name="{bob}"),
        StepFailed("It failed ({error}).", error=ValueError("x")),
        OutOfMemory("No room."),
    ],
    ids=lambda error: type(error).__name__,
)
def test_errors_survive_the_way(error: EngineError) -> None:
    copy = pickle.loads(pickle.dumps(error))
    assert type(copy) is type(error)
    assert (str(copy), copy.message.key, vars(copy)) == (
        str(error),
        error.message.key,
        vars(error),
    )
    assert dict(copy.message.values) == dict(error.message.values)


def test_who_has_the_model_is_asked_first(pair: tuple[RemoteEngine, LocalReplicas]) -> None:
    engine, replicas = pair
    (name,) = engine.capabilities()
    replicas.there["replica-0"].engine.unload(name)
    soon(lambda: [len(each.talkers) for each in engine.stats().replicas.values()] == [0, 1])
    streams = [engine.submit(HELLO) for _ in range(6)]
    assert all(len(stream.collect()) for stream in streams)
    assert replicas.asked == ["replica-1"] * 6


def test_where_nobody_has_the_model_anyone_is_asked(
    pair: tuple[RemoteEngine, LocalReplicas],
) -> None:
    engine, _ = pair
    (name,) = engine.capabilities()
    engine.unload(name)
    soon(lambda: not engine.stats().talkers)
    assert len(engine.submit(HELLO).collect())
