"""Answers that come late: those of polls take nothing back, those of presses keep their order."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from engine import Library
from engine.testing import Costs, FakeEngine
from studio.context import open_studio
from studio.scripts.export.export_jobs import ExportJobs
from studio.scripts.rendering.playback import ScriptPlayback
from studio.scripts.rendering.script_music import ScriptMusic
from studio.scripts.store import ScriptStore
from studio.ui.tabs.script import exports
from tests.support.browser import (
    PATIENCE,
    Held,
    OpenPage,
    expect,
    open_tab,
    serve_page,
    until_answered,
    wait_until,
)
from tests.support.tab_makers import recording

TEXT = "Anna: Good evening.\nBen: And to you. [pause 0.3s] Come in."
MANY = "\n\n".join(f"This is the sentence that has the number {number}." for number in range(60))
SHOWN = """() => {
  window.shown = [];
  const board = document.querySelector('#script-lines');
  const note = () => window.shown.push(board.innerText);
  const everything = { childList: true, subtree: true, characterData: true };
  new MutationObserver(note).observe(board, everything);
}"""


@pytest.fixture(scope="module")
def engine() -> Iterator[FakeEngine]:
    with FakeEngine(costs=Costs(step=0.005)) as engine:
        yield engine


@pytest.fixture(scope="module")
def url(
    browser: Any, engine: FakeEngine, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[str]:
    library = Library(tmp_path_factory.mktemp("data") / "voices")
    with serve_page(open_studio(engine, library)) as url:
        yield url


@pytest.fixture(scope="module")
def shared(open_pages: OpenPage, url: str) -> Any:
    page = open_pages(url)
    open_tab(page, "Script")
    page.locator("#script-lines .timbre-board > *").first.wait_for()
    return page


@pytest.fixture
def page(shared: Any) -> Any:
    """With a new script."""
    if lines(shared).count():
        new(shared)
    return shared


def lines(page: Any) -> Any:
    return page.locator("#script-lines article")


def press(page: Any, name: str) -> None:
    page.get_by_role("tabpanel").get_by_role("button", name=name, exact=True).first.click()


def new(page: Any) -> None:
    press(page, "New")
    expect(lines(page)).to_have_count(0)


def split(page: Any, text: str, first: str) -> None:
    page.locator("#script-text textarea").fill(text)
    press(page, "Split into lines")
    expect(lines(page).first).to_contain_text(first)


class Polls:
    """What polls call, as long as it takes: those of the first script are held."""

    def __init__(
        self,
        monkeypatch: pytest.MonkeyPatch,
        of: Any = ScriptPlayback,
        called: str = "attend",
        when: Callable[[Any], bool] = lambda found: True,
    ) -> None:
        self.asked, self.may_answer = threading.Event(), threading.Event()
        call, held = getattr(of, called), list[str]()

        def later(owner: Any, number: str) -> Any:
            found = call(owner, number)
            if when(found):
                held.append(number)
                self.asked.set()
                assert number != held[0] or self.may_answer.wait(PATIENCE)
            return found

        monkeypatch.setattr(of, called, later)


def answered(page: Any, held: threading.Event) -> None:
    """Let what is held go on, and wait until the page has taken its answers."""
    until_answered(page, held.set)


def render(page: Any) -> None:
    """Split a text and have all of its lines rendered."""
    split(page, TEXT, "Good evening")
    page.locator(".timbre-go:visible").click()
    page.locator("#script-lines").get_by_text("3 rendered").wait_for()


def test_an_answer_to_a_poll_shows_no_script_that_was_left(
    page: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    render(page)
    held = Polls(monkeypatch)
    lines(page).first.get_by_label("Listen to line 1").click()
    wait_until(held.asked.is_set)
    new(page)
    page.evaluate(SHOWN)
    answered(page, held.may_answer)
    expect(lines(page)).to_have_count(0)
    assert "Good evening" not in "".join(page.evaluate("window.shown"))


def test_an_answer_to_a_poll_turns_no_page_back(page: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    split(page, MANY, "number 0.")
    held = Polls(monkeypatch)
    lines(page).first.get_by_label("Listen to line 1").click()
    wait_until(held.asked.is_set)
    press(page, "Next")
    expect(lines(page).first).to_contain_text("number 25.")
    page.evaluate(SHOWN)
    answered(page, held.may_answer)
    expect(lines(page).first).to_contain_text("number 25.")
    assert "number 0." not in "".join(page.evaluate("window.shown"))


def test_an_answer_to_a_poll_stops_no_polls_of_another_script(
    page: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    split(page, TEXT, "Good evening")
    held = Polls(monkeypatch)
    lines(page).first.get_by_label("Listen to line 1").click()
    wait_until(held.asked.is_set)
    new(page)
    split(page, MANY, "number 0.")
    page.locator(".timbre-go:visible").click()
    expect(page.locator(".timbre-player .text")).to_contain_text("number 0.")
    held.may_answer.set()
    page.locator("#script-lines [data-status=done]").first.wait_for()  # long before all are heard
    page.keyboard.press("Escape")


def test_an_answer_to_a_poll_shows_no_export_of_a_script_that_was_left(
    page: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    render(page)
    export = page.locator("#script-export")
    held = Polls(monkeypatch, ExportJobs, "state", lambda state: state and state.phase == "done")
    export.get_by_role("button", name="Export", exact=True).last.click()
    wait_until(held.asked.is_set)
    new(page)
    answered(page, held.may_answer)
    expect(export.locator("a[download]")).to_have_count(0)
    expect(export.get_by_text("The export is done.")).to_be_hidden()


def sent(page: Any, press: Callable[[], None]) -> None:
    """Press, and wait until the server has taken it."""
    with page.expect_response(lambda response: "/queue/join" in response.url):
        press()


def test_a_search_is_kept_by_a_choice_that_is_made_before_it_is_answered(
    page: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    split(page, TEXT, "Good evening")
    held = Held(monkeypatch, "look", ScriptStore)
    sent(page, lambda: page.get_by_placeholder("Search in lines").fill("ben:"))
    wait_until(held.begun.is_set)
    sent(page, lambda: page.locator("#script-lines [data-act=show]").select_option("open"))
    held.may_end.set()
    expect(page.locator("#script-lines [data-act=show]")).to_have_value("open")
    expect(lines(page)).to_have_count(2)


def test_a_new_script_stays_though_a_change_of_the_one_before_takes_longer(
    page: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    split(page, TEXT, "Good evening")
    held = Held(monkeypatch, "recast", ScriptStore)
    page.locator("#script-cast select").first.select_option(index=2)
    wait_until(held.begun.is_set)
    sent(page, lambda: press(page, "New"))
    answered(page, held.may_end)
    expect(lines(page)).to_have_count(0)


def test_a_name_that_is_saved_slowly_takes_no_letters_back_and_names_no_other_script(
    page: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    split(page, TEXT, "Good evening")
    held = Held(monkeypatch, "rename", ScriptStore)
    name = page.get_by_role("tabpanel").get_by_label("Name", exact=True).first
    name.fill("An evening")
    name.press("Enter")
    wait_until(held.begun.is_set)
    name.fill("An evening at home")
    answered(page, held.may_end)
    expect(name).to_have_value("An evening at home")
    held.begun.clear()
    held.may_end.clear()
    name.fill("An  evening")  # is shown with one space
    name.press("Enter")
    wait_until(held.begun.is_set)
    sent(page, lambda: press(page, "New"))
    answered(page, held.may_end)
    expect(name).to_have_value("")


def test_split_and_speak_at_once_make_one_script(
    page: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    held = Held(monkeypatch, "read", ScriptStore)
    page.locator("#script-text textarea").fill("Eve: Is there one of me?\n\nEve: There is.")
    press(page, "Split into lines")
    wait_until(held.begun.is_set)
    sent(page, lambda: page.locator(".timbre-go:visible").click())
    held.may_end.set()
    page.locator("#script-lines").get_by_text("2 rendered").wait_for()
    page.get_by_label("Script", exact=True).click()
    expect(page.get_by_role("option").filter(has_text="Is there one")).to_have_count(1)
    page.keyboard.press("Escape")


def test_a_menu_that_is_left_for_new_does_not_open_its_script_again(
    page: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    split(page, TEXT, "Good evening")
    page.get_by_label("Script", exact=True).focus()
    held = Held(monkeypatch, "open", ScriptStore)
    button = page.get_by_role("tabpanel").get_by_role("button", name="New", exact=True).first
    sent(page, lambda: button.evaluate("(button) => button.click()"))  # the cursor stays
    wait_until(held.begun.is_set)
    page.get_by_label("Script", exact=True).blur()
    answered(page, held.may_end)
    expect(lines(page)).to_have_count(0)


def test_a_project_that_is_saved_is_offered_with_its_script_alone(
    page: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    render(page)
    export = page.locator("#script-export")
    held = Held(monkeypatch, "save_project", exports)
    export.get_by_role("button", name="Save project (.zip)").click()
    wait_until(held.begun.is_set)
    new(page)
    held.may_end.set()
    wait_until(held.ended.is_set)
    answered(page, held.ended)
    expect(export.locator("a[download]")).to_have_count(0)


def add_music(page: Any, path: Path) -> None:
    section = page.locator("#script-music")
    button = section.locator("#music-upload button").first
    if not button.is_visible():
        section.get_by_role("button", name="Music").first.click()
    with page.expect_file_chooser() as chosen:
        button.click()
    chosen.value.set_files(path)


def test_music_that_takes_long_to_read_is_not_shown_under_another_script(
    page: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    split(page, TEXT, "Good evening")
    held = Held(monkeypatch, "add", ScriptMusic)
    add_music(page, recording(tmp_path / "Rain.wav"))
    wait_until(held.begun.is_set)
    new(page)
    held.may_end.set()
    wait_until(held.ended.is_set)
    answered(page, held.ended)
    expect(page.locator("#music-picked")).to_be_hidden()
    clear = page.locator("#script-music").get_by_label("Clear", exact=True)
    expect(clear).to_have_count(0)  # for another file


def test_music_that_is_dropped_while_another_piece_is_read_is_read_as_well(
    page: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    split(page, TEXT, "Good evening")
    clear = page.locator("#script-music").get_by_label("Clear", exact=True)
    held = Held(monkeypatch, "add", ScriptMusic)
    add_music(page, recording(tmp_path / "Rain.wav"))
    wait_until(held.begun.is_set)
    clear.click()
    until_answered(page, lambda: add_music(page, recording(tmp_path / "Wind.wav", 4.0)))
    answered(page, held.may_end)
    expect(clear).to_have_count(0)  # for another file
    page.locator("#music-picked input").click()
    for name in ("Rain.wav", "Wind.wav"):
        expect(page.get_by_role("option", name=name)).to_be_visible()
    page.keyboard.press("Escape")


def test_text_that_is_typed_is_read_before_music_is_added(page: Any, tmp_path: Path) -> None:
    page.locator("#script-text textarea").fill(TEXT)
    add_music(page, recording(tmp_path / "Rain.wav"))
    picked = page.get_by_role("tabpanel").locator("#music-picked input")
    expect(picked).to_have_value("Rain.wav")
    expect(lines(page).first).to_contain_text("Good evening")


def test_an_empty_name_is_refused_and_the_scripts_name_is_back(page: Any) -> None:
    split(page, TEXT, "Good evening")
    name = page.get_by_role("tabpanel").get_by_label("Name", exact=True).first
    before = name.input_value()
    assert before
    name.fill("")
    name.press("Enter")
    expect(name).to_have_value(before)


def test_an_answer_of_one_piece_of_music_is_not_shown_as_another_one(
    page: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    split(page, TEXT, "Good evening")
    section = page.locator("#script-music")
    picked = page.locator("#music-picked input")
    for name in ("Rain.wav", "Wind.wav"):
        add_music(page, recording(tmp_path / name))
        expect(picked).to_have_value(name)
        expect(section.get_by_label("Clear", exact=True)).to_have_count(0)  # for another file
    repeated = section.get_by_label("Repeat a short piece")
    before = repeated.is_checked()
    held = Held(monkeypatch, "change", ScriptMusic)
    repeated.click()
    wait_until(held.begun.is_set)
    picked.click()
    page.get_by_role("option", name="Rain.wav").click()
    expect(repeated).to_be_checked(checked=before)
    answered(page, held.may_end)
    expect(picked).to_have_value("Rain.wav")
    expect(repeated).to_be_checked(checked=before)
