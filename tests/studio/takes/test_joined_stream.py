"""Many requests as one stream, and what it leaves to the event loop."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from engine import Preset, SpeechRequest, SpeechStream
from engine.testing import Costs, FakeEngine
from studio.context import Studio
from studio.takes.joined_stream import JoinedStream
from studio.ui.endpoints import Endpoints
from tests.support.serving import on_loop

LINE, LONG = (SpeechRequest(text, Preset("ryan")) for text in ("A line.", "A line. " * 40))


@pytest.fixture
def places(engine: FakeEngine, monkeypatch: pytest.MonkeyPatch) -> list[bool]:
    """Whether each request was submitted on an event loop, which a long text would hold up."""
    submit, found = FakeEngine.submit, list[bool]()

    def watched(engine: FakeEngine, request: SpeechRequest) -> SpeechStream:
        found.append(on_loop())
        return submit(engine, request)

    monkeypatch.setattr(FakeEngine, "submit", watched)
    return found


async def heard(sound: Any) -> list[Any]:
    return [each async for each in sound]


def test_later_requests_are_submitted_in_a_thread(engine: FakeEngine, places: list[bool]) -> None:
    stream = JoinedStream(engine, [(LINE, 0.0)] * 5)
    assert asyncio.run(heard(stream))
    assert places == [False] * 5


def test_endpoints_submit_in_a_thread(studio: Studio, places: list[bool]) -> None:
    assert asyncio.run(heard(Endpoints(studio).stream("A line.", "ryan")))
    speak = Endpoints(studio).speak("A line.", "ryan", "auto", "", "", "wav")
    assert len(asyncio.run(heard(speak))) == 1
    assert places == [False, False]


def test_what_is_stopped_while_it_submits_goes_on_with_nothing() -> None:
    late = list[SpeechStream]()

    def stopped(request: SpeechRequest) -> SpeechStream:
        late.append(submit(request))
        stream.cancel()
        return late[-1]

    with FakeEngine(costs=Costs(step=0.01)) as engine:
        stream = JoinedStream(engine, [(LINE, 0.0), *[(LONG, 0.0)] * 4], ahead=1)
        submit, engine.submit = engine.submit, stopped  # type: ignore[method-assign]
        asyncio.run(heard(stream))
        for each in late:
            each.collect()
    assert [each.end.reason for each in late if each.end] == ["cancelled"]
