"""The two transports without a browser: any listener can put the whole take together."""

from __future__ import annotations

import asyncio
import base64
import threading
from collections.abc import AsyncIterator
from contextlib import aclosing, suppress

import fastapi
import httpx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine import InvalidText, Pcm, Preset, SpeechRequest, speaking_seconds
from engine.testing import FakeEngine
from studio.takes import live_takes
from studio.takes.event_transport import EventTransport, Payload
from studio.takes.live_take import PIECE, About, LiveTake
from studio.takes.live_takes import LiveTakes
from tests.support.player_stage import Performance, noise, steady
from tests.support.serving import OwnTime

Payloads = AsyncIterator[Payload]


class Listener:
    """Puts samples together as the page does: what is known is dropped, a gap is asked for."""

    def __init__(self, takes: LiveTakes) -> None:
        self.takes = takes
        self.heard = np.zeros(0, np.int16)
        self.asked = 0

    def take(self, payload: Payload) -> None:
        if payload["start"] > len(self.heard):
            self.ask(payload["id"], payload["start"])
        self.hear(payload)
        if payload["ended"]:
            self.ask(payload["id"], payload["made"])

    def ask(self, id: str, until: int) -> None:
        while len(self.heard) < until:
            answer = self.takes.missing(id, len(self.heard))
            assert answer is not None
            self.hear(answer)
            self.asked += 1

    def hear(self, payload: Payload) -> None:
        pcm = np.frombuffer(base64.b64decode(payload["pcm"]), "<i2")
        known = len(self.heard) - payload["start"]
        assert known >= 0
        self.heard = np.concatenate([self.heard, pcm[known:]])


async def payloads_of(takes: LiveTakes, stream: Performance) -> list[Payload]:
    return [payload async for payload in takes.play(lambda: stream)]


@settings(max_examples=15, deadline=None)
@given(
    chunks=st.integers(0, 12),
    speed=st.sampled_from([8.0, 40.0]),
    luck=st.lists(st.booleans(), min_size=50, max_size=50),
)
def test_any_payload_may_be_missed(chunks: int, speed: float, luck: list[bool]) -> None:
    async def run() -> None:
        takes = LiveTakes(raw=False)
        stream = steady(chunks, speed)
        payloads = await payloads_of(takes, stream)
        lost = {index for index in range(len(payloads) - 1) if luck[index]}
        listener = Listener(takes)
        for index, payload in enumerate(payloads):
            if index not in lost:
                listener.take(payload)
        assert np.array_equal(listener.heard, stream.pcm)
        if not any({index, index + 1} <= lost for index in lost):
            assert listener.asked == 0  # each piece came twice

    asyncio.run(run())


def test_the_story_has_an_order() -> None:
    async def run() -> list[Payload]:
        stream, reports = Performance(noise(4), [0.0, 0.05], queued=600), list[Payload]()
        async for payload in LiveTakes().play(lambda: stream, lambda *_: "name"):
            reports.append(payload)
            if len(reports) == 3:
                stream.queued = 0.0
        return reports

    payloads = asyncio.run(run())
    states = [payload["state"] for payload in payloads]
    order = ["waiting", "speaking", "ended", "done"]
    assert states == sorted(states, key=order.index)
    assert states.count("waiting") >= 3  # a closed page is noticed at each of them
    assert [payload["seq"] for payload in payloads] == list(range(1, len(payloads) + 1))
    assert payloads[0]["position"] == 2
    assert payloads[-1]["ended"] == {
        "reason": "finished", "message": "", "seed": 7, "take": "name"
    }  # fmt: skip


def test_no_listener_waits_while_another_request_is_submitted() -> None:
    threads: list[int] = []

    def submit() -> Performance:
        threads.append(threading.get_ident())
        return steady(2, 40)

    def speed() -> float:
        threads.append(threading.get_ident())
        return 1.0

    async def run() -> list[Payload]:
        return [payload async for payload in LiveTakes(speed=speed).play(submit)]

    assert asyncio.run(run())[-1]["state"] == "done"
    assert len(threads) == 2
    assert threading.get_ident() not in threads


def test_a_refusal_is_the_only_payload() -> None:
    def refuse() -> Performance:
        raise InvalidText("There is nothing to say. Type a sentence.")

    async def run() -> list[Payload]:
        return [payload async for payload in LiveTakes().play(refuse)]

    (payload,) = asyncio.run(run())
    assert payload["ended"] is not None
    assert payload["ended"]["message"] == "There is nothing to say. Type a sentence."


def test_a_take_that_cannot_be_kept_is_still_heard() -> None:
    def fail(*_: object) -> str:
        raise OSError("no space left on device")

    async def run() -> list[Payload]:
        return [payload async for payload in LiveTakes().play(lambda: steady(2, 40), fail)]

    last = asyncio.run(run())[-1]
    assert last["state"] == "done"
    assert last["ended"] is not None
    assert "could not be saved" in last["ended"]["message"]


def test_a_broken_stream_says_so_once() -> None:
    class Broken(Performance):
        async def __aiter__(self) -> AsyncIterator[object]:
            async for chunk in super().__aiter__():
                yield chunk
            raise RuntimeError("a bug")

    async def run() -> list[Payload]:
        return await payloads_of(LiveTakes(), Broken(noise(2), [0.0]))

    payloads = asyncio.run(run())
    endings = [payload["ended"] for payload in payloads if payload["ended"]]
    assert [ending["reason"] for ending in endings] == ["error"]
    assert "Try again" in endings[0]["message"]


@pytest.mark.parametrize("way", ["closed", "cancelled", "left"])
def test_whoever_goes_away_stops_the_engine(way: str) -> None:
    async def run() -> float:
        takes, stream = LiveTakes(), steady(500, speed=1)
        async with aclosing(takes.play(lambda: stream)) as payloads:
            first = await anext(payloads)
            if way == "left":
                takes.leave(first["id"])
                assert [payload async for payload in payloads][-1]["state"] == "done"
            if way == "cancelled":
                rest = asyncio.create_task(anext(payloads))
                await asyncio.sleep(0.05)
                rest.cancel()
                with suppress(asyncio.CancelledError):
                    await rest
        with OwnTime() as took:
            while stream.end is None:
                await asyncio.sleep(0.005)
        assert stream.end.reason == "cancelled"
        return took.seconds

    assert asyncio.run(run()) < 20  # 80 to its end


async def client(takes: LiveTakes) -> httpx.AsyncClient:
    app = fastapi.FastAPI()
    app.include_router(takes.router())
    return httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://here")


@pytest.mark.parametrize("start", [0, 1, 1920, 7 * 3840])
def test_the_raw_route_gives_the_same_sound_from_anywhere(start: int) -> None:
    async def run() -> tuple[Pcm, Pcm, list[Payload]]:
        takes, stream = LiveTakes(), steady(8, speed=8)
        payloads = takes.play(lambda: stream)
        first = await anext(payloads)
        assert first["raw"] is not None
        async with await client(takes) as here:
            reading = asyncio.create_task(here.get(f"/{first['raw']}?from={start}"))
            rest = [payload async for payload in payloads]
            answer = await reading
        assert answer.status_code == 200
        return stream.pcm, np.frombuffer(answer.content, "<i2"), rest

    made, heard, rest = asyncio.run(run())
    assert np.array_equal(heard, made[start:])
    assert rest[-1]["state"] == "done"


@pytest.mark.parametrize("raw", [True, False])
def test_the_raw_route_knows_only_its_own_takes(raw: bool) -> None:
    async def run() -> int:
        takes = LiveTakes(raw=raw)
        first = await anext(aiter(takes.play(lambda: steady(2))))
        assert (first["raw"] is not None) == raw
        id = "unknown" if raw else first["id"]
        async with await client(takes) as here:
            return (await here.get(f"/timbre/live/{id}")).status_code

    assert asyncio.run(run()) == 404


def test_the_engine_streams_through() -> None:
    async def run() -> tuple[Pcm, Listener, list[Payload], list[Pcm]]:
        takes, kept = LiveTakes(raw=False), []
        request = SpeechRequest("A short sentence.", Preset("ryan"), seed=3)
        with FakeEngine() as engine:
            whole = await asyncio.to_thread(engine.submit(request).collect)
            keep = lambda pcm, *_: kept.append(pcm) or "take"  # noqa: E731
            payloads = [each async for each in takes.play(lambda: engine.submit(request), keep)]
        listener = Listener(takes)
        for payload in payloads:
            listener.take(payload)
        return whole, listener, payloads, kept

    whole, listener, payloads, kept = asyncio.run(run())
    assert np.array_equal(listener.heard, whole)
    assert np.array_equal(kept[0], whole)
    assert payloads[-1]["ended"] == {
        "reason": "finished", "message": "", "seed": 3, "take": "take"
    }  # fmt: skip


@pytest.mark.parametrize("speed", [None, 1.2, 0.5])
def test_a_slow_machine_says_how_much_to_hold_before_it_is_played(speed: float | None) -> None:
    text = "One sentence that takes a while to say, and then another one that takes as long."

    async def run() -> list[Payload]:
        takes = LiveTakes(raw=False, speed=lambda: speed)
        stream = Performance(noise(4), [0.0, 0.05], queued=0.2)
        about = About("clara", text)
        return [payload async for payload in takes.play(lambda: stream, about=about)]

    payloads = asyncio.run(run())
    if speed != 0.5:
        assert {payload["hold"] for payload in payloads} == {0.0}
        return
    # half as fast: as long as all of it lasts, and a margin
    assert payloads[0]["hold"] == pytest.approx(1.1 * speaking_seconds(text))
    assert payloads[-1]["hold"] == 0.0
    holds = [payload["hold"] for payload in payloads]
    assert holds == sorted(holds, reverse=True)


def test_the_event_goes_on_where_the_raw_route_was() -> None:
    async def run() -> tuple[int, int]:
        take = LiveTake(steady(200, speed=1000), About("Ada", "Hello."))
        event, raw, got = EventTransport(take, "raw"), take.read(0), 0
        while not take.ended or got < take.made - PIECE:
            got += len(await anext(raw)) // 2
            await event.wait()
            event.payload()
        await raw.aclose()  # it breaks
        await event.wait()
        return got, event.payload()["start"]

    got, start = asyncio.run(run())
    assert 0 < got - PIECE <= start <= got  # the last piece may have been lost on its way


@pytest.mark.parametrize("way", ["stopped", "page left"])
def test_what_was_heard_is_kept_unless_somebody_stopped_it(way: str) -> None:
    """A page that is closed or loaded again has stopped nothing."""

    async def run() -> tuple[bool, str]:
        takes, stream = LiveTakes(), steady(500, speed=4)
        kept: list[bool] = []
        playing = takes.play(lambda: stream, lambda pcm, end, left: str(kept.append(left)))
        first = await anext(playing)
        await anext(takes._takes[first["id"]].read(0))
        if way == "stopped":
            takes.leave(first["id"])
        else:
            async with await client(takes) as page:
                (await page.post(f"{first['raw']}/leave")).raise_for_status()
        await playing.aclose()
        while not kept:
            await asyncio.sleep(0.01)
        assert stream.end is not None
        return kept[0], stream.end.reason

    assert asyncio.run(run()) == (way == "stopped", "cancelled")


@pytest.mark.parametrize("after", ["nothing", "the rest", "leaving"])
def test_a_take_whose_connection_broke_waits_for_its_listener(
    after: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its player reads on at the sample that it has reached; who leaves or stays away ends it."""
    monkeypatch.setattr(live_takes, "RESUME", 0.5 if after == "nothing" else 600.0)

    async def run() -> None:
        takes, stream = LiveTakes(), steady(40 if after == "the rest" else 5000, speed=4)
        kept: list[Pcm] = []
        playing = takes.play(lambda: stream, lambda pcm, *_: str(kept.append(pcm)))
        id = (await anext(playing))["id"]
        reading = takes._takes[id].read(0)
        heard = await anext(reading)
        await reading.aclose()
        await playing.aclose()
        assert not stream.left
        if after == "leaving":
            takes.leave(id)
        if after == "the rest":
            async for piece in takes._takes[id].read(len(heard) // 2):
                heard += piece
            while (missing := takes.missing(id, len(heard) // 2)) and missing["state"] != "done":
                await asyncio.sleep(0.01)
            assert heard == stream.pcm.astype("<i2").tobytes()
            assert kept[0].tobytes() == heard
        while not kept:
            await asyncio.sleep(0.01)
        assert stream.left is (after != "the rest")

    asyncio.run(run())
