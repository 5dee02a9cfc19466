"""The models of the Engine page without a browser: loaded, unloaded, exchanged, refused."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from engine import Library, Preset, SpeechRequest
from engine.testing import Costs, FakeCheckpoint, FakeEngine
from engine.testing import fake_capabilities as fake
from studio.context import Studio
from studio.takes.live_takes import LiveTakes
from studio.takes.take_store import Takes
from studio.ui.tabs.models import FOREIGN, ModelsTab

CUSTOM = FakeCheckpoint(fake("custom", clone=False, design=False))
BASE = FakeCheckpoint(fake("<base>", speakers=(), preset=False, design=False))


@pytest.fixture
def studio(tmp_path: Path) -> Iterator[Studio]:
    with FakeEngine([CUSTOM, BASE], loaded=False, costs=Costs(step=0.02)) as engine:
        yield Studio(engine, Library(tmp_path / "voices"), LiveTakes(), Takes(tmp_path / "takes"))


def last(told: AsyncIterator[Any]) -> Any:
    async def all_of() -> list[Any]:
        return [each async for each in told]

    return asyncio.run(all_of())[-1]


def press(studio: Studio, what: str, model: str) -> tuple[str, str]:
    event: Any = SimpleNamespace(_data={"do": what, "model": model})
    said: tuple[str, str] = last(ModelsTab(studio).change(event))
    return said


def test_a_row_for_each_says_what_it_can_do(studio: Studio) -> None:
    table = ModelsTab(studio).table()
    assert table.count("<li>") == 2
    assert "&lt;base&gt;" in table
    assert "<base>" not in table
    assert table.count('data-do="load"') == 2


def test_models_come_and_go(studio: Studio) -> None:
    said, table = press(studio, "load", "custom")
    assert said.startswith("**custom**")
    assert studio.engine.stats().talkers == ("custom",)
    assert table.count('data-do="unload"') == 1
    said, table = press(studio, "unload", "custom")
    assert studio.engine.stats().talkers == ()
    assert "unload" not in table


def test_who_speaks_is_not_unloaded(studio: Studio) -> None:
    stream = studio.engine.submit(SpeechRequest("x" * 60, Preset("ryan")))
    next(iter(stream))
    assert "Try again when it is idle" in press(studio, "unload", "custom")[0]
    stream.cancel()


def test_a_model_nobody_knows_is_told(studio: Studio) -> None:
    assert press(studio, "load", "nobody")[0].startswith("⚠️ No model is called 'nobody'")


@pytest.mark.parametrize("model", ["", " ", "/nowhere", "no hub id"])
def test_what_cannot_be_loaded_leaves_all_as_it_was(studio: Studio, model: str) -> None:
    said, _, places = last(ModelsTab(studio).exchange(model, "custom"))
    assert said.startswith("⚠️ ")
    assert places["choices"] == ["custom", "<base>"]


def test_a_folder_takes_the_place_of_a_model(studio: Studio, golden_dir: Path) -> None:
    model = str(golden_dir / "custom_voice-1b7")
    said, table, places = last(ModelsTab(studio).exchange(model, "custom"))
    assert "custom_voice-1b7" in said
    assert "custom_voice-1b7" in table
    assert places["choices"] == ["custom_voice-1b7", "<base>"]
    speaker = studio.choices().speakers()[0]
    assert speaker in studio.engine.capabilities()["custom_voice-1b7"].speakers


def test_a_press_before_the_page_knows_the_models_is_of_the_first(
    studio: Studio, golden_dir: Path
) -> None:
    model = str(golden_dir / "custom_voice-1b7")
    said, _, places = last(ModelsTab(studio).exchange(model, None))
    assert said.startswith("**custom_voice-1b7**")
    assert places["choices"] == ["custom_voice-1b7", "<base>"]


def test_a_guest_changes_nothing(studio: Studio, golden_dir: Path) -> None:
    strangers = replace(studio, guests=True)
    assert "data-do" not in ModelsTab(strangers).table()
    assert FOREIGN in press(strangers, "load", "custom")[0]
    model = str(golden_dir / "custom_voice-1b7")
    assert FOREIGN in last(ModelsTab(strangers).exchange(model, "custom"))[0]
    assert studio.engine.stats().talkers == ()
    assert list(studio.engine.capabilities()) == ["custom", "<base>"]
