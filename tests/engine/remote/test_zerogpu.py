"""A device for one request at a time in a forked process, as on ZeroGPU."""

from __future__ import annotations

import os
import pickle
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from engine import (
    Clone,
    Engine,
    EngineError,
    EngineSettings,
    InvalidText,
    NotCapable,
    Preset,
    SpeechRequest,
    UnknownVoice,
)
from engine.remote.remote_engine import RemoteEngine
from engine.remote.zerogpu import MAX_SECONDS, LentDevice, run_request, seconds_to_lend
from engine.requests.sequence import Sequence
from engine.testing import Costs, FakeCheckpoint, FakeEngine, fake_capabilities
from tests.support.serving import wait_until

HELLO = SpeechRequest("Hello there, and good evening.", Preset("ryan"), seed=4)
LONG = replace(HELLO, text="x" * 400)

# What forks a process with threads in it is warned since Python 3.12; ZeroGPU does it all the same.
pytestmark = [
    pytest.mark.skipif(not hasattr(os, "fork"), reason="ZeroGPU forks, and this system cannot"),
    pytest.mark.filterwarnings("ignore:This process.*is multi-threaded:DeprecationWarning"),
]


def near(task: Any, *, duration: Any = None) -> Any:
    """Lends nothing: runs it here, on copies as between processes."""
    return lambda *values: task(*pickle.loads(pickle.dumps(values)))


def checked_request(request: SpeechRequest) -> Sequence:
    with lent() as engine:
        return engine._input_processor.process(request).sequence


def checkpoint() -> FakeCheckpoint:
    return FakeCheckpoint(fake_capabilities(clone=True))


def there(costs: Costs | None = None) -> Engine:
    return FakeEngine([checkpoint()], EngineSettings(max_num_seqs=1), costs=costs, start=False)


def lent(lend: Any = near, make: Callable[[], Engine] = there, **settings: Any) -> RemoteEngine:
    loaded = checkpoint()
    names = {loaded.capabilities.name: loaded}
    return RemoteEngine(names, EngineSettings(**settings), LentDevice(make, lend))


@pytest.fixture(scope="module")
def spaces() -> Any:
    from tests.support.zerogpu import spaces

    return spaces


@pytest.fixture(scope="module")
def expected() -> bytes:
    with FakeEngine([checkpoint()]) as engine:
        return engine.submit(HELLO).collect().tobytes()


def test_a_forked_process_speaks_what_any_engine_speaks(expected: bytes, spaces: Any) -> None:
    with lent(spaces.GPU) as engine:
        for _ in range(2):
            stream = engine.submit(HELLO)
            chunks = list(stream)
            assert b"".join(chunk.pcm.tobytes() for chunk in chunks) == expected
            assert stream.end is not None
            assert (stream.end.reason, stream.end.seed) == ("finished", 4)
        assert len(chunks) > 1  # as they are generated
        assert engine.stats().ended == {"finished": 2}


def test_requests_are_refused_before_a_device_is_asked_for() -> None:
    calls: list[Any] = []

    def lend(task: Any, **_: Any) -> Any:
        return lambda *given: calls.append(given) or near(task)(*given)

    with lent(lend) as engine:
        for wrong, kind in (
            (replace(HELLO, text=""), InvalidText),
            (replace(HELLO, voice=Preset("nobody")), UnknownVoice),
            (replace(HELLO, open_text=True), NotCapable),
        ):
            with pytest.raises(kind):
                engine.submit(wrong)
    assert calls == []


def test_who_leaves_a_forked_process_is_spoken_to_no_longer(spaces: Any) -> None:
    def slow() -> Engine:
        return there(Costs(step=0.01))

    with lent(spaces.GPU, slow) as engine:
        with engine.submit(LONG) as stream:
            next(iter(stream))
        wait_until(lambda: stream.end, 60)
        assert stream.end is not None
        assert stream.end.reason == "cancelled"
        assert engine.submit(HELLO).collect().size  # and the next one is served


def test_a_file_that_is_cancelled_holds_the_device_no_longer() -> None:
    made: list[Engine] = []

    def slow() -> Engine:
        made.append(there(Costs(step=0.01)))
        return made[0]

    with lent(make=slow) as engine:
        stream = engine.submit(replace(LONG, live=False))
        wait_until(lambda: made and made[0].stats().steps > 3, 60)
        stream.cancel()
        wait_until(lambda: stream.end, 60)
        assert stream.end is not None
        assert stream.end.reason == "cancelled"
        assert made[0].stats().steps < 200
        assert made[0].stats().running == 0


def test_a_request_left_in_the_middle_frees_its_slot() -> None:
    engine = there()
    for _ in range(3):
        parts = run_request(engine, checked_request(LONG))
        next(parts)
        parts.close()
        assert engine.stats().running == 0
    assert list(run_request(engine, checked_request(HELLO)))[-1].reason == "finished"  # type: ignore[union-attr]


@pytest.mark.parametrize("where", ["near", "forked"])
def test_a_fault_there_is_told_here(where: str, spaces: Any) -> None:
    def broken() -> Engine:
        raise OSError("no such device")

    with lent(near if where == "near" else spaces.GPU, broken) as engine:
        with pytest.raises(EngineError, match=r"no such device|OSError"):
            engine.submit(HELLO).collect()
        with pytest.raises(EngineError, match=r"no such device|OSError"):
            engine.clone(np.ones(24_000, np.float32))
        assert engine.alive


def test_a_device_that_is_taken_away_ends_the_stream() -> None:
    def lend(task: Any, **_: Any) -> Any:
        def part(*given: Any) -> Iterator[Any]:
            yield next(near(task)(*given))

        return part

    with lent(lend) as engine, pytest.raises(EngineError, match="taken away"):
        engine.submit(LONG).collect()


@pytest.mark.parametrize("where", ["near", "forked"])
def test_voices_are_copied_there(where: str, spaces: Any) -> None:
    heard = np.sin(np.arange(48_000) / 20).astype(np.float32)
    with lent(near if where == "near" else spaces.GPU) as engine:
        clone = engine.clone(heard, "A tone.")
        with FakeEngine([checkpoint()]) as here:
            expected = here.clone(heard, "A tone.")
        assert isinstance(clone, Clone)
        assert np.array_equal(clone.vector, expected.vector)
        assert engine.submit(replace(HELLO, voice=clone)).collect().size


def test_models_stay_as_they_are() -> None:
    with lent() as engine:
        name = next(iter(engine.capabilities()))
        for change in (engine.load, engine.unload):
            with pytest.raises(NotCapable):
                change(name)


def test_more_is_asked_of_a_device_for_more_text() -> None:
    texts = "Hi.", "x" * 300, "好" * 300
    seconds = [seconds_to_lend(checked_request(replace(HELLO, text=text))) for text in texts]
    assert seconds == sorted(set(seconds))
    long = checked_request(replace(HELLO, text="好" * 1300))
    assert seconds_to_lend(long) == MAX_SECONDS


def test_the_stand_in_refuses_what_zerogpu_refuses(spaces: Any) -> None:
    async def coroutine() -> None: ...

    async def stream() -> Any:
        yield 1

    for task in (coroutine, stream):
        with pytest.raises(NotImplementedError):
            spaces.GPU(task)
