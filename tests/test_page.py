"""The plain page: what its buttons do, and that Gradio serves it."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from engine import (
    SAMPLE_RATE,
    Clone,
    Costs,
    EngineSettings,
    FakeCheckpoint,
    FakeEngine,
    InvalidSetting,
    Library,
    Preset,
    SpeechRequest,
    fake_capabilities,
)
from studio.page import Page, listen, pulses

ROOT = Path(__file__).parent.parent
TEXT = "Good evening, everybody."
VISITOR: Any = SimpleNamespace(session_hash="one")


@pytest.fixture
def library(tmp_path: Path) -> Library:
    library = Library(tmp_path / "voices")
    library.save("My Own", Clone(np.ones(16, np.float32)), note="mine")
    return library


@pytest.fixture
def engine() -> Iterator[FakeEngine]:
    with FakeEngine() as engine:
        yield engine


@pytest.fixture
def slow() -> Iterator[FakeEngine]:
    with FakeEngine(settings=EngineSettings(slots=1), costs=Costs(step=0.02)) as engine:
        yield engine


def spoken(page: Page, *, text: str = TEXT, **changes: str) -> list[tuple[Any, ...]]:
    """All updates of a press on Speak."""
    fields = {"voice": "ryan", "language": "auto", "seed": "3", "instruct": "", **changes}

    async def press() -> list[tuple[Any, ...]]:
        speaking = page.speak(text, session=VISITOR, **fields)
        return [update async for update in speaking]

    return asyncio.run(press())


def buttons(update: tuple[Any, ...]) -> list[bool]:
    return [button["interactive"] for button in update[2:]]


def takes(updates: list[tuple[Any, ...]]) -> list[Any]:
    return [update[1] for update in updates if isinstance(update[1], tuple)]


def test_a_take_is_the_engines_own_samples(engine: FakeEngine, library: Library) -> None:
    updates = spoken(Page(engine, library))
    [(rate, samples)] = takes(updates)
    expected = engine.submit(SpeechRequest(TEXT, Preset("ryan"), seed=3)).collect()
    assert rate == SAMPLE_RATE
    assert samples.dtype == np.int16
    np.testing.assert_array_equal(samples, expected)
    assert "seed 3" in updates[-2][0]


def test_speak_and_stop_take_turns(engine: FakeEngine, library: Library) -> None:
    updates = spoken(Page(engine, library))
    assert all(buttons(update) == [False, True] for update in updates[:-1])
    assert buttons(updates[-1]) == [True, False]


@pytest.mark.parametrize("voice", ["ryan", "My Own", ""])
def test_every_voice_of_the_list_speaks(engine: FakeEngine, library: Library, voice: str) -> None:
    page = Page(engine, library)
    assert not voice or voice in {name for _, name in page.voices()}
    assert len(takes(spoken(page, voice=voice))) == 1


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"text": ""}, "no text"),
        ({"voice": "gone"}, "No voice"),
        ({"seed": "-1"}, "seed"),
        ({"seed": "x"}, "seed"),
        ({"language": "klingon"}, "speaks"),
        ({"voice": "My Own", "instruct": "softly"}, "no instruction"),
    ],
)
def test_a_refusal_is_told_and_the_page_goes_on(
    engine: FakeEngine, library: Library, changes: dict[str, str], says: str
) -> None:
    page = Page(engine, library)
    last = spoken(page, **changes)[-1]
    assert says in last[0]
    assert buttons(last) == [True, False]
    assert len(takes(spoken(page))) == 1


def test_stop_frees_the_slot_and_keeps_what_was_made(slow: FakeEngine, library: Library) -> None:
    page, said = Page(slow, library), list[tuple[Any, ...]]()

    async def press() -> None:
        async for update in page.speak("x" * 400, "ryan", "auto", "3", "", VISITOR):
            said.append(update)
            if str(update[0]).startswith("Speaking"):
                page.stop(VISITOR)

    asyncio.run(press())
    [(_, samples)] = takes(said)
    assert 0 < len(samples) < 400 * 1920
    assert "Stopped" in said[-2][0]
    assert len(slow.submit(SpeechRequest("hi", Preset("ryan"))).collect()) > 0  # the only slot


def test_a_visitor_stops_nobody_else(slow: FakeEngine, library: Library) -> None:
    page = Page(slow, library)

    async def press() -> list[Any]:
        said = []
        async for update in page.speak("x" * 30, "ryan", "auto", "3", "", VISITOR):
            page.stop(SimpleNamespace(session_hash="two"))  # type: ignore[arg-type]
            said.append(update)
        return said

    [(_, samples)] = takes(asyncio.run(press()))
    whole = slow.submit(SpeechRequest("x" * 30, Preset("ryan"), seed=3)).collect()
    np.testing.assert_array_equal(samples, whole)


def test_leaving_the_page_cancels(slow: FakeEngine, library: Library) -> None:
    """Gradio closes the generator when the tab is gone."""
    page = Page(slow, library)

    async def leave() -> None:
        speaking: Any = page.speak("x" * 400, "ryan", "auto", "3", "", VISITOR)
        for _ in range(3):
            await anext(speaking)
        await speaking.aclose()

    asyncio.run(leave())
    stream = slow.submit(SpeechRequest("hi", Preset("ryan")))
    assert len(stream.collect()) > 0


def test_while_nothing_comes_there_is_a_pulse(slow: FakeEngine) -> None:
    """So that Gradio notices who has left while waiting in the queue."""

    async def wait() -> tuple[int, int]:
        with slow.submit(SpeechRequest("x" * 10, Preset("ryan"), seed=1)) as first:
            second = slow.submit(SpeechRequest("hi", Preset("ryan"), seed=1))
            news = [chunk async for chunk in pulses(second, period=0.01)]
            assert first.end
        return sum(chunk is None for chunk in news), sum(chunk is not None for chunk in news)

    idle, chunks = asyncio.run(wait())
    assert idle > 0
    assert chunks > 0


def test_instructions_are_closed_with_the_reason(library: Library) -> None:
    plain = FakeCheckpoint(fake_capabilities(instruct=False))
    with FakeEngine() as able, FakeEngine([plain]) as unable:
        assert Page(able, library).instruction("ryan")["interactive"]
        saved = Page(able, library).instruction("My Own")
        small = Page(unable, library).instruction("ryan")
    assert not saved["interactive"]
    assert "takes no instruction" in saved["placeholder"]
    assert not small["interactive"]
    assert "follows no instructions" in small["placeholder"]


def test_gradio_serves_it(tmp_path: Path) -> None:
    visit = [sys.executable, "-m", "tests.page_visit", str(tmp_path)]
    ran = subprocess.run(visit, cwd=ROOT, capture_output=True, check=False, text=True, timeout=60)
    assert ran.returncode == 0, ran.stderr
    outputs = json.loads(ran.stdout.splitlines()[-1])
    assert any("real time, seed 3" in str(output[0]) for output in outputs)
    assert any(str(output[1]).endswith(".wav") for output in outputs)


def test_a_taken_port_is_told_before_anything_is_loaded() -> None:
    with listen("127.0.0.1", 0) as taken, pytest.raises(InvalidSetting, match="taken.*--port"):
        listen("127.0.0.1", taken.getsockname()[1])
