"""The models of the Engine page without a browser: loaded, unloaded, exchanged, refused."""

from __future__ import annotations

import asyncio
import re
import threading
from collections.abc import AsyncIterator, Iterator
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from engine import Library, Preset, SpeechRequest, Stats, open_engine
from engine.testing import Costs, FakeCheckpoint, FakeEngine
from engine.testing import fake_capabilities as fake
from studio.context import Studio
from studio.takes.live_takes import LiveTakes
from studio.takes.take_store import Takes
from studio.ui.tabs.models import FOREIGN, OFFER, ModelsTab

ROOT = Path(__file__).parents[4]
CUSTOM = FakeCheckpoint(fake("custom", clone=False, design=False))
BASE = FakeCheckpoint(fake("<base>", speakers=(), preset=False, design=False))


@pytest.fixture
def studio(tmp_path: Path) -> Iterator[Studio]:
    with FakeEngine([CUSTOM, BASE], loaded=False, costs=Costs(step=0.02)) as engine:
        yield Studio(engine, Library(tmp_path / "voices"), LiveTakes(), Takes(tmp_path / "takes"))


def last(statuses: AsyncIterator[Any]) -> Any:
    async def all_of() -> list[Any]:
        return [each async for each in statuses]

    return asyncio.run(all_of())[-1]


def press(studio: Studio, what: str, model: str) -> tuple[str, str]:
    event: Any = SimpleNamespace(_data={"do": what, "model": model})
    message: tuple[str, str] = last(ModelsTab(studio).change(event))
    return message


def offered(table: str) -> list[str]:
    """What the buttons do that can be pressed."""
    return re.findall('data-do="([a-z]+)" data-model="[^"]+">', table)


def test_a_row_for_each_says_what_it_can_do(studio: Studio) -> None:
    table = ModelsTab(studio).table()
    assert table.count("<li>") == 2
    assert "&lt;base&gt;" in table
    assert "<base>" not in table
    assert offered(table) == ["load", "load"]


def test_models_come_and_go(studio: Studio) -> None:
    spoken, table = press(studio, "load", "custom")
    assert spoken.startswith("**custom**")
    assert studio.engine.stats().talkers == ("custom",)
    assert offered(table) == ["unload", "load"]
    spoken, table = press(studio, "unload", "custom")
    assert studio.engine.stats().talkers == ()
    assert offered(table) == ["load", "load"]


def test_the_page_does_not_wait_for_what_the_engine_says(
    studio: Studio, monkeypatch: pytest.MonkeyPatch
) -> None:
    stats, threads = studio.engine.stats, set[int]()

    def watched() -> Stats:
        threads.add(threading.get_ident())
        return stats()

    monkeypatch.setattr(studio.engine, "stats", watched)
    press(studio, "load", "custom")
    assert threads
    assert threading.get_ident() not in threads


def test_who_speaks_is_not_unloaded(studio: Studio) -> None:
    stream = studio.engine.submit(SpeechRequest("x" * 60, Preset("ryan")))
    next(iter(stream))
    assert "Try again when it is idle" in press(studio, "unload", "custom")[0]
    stream.cancel()


def test_a_model_nobody_knows_is_told(studio: Studio) -> None:
    assert press(studio, "load", "nobody")[0].startswith("⚠️ No model is called 'nobody'")


@pytest.mark.parametrize("model", ["", " ", "/nowhere", "no hub id"])
def test_what_cannot_be_loaded_leaves_all_as_it_was(studio: Studio, model: str) -> None:
    message, _, _ = last(ModelsTab(studio).add(model))
    assert message.startswith("⚠️ ")
    assert list(studio.engine.capabilities()) == ["custom", "<base>"]


def test_a_folder_is_added_beside_the_models_that_speak(studio: Studio, golden_dir: Path) -> None:
    model = str(golden_dir / "custom_voice-1b7")
    stream = studio.engine.submit(SpeechRequest("x" * 60, Preset("ryan")))
    message, table, _ = last(ModelsTab(studio).add(model))
    assert message.startswith("**custom_voice-1b7**")
    assert table.count("<li>") == 3
    assert set(studio.engine.stats().talkers) == {"custom", "custom_voice-1b7"}
    added = studio.engine.capabilities()["custom_voice-1b7"].speakers
    assert set(added) <= set(studio.choices().speakers())
    stream.collect()
    assert "in the list of models already" in last(ModelsTab(studio).add(model))[0]


def test_a_model_with_another_codec_is_offered_as_a_replacement(
    tmp_path: Path, golden_dir: Path
) -> None:
    mini, other = str(ROOT / "presets" / "mini"), str(golden_dir / "custom_voice-1b7")
    with open_engine([mini], "cpu") as engine:
        studio = Studio(engine, Library(tmp_path / "v"), LiveTakes(), Takes(tmp_path / "t"))
        tab = ModelsTab(studio)
        message, _, instead = last(tab.add(other))
        assert OFFER in message
        assert instead["visible"]
        assert list(engine.capabilities()) == ["mini"]
        message, table, instead = last(tab.replace(other))
        assert message.startswith("**custom_voice-1b7**")
        assert table.count("<li>") == 1
        assert not instead["visible"]
        stream = engine.submit(SpeechRequest("One.", Preset("ryan"), max_frames=3))
        assert stream.collect().size


def test_a_guest_changes_nothing(studio: Studio, golden_dir: Path) -> None:
    strangers = replace(studio, guests=True)
    assert "data-do" not in ModelsTab(strangers).table()
    assert FOREIGN in press(strangers, "load", "custom")[0]
    model = str(golden_dir / "custom_voice-1b7")
    assert FOREIGN in last(ModelsTab(strangers).add(model))[0]
    assert studio.engine.stats().talkers == ()
    assert list(studio.engine.capabilities()) == ["custom", "<base>"]
