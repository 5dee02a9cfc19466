"""Streams: chunks in order, one end, errors last, and leaving early."""

from __future__ import annotations

import asyncio
import gc
import threading
import weakref
from contextlib import suppress
from types import SimpleNamespace

import numpy as np
import pytest

from engine import (
    Chunk,
    End,
    EngineClosed,
    EngineSettings,
    Preset,
    SpeechRequest,
    SpeechStream,
    StepFailed,
)
from engine.requests.output_queue import OutputQueue
from engine.stream import LONGEST_REST, MOST_JOINED, Handles
from engine.testing import Costs, FakeEngine
from engine.types import FRAME_SAMPLES
from tests.support.serving import OwnTime, wait_until

WORDS = "hello there, listener"
FAST, SLOW = Costs(), Costs(step=0.01)
PROGRESS = SimpleNamespace(seed=1, position=None, estimate=0.0, token_count=0)


def engine(costs: Costs = FAST, **settings: object) -> FakeEngine:
    return FakeEngine(costs=costs, settings=EngineSettings(**{"max_num_seqs": 4, **settings}))


def request(words: str = WORDS, **more: object) -> SpeechRequest:
    return SpeechRequest(words, Preset("ryan"), **more)


def fail_from(fake: FakeEngine, frames: int) -> None:
    """The next request's steps raise after so many frames."""

    def fault(plan: object) -> None:
        if any(len(speech.codes) >= frames for speech in fake.worker.running.values()):
            raise RuntimeError("the device burst into flames")

    fake.worker.fault = fault


def test_many_async_listeners_in_one_loop():
    async def listen(fake: FakeEngine) -> list[int]:
        async def one() -> int:
            async with fake.submit(request()) as stream:
                return sum([chunk.frames async for chunk in stream])

        return await asyncio.gather(*(one() for _ in range(20)))

    with engine(SLOW, max_num_seqs=16) as fake:
        assert asyncio.run(listen(fake)) == [len(WORDS)] * 20


def test_async_errors_come_after_the_chunks():
    async def listen(fake: FakeEngine) -> None:
        async for _ in fake.submit(request()):
            pass

    with engine() as fake:
        fail_from(fake, 5)
        with pytest.raises(StepFailed):
            asyncio.run(listen(fake))


def read_all(stream: SpeechStream) -> None:
    with suppress(StepFailed):
        list(stream)


async def read_all_async(stream: SpeechStream) -> None:
    async with stream:
        with suppress(StepFailed):
            async for _ in stream:
                pass


@pytest.mark.parametrize("read", [read_all, lambda stream: asyncio.run(read_all_async(stream))])
def test_a_stream_that_ended_with_an_error_is_freed_at_once(read):
    """Not kept by the traceback of its own error, with all that its reader had at hand."""
    gc.disable()
    try:
        with engine() as fake:
            fail_from(fake, 0)
            stream = fake.submit(request())
            kept = weakref.ref(stream)
            read(stream)
            assert stream.end.reason == "error"
            del stream
            wait_until(lambda: kept() is None)  # the engine may be waking its reader
    finally:
        gc.enable()


def test_leaving_an_async_block_early_cancels():
    async def leave(fake: FakeEngine) -> SpeechStream:
        async with fake.submit(request("x" * 500)) as stream:
            async for _ in stream:
                break
        return stream

    with engine(SLOW) as fake:
        stream = asyncio.run(leave(fake))
        wait_until(lambda: stream.end)
        assert stream.end.reason == "cancelled"


def test_a_cancelled_task_frees_its_slot():
    async def leave(fake: FakeEngine) -> None:
        async def listen() -> None:
            async with fake.submit(request("x" * 500)) as stream:
                async for _ in stream:
                    pass

        task = asyncio.create_task(listen())
        await asyncio.sleep(0.05)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    with engine(SLOW) as fake:
        asyncio.run(leave(fake))
        wait_until(lambda: not fake.worker.running)


def test_cancel_is_quiet_and_chunks_already_here_can_be_taken():
    with engine(SLOW) as fake:
        stream = fake.submit(request("x" * 500))
        wait_until(lambda: len(stream._output) >= 3)
        stream.cancel()
        stream.cancel()
        assert len(list(stream)) >= 3
        stream.cancel()
    assert stream.end.reason == "cancelled"


def test_an_unread_stream_costs_nobody_anything():
    with engine(SLOW) as fake:
        silent = fake.submit(request("x" * 60))
        assert fake.submit(request()).collect().size
        wait_until(lambda: silent.end)
        assert silent.end.reason == "finished"
        assert silent.collect().size == 60 * FRAME_SAMPLES  # it is all there, late as it is


def test_a_mailbox_takes_one_end_and_nothing_after():
    box, end = OutputQueue(), End("finished", 0, 1)
    woken = []
    box.notify(lambda: woken.append(1))
    box.put(end)
    box.put(End("cancelled", 0, 1))
    box.put(Chunk(0, np.zeros(FRAME_SAMPLES, np.int16), np.zeros((1, 16), np.int64)))
    box.notify(lambda: woken.append(2))
    assert box.end is end
    assert box.take() is None
    assert woken == [1, 2]


def test_closing_the_engine_wakes_every_listener():
    fake = engine(SLOW)
    streams = [fake.submit(request("x" * 500)) for _ in range(6)]
    reports = []

    def listen(stream: SpeechStream) -> None:
        try:
            stream.collect()
        except EngineClosed as error:
            reports.append(error)

    listeners = [threading.Thread(target=listen, args=(stream,)) for stream in streams]
    for each in listeners:
        each.start()
    fake.close()
    for each in listeners:
        each.join(30)
    assert len(reports) == 6


def test_a_listener_with_seconds_in_hand_gets_fewer_and_longer_chunks():
    """At 20 times real time."""
    words = "x" * 300  # 24 s of audio

    async def listen(fake: FakeEngine) -> list[Chunk]:
        return [chunk async for chunk in fake.submit(request(words, seed=7)).joined()]

    with engine(Costs(step=0.004)) as fake:
        plain = list(fake.submit(request(words, seed=7)))
        joined = asyncio.run(listen(fake))
    assert [chunk.index for chunk in joined] == list(range(len(joined)))
    for part in ("pcm", "codes"):
        collected = [
            np.concatenate([getattr(chunk, part) for chunk in way]) for way in (plain, joined)
        ]
        assert np.array_equal(*collected)
    assert len(joined) <= len(plain) / 2
    assert max(chunk.seconds for chunk in joined) <= MOST_JOINED + 1


def test_the_end_is_told_at_once_and_with_it_what_was_collected():
    output = OutputQueue()
    stream = SpeechStream(output, PROGRESS, Handles(lambda: None, None))

    def chunk(frames: int) -> Chunk:
        return Chunk(0, np.zeros(frames * FRAME_SAMPLES, np.int16), np.zeros((frames, 16)))

    def finish() -> None:
        for item in (chunk(1), chunk(2), End("finished", 603, 1)):
            output.put(item)

    async def listen() -> tuple[list[int], float]:
        output.put(chunk(600))
        heard = []
        with OwnTime() as took:
            async for piece in stream.joined():
                if not heard:
                    asyncio.get_running_loop().call_soon(finish)
                heard.append(piece.frames)
        return heard, took.seconds

    heard, seconds = asyncio.run(listen())
    assert heard == [600, 3]
    assert seconds < LONGEST_REST
