"""Music in a browser: added to a script, placed, taken back by Undo, removed."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import fastapi
import pytest

from engine import Library
from engine.testing import FakeEngine
from studio.context import Studio, open_studio
from studio.ui.page import mount_page
from tests.support.browser import OpenPage, Server, expect, open_tab, wait_until
from tests.support.tab_makers import recording


@pytest.fixture
def studio(tmp_path: Path) -> Iterator[Studio]:
    with FakeEngine() as engine:
        yield open_studio(engine, Library(tmp_path / "voices"))


@pytest.fixture
def url(browser: Any, studio: Studio) -> Iterator[str]:
    application = fastapi.FastAPI()
    mount_page(application, studio)
    with Server(application) as url:
        yield url


def test_music_is_added_changed_and_taken_back(
    open_page: OpenPage, url: str, studio: Studio, tmp_path: Path
) -> None:
    page = open_page(url)
    open_tab(page, "Script")
    page.locator("#script-text textarea").fill("Anna: Good evening.\nBen: And to you.")
    page.get_by_role("button", name="Split into lines").click()
    lines = page.locator("#script-lines")
    expect(lines.get_by_text("And to you.").first).to_be_visible()
    [number] = studio.scripts.titles()
    section = page.locator("#script-music")
    section.get_by_role("button", name="Music").first.click()
    with page.expect_file_chooser() as chooser:
        section.get_by_role("button", name="Add music").click()
    chooser.value.set_files(recording(tmp_path / "Rain.wav"))
    expect(section.get_by_role("button", name="Save the music")).to_be_visible()
    expect(section.locator("#music-picked input")).to_have_value("Rain.wav")
    section.get_by_role("radio", name="Lines").check()
    section.get_by_label("From line").fill("2")
    section.get_by_label("To line").fill("2")
    section.get_by_role("button", name="Save the music").click()

    def cues() -> Any:
        return studio.scripts.open(number).project.cues

    wait_until(lambda: cues()[0].over == "lines")
    [cue] = cues()
    assert cue.first == cue.last == studio.scripts.open(number).script.lines[1].id
    undo = lines.get_by_role("button", name="Undo")
    expect(undo).to_contain_text("Rain.wav")
    undo.click()
    wait_until(lambda: cues()[0].over == "script")
    section.get_by_role("button", name="Remove the music").click()
    wait_until(lambda: cues() == ())
    expect(section.get_by_role("button", name="Save the music")).to_be_hidden()
