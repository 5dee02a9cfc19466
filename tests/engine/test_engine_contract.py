"""What every engine promises (engine/speech_engine.py), wherever its steps run."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import replace
from functools import partial
from threading import Thread
from typing import Protocol

import numpy as np
import pytest

from engine import (
    FRAME_SAMPLES,
    Busy,
    Clone,
    EngineClosed,
    EngineError,
    InvalidText,
    InvalidVoice,
    NotCapable,
    Pcm,
    Preset,
    RequestError,
    SpeechEngine,
    SpeechStream,
    UnknownVoice,
)
from engine.testing import Costs, FakeEngine, fake_capabilities
from tests.support.engines.kinds import HELLO, KINDS, LONG, SLOW, Opened
from tests.support.serving import wait_until

soon = partial(wait_until, seconds=60.0)  # on a busy machine


class Open(Protocol):
    def __call__(self, costs: Costs | None = None, **settings: object) -> Opened: ...


@pytest.fixture(params=KINDS)
def opened(request: pytest.FixtureRequest) -> Iterator[Open]:
    with ExitStack() as closing:
        kind = KINDS[request.param]
        yield lambda costs=None, **settings: closing.enter_context(kind(costs, **settings))


@pytest.fixture(scope="module")
def expected() -> Pcm:
    with FakeEngine() as engine:
        sound = engine.submit(HELLO).collect()
    assert sound.dtype == np.int16
    assert len(sound) == FRAME_SAMPLES * len(HELLO.text)
    assert np.abs(sound).max() > 1000
    return sound


def fill(engine: SpeechEngine) -> tuple[list[SpeechStream], Busy]:
    """Submit until it is refused."""
    streams: list[SpeechStream] = []
    while len(streams) < 50:
        try:
            streams.append(engine.submit(LONG))
        except Busy as busy:
            return streams, busy
    raise AssertionError("it takes any number of requests")


def drained(stream: SpeechStream) -> Exception | None:
    """The error that reading it to its end raises."""
    try:
        stream.collect()
    except EngineError as error:
        return error
    return None


def test_all_speak_the_same_and_count_it(opened: Open, expected: Pcm) -> None:
    engine = opened().engine
    streams = [engine.submit(HELLO) for _ in range(3)]
    for stream in streams:
        chunks = list(stream)
        assert np.array_equal(np.concatenate([chunk.pcm for chunk in chunks]), expected)
        assert [chunk.index for chunk in chunks] == list(range(len(chunks)))
        assert all(len(chunk.pcm) == FRAME_SAMPLES * chunk.frames for chunk in chunks)
        assert stream.end is not None
        assert (stream.end.reason, stream.end.frames) == ("finished", len(HELLO.text))
        assert stream.end.seed == stream.seed == 4
        assert list(stream) == []  # over is over
    soon(lambda: engine.stats().ended == {"finished": 3})
    stats = engine.stats()
    assert stats.audio_seconds == pytest.approx(3 * 0.08 * len(HELLO.text))
    assert stats.first_audio is not None
    assert 0 <= stats.first_audio[0] < 60
    assert (stats.running, stats.waiting, stats.refused) == (0, 0, 0)
    assert engine.alive
    assert not engine.ended


def test_a_stream_is_read_in_an_event_loop_too(opened: Open, expected: Pcm) -> None:
    engine = opened().engine

    async def read() -> list[Pcm]:
        return [chunk.pcm async for chunk in engine.submit(HELLO)]

    assert np.array_equal(np.concatenate(asyncio.run(read())), expected)


def test_a_drawn_seed_is_told_and_gives_the_same_again(opened: Open) -> None:
    engine = opened(max_waiting=40).engine
    first = engine.submit(replace(HELLO, seed=None))
    again = engine.submit(replace(HELLO, seed=first.seed))
    assert np.array_equal(first.collect(), again.collect())
    assert first.end is not None
    assert first.end.seed == first.seed
    streams = [engine.submit(replace(HELLO, seed=None)) for _ in range(20)]
    assert len({stream.seed for stream in streams}) > 10


def test_who_waits_knows_the_place_in_the_queue(opened: Open) -> None:
    kind = opened(SLOW, max_num_seqs=1, max_waiting=4)
    if not kind.open_text:
        pytest.skip("ZeroGPU tells nobody's place")
    engine = kind.engine
    *speaking, last = [engine.submit(LONG) for _ in range(3)]
    next(speaking[0])
    soon(lambda: last.position is not None)
    assert last.estimate is not None
    for stream in speaking:
        stream.cancel()
    next(last)
    assert last.position is None


def test_what_cannot_be_spoken_is_refused_by_submit(opened: Open) -> None:
    engine = opened().engine
    for wrong, kind in (
        (replace(HELLO, text=""), InvalidText),
        (replace(HELLO, voice=Preset("nobody")), UnknownVoice),
        (replace(HELLO, seed=-1), RequestError),
    ):
        with pytest.raises(kind):
            engine.submit(wrong)
    assert engine.submit(HELLO).collect().size


def test_a_trained_voice_is_data_that_every_engine_carries(opened: Open) -> None:
    rows = np.linspace(-1, 1, 48, dtype=np.float32).reshape(3, 16)
    vector, digest = np.ones(16, np.float32), fake_capabilities().digest
    mine = replace(HELLO, voice=Clone(vector, model="fake", rows=rows, digest=digest))
    with FakeEngine() as plain:
        wanted, other = (plain.submit(each).collect() for each in (mine, HELLO))
    assert not np.array_equal(wanted, other)
    engine = opened().engine
    assert np.array_equal(engine.submit(mine).collect(), wanted)
    elsewhere = Clone(vector, model="their model", rows=rows, digest="other weights")
    with pytest.raises(InvalidVoice, match="trained for their model"):
        engine.submit(replace(HELLO, voice=elsewhere))


def test_busy_is_raised_by_submit_and_is_never_an_end(opened: Open) -> None:
    engine = opened(SLOW, max_num_seqs=1, max_waiting=2).engine
    streams, refused = fill(engine)
    assert len(streams) >= 2
    assert refused.retry_after >= 1
    assert engine.stats().refused == 1
    for stream in streams:
        stream.cancel()
    assert {type(drained(stream)) for stream in streams} == {type(None)}
    assert {stream.end.reason for stream in streams if stream.end} == {"cancelled"}
    soon(lambda: engine.submit(HELLO).collect().size)


def test_a_request_that_waits_longer_than_is_bearable_is_refused(opened: Open) -> None:
    """Before the queue is full: what each request ahead takes is known."""
    engine = opened(SLOW, max_num_seqs=1, max_waiting=40, max_wait=30.0).engine
    engine.submit(HELLO).collect()  # something is measured
    soon(lambda: engine.stats().running == 0)
    if not engine.stats().admission.step:
        pytest.skip("no step of its is measured")
    soon(lambda: _is_full(engine))


def _is_full(engine: SpeechEngine) -> bool:
    streams, refused = fill(engine)
    for stream in streams:
        stream.cancel()
    for stream in streams:
        drained(stream)
    return len(streams) < 10 and refused.retry_after > 30


def test_visitors_who_wait_their_turn_are_all_served(opened: Open) -> None:
    """Five with twelve lines each, three at a time, with places for four."""
    engine = opened(Costs(step=0.001), max_num_seqs=2, max_waiting=2).engine
    sizes: list[int] = []

    async def line(number: int) -> None:
        while True:
            try:
                stream = engine.submit(replace(HELLO, seed=number))
            except Busy as busy:
                await asyncio.sleep(min(busy.retry_after, 0.01))
            else:
                return sizes.append(sum([len(chunk.pcm) async for chunk in stream]))

    async def visitor(first: int) -> None:
        for start in range(first, first + 12, 3):
            await asyncio.gather(*map(line, range(start, start + 3)))

    async def visitors() -> None:
        await asyncio.gather(*(visitor(12 * number) for number in range(5)))

    asyncio.run(visitors())
    assert sizes == [FRAME_SAMPLES * len(HELLO.text)] * 60


def test_cancelling_frees_the_slot_at_once(opened: Open) -> None:
    engine = opened(SLOW, max_num_seqs=1, max_waiting=4).engine
    for leave in (SpeechStream.cancel, lambda stream: stream.__exit__()):
        stream = engine.submit(LONG)
        next(stream)
        leave(stream)
        assert drained(stream) is None
        assert stream.end is not None
        assert stream.end.reason == "cancelled"
        assert stream.end.frames < 1000  # of 4000
    abandoned = engine.submit(LONG)
    next(abandoned)
    del abandoned
    assert engine.submit(HELLO).collect().size
    soon(lambda: engine.stats().running == 0)
    assert engine.stats().steps < 3000  # of 12,000


def test_open_text_is_spoken_as_it_arrives_or_refused_by_submit(opened: Open) -> None:
    kind = opened()
    request = replace(HELLO, text="", open_text=True)
    if not kind.open_text:
        with pytest.raises(NotCapable):
            kind.engine.submit(request)
        return
    with FakeEngine() as alone:
        whole = alone.submit(replace(HELLO, layout="streamed")).collect()
    stream = kind.engine.submit(request)
    for word in ("Hello ", "there, and ", "good ", "evening."):
        stream.append(word)
    with pytest.raises(InvalidText):
        stream.append("\x00")
    stream.close_text()
    assert np.array_equal(stream.collect(), whole)
    assert stream.text_tokens == len(HELLO.text)
    with pytest.raises(InvalidText):
        stream.append("more")


def test_recordings_are_encoded(opened: Open) -> None:
    kind = opened()
    if not kind.open_text:
        pytest.skip("its stand-in lends generators alone; see test_zerogpu.py")
    clone = kind.engine.clone(np.linspace(-1, 1, 24_000, dtype=np.float32), "hello")
    assert isinstance(clone, Clone)
    assert clone.in_context
    assert kind.engine.submit(replace(HELLO, voice=clone)).collect().size


@pytest.mark.parametrize("drains", [False, True])
def test_closing_ends_what_is_open_once(opened: Open, drains: bool) -> None:
    engine = opened(SLOW, max_num_seqs=1, max_waiting=4).engine
    streams = [engine.submit(LONG) for _ in range(3)]
    next(streams[0])
    assert (engine.drain(0.05) if drains else engine.close()) in (None, False)
    for stream in streams:
        assert isinstance(drained(stream), EngineClosed)
        assert stream.end is not None
        assert stream.end.reason == "error"
        assert drained(stream) is None  # raised once
    assert engine.ended
    assert not engine.alive
    engine.close()
    for call in (lambda: engine.submit(HELLO), lambda: engine.clone(np.ones(24_000, np.float32))):
        with pytest.raises(EngineClosed):
            call()


def test_draining_lets_what_runs_finish(opened: Open) -> None:
    engine = opened(SLOW).engine
    stream = engine.submit(HELLO)
    sizes: list[int] = []
    reader = Thread(target=lambda: sizes.append(stream.collect().size))
    reader.start()
    assert engine.drain(60)
    reader.join(60)
    assert sizes == [FRAME_SAMPLES * len(HELLO.text)]


def test_what_speaks_may_die(opened: Open) -> None:
    """What was heard ends once with an error, and what was not is tried again where it can be; then
    the engine serves again, or has ended for good."""
    kind = opened(SLOW, max_num_seqs=1, max_waiting=4)
    engine = kind.engine
    heard = engine.submit(LONG)
    next(heard)
    waiting = engine.submit(HELLO)
    kind.die()
    assert isinstance(drained(heard), EngineError)
    assert heard.end is not None
    assert heard.end.reason == "error"
    assert heard.end.frames > 0
    assert drained(heard) is None  # raised once
    assert drained(waiting) is None or not kind.tries_again
    assert waiting.end is not None
    if kind.dies_for_good:
        soon(lambda: engine.ended)
        with pytest.raises(EngineClosed):
            engine.submit(HELLO)
        return
    soon(lambda: engine.alive)
    assert engine.submit(HELLO).collect().size
    assert not engine.ended
