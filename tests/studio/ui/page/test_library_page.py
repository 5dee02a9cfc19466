"""The Library in a browser, where its answers come late: each is of the voice that was pressed."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from engine import Library, learn_shift, speaker_space
from engine.testing import FakeEngine, fake_capabilities
from studio.context import Studio, open_studio
from studio.takes.take_store import Takes
from studio.ui.tabs import voices
from tests.support.browser import (
    Held,
    OpenPage,
    expect,
    open_tab,
    serve_page,
    until_answered,
    wait_until,
)
from tests.support.tab_makers import some_clone


@pytest.fixture
def studio(tmp_path: Any) -> Iterator[Studio]:
    library = Library(tmp_path / "voices")
    for name in ("Ada", "Bo"):
        library.save(name, some_clone(), note=f"The note of {name}.")
    pair = (some_clone(1).vector, some_clone(2).vector)
    for name in ("glad", "sad"):
        space = speaker_space(fake_capabilities())
        library.moods.save(name, learn_shift([pair]), space, note=f"The note of {name}.")
    with FakeEngine() as engine:
        yield open_studio(engine, library, Takes(tmp_path / "takes"))


@pytest.fixture
def page(browser: Any, open_page: OpenPage, studio: Studio) -> Iterator[Any]:
    with serve_page(studio) as url:
        page = open_page(url)
        open_tab(page, "Library")
        yield page


def edit(page: Any, name: str) -> Any:
    """Open the form of a voice; the page of it."""
    page.locator("#library-voices li", has_text=name).get_by_role("button", name="Edit").click()
    return page.get_by_role("tabpanel").filter(has=page.locator("#library-voices")).last


def edit_used(page: Any, studio: Studio) -> Any:
    """Open the form of Ada, who speaks in a script."""
    opened = studio.scripts.read("", "Hello.")
    studio.scripts.recast(opened.number, "", "#ada")
    open_tab(page, "Voices")
    panel = edit(page, "Ada")
    expect(panel.get_by_label("Note")).to_have_value("The note of Ada.")
    return panel


def answered_late(page: Any, held: Held, press: Callable[[], object]) -> None:
    """Press while an answer is waited for, which comes when the page asks for nothing more."""

    def answer() -> None:
        held.may_end.set()
        wait_until(held.ended.is_set)

    wait_until(held.begun.is_set)
    until_answered(page, press)
    until_answered(page, answer)


def test_a_form_that_is_saved_slowly_is_not_shown_as_that_of_another_voice(
    page: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    open_tab(page, "Voices")
    panel = edit(page, "Ada")
    note = panel.get_by_label("Note")
    expect(note).to_have_value("The note of Ada.")
    held = Held(monkeypatch, "change", Library)
    panel.get_by_role("button", name="Save changes").click()
    answered_late(page, held, lambda: edit(page, "Bo"))
    expect(note).to_have_value("The note of Bo.")


def test_a_voice_that_is_used_is_not_deleted_for_another_one(
    page: Any, monkeypatch: pytest.MonkeyPatch, studio: Studio
) -> None:
    panel = edit_used(page, studio)
    held = Held(monkeypatch, "usage_of", voices)
    panel.get_by_role("button", name="Delete", exact=True).click()
    answered_late(page, held, lambda: edit(page, "Bo"))
    expect(panel.get_by_label("Note")).to_have_value("The note of Bo.")
    panel.get_by_text("Ada is used by").wait_for()
    expect(panel.get_by_role("button", name="Delete anyway")).to_be_hidden()


def test_delete_anyway_is_of_the_voice_that_it_was_asked_for(
    page: Any, monkeypatch: pytest.MonkeyPatch, studio: Studio
) -> None:
    """The form of the next voice comes slowly; until then the button is there."""
    panel = edit_used(page, studio)
    panel.get_by_role("button", name="Delete", exact=True).click()
    panel.get_by_text("Ada is used by").wait_for()
    held = Held(monkeypatch, "facts", voices)
    edit(page, "Bo")
    wait_until(held.begun.is_set)
    anyway = panel.get_by_role("button", name="Delete anyway")
    until_answered(page, anyway.click)
    until_answered(page, held.may_end.set)
    assert [each.name for each in studio.library.list()] == ["Bo"]
    expect(anyway).to_be_hidden()


def test_a_mood_that_is_saved_slowly_is_not_shown_as_another_one(
    page: Any, monkeypatch: pytest.MonkeyPatch, studio: Studio
) -> None:
    open_tab(page, "Moods")
    panel = page.get_by_role("tabpanel").filter(has=page.locator("#library-mood")).last

    def pick(name: str) -> None:
        page.locator("#library-mood input").click()
        page.get_by_role("option", name=name).first.click()

    pick("glad")
    note = panel.get_by_label("Note")
    expect(note).to_have_value("The note of glad.")
    held = Held(monkeypatch, "change", type(studio.library.moods))
    panel.get_by_role("button", name="Save changes").click()
    answered_late(page, held, lambda: pick("sad"))
    expect(note).to_have_value("The note of sad.")
