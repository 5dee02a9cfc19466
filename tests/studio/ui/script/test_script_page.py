"""The Script tab in a browser: pasted, heard sample for sample, edited, reloaded, stopped."""

from __future__ import annotations

import re
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from engine import SAMPLE_RATE, Library, Preset
from engine.testing import Costs, FakeEngine
from studio.context import open_studio
from studio.scripts import Projects, plan, resolve_cast
from studio.scripts.open_script import OpenScript
from studio.scripts.store import ScriptStore
from studio.ui.tabs.script.handlers import ScriptTab
from studio.ui.tabs.script.view import PAGE, Board, View
from tests.support.browser import (
    PATIENCE,
    OpenPage,
    Tap,
    expect,
    play_through,
    serve_page,
    wait_until,
)
from tests.support.player_stage import as_heard

PHONE = {"viewport": {"width": 390, "height": 844}, "has_touch": True, "is_mobile": True}
TEXT = "Anna: Good evening.\nBen: And to you. [pause 0.3s] Come in."
MANY = "\n\n".join(f"This is the sentence that has the number {number}." for number in range(1000))


@pytest.fixture(scope="module")
def engine() -> Iterator[FakeEngine]:
    with FakeEngine(costs=Costs(step=0.005)) as engine:
        yield engine


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("data")


@pytest.fixture(scope="module")
def url(browser: Any, engine: FakeEngine, folder: Path) -> Iterator[str]:
    with serve_page(open_studio(engine, Library(folder / "voices"))) as url:
        yield url


@pytest.fixture(scope="module")
def projects(folder: Path, url: str) -> Projects:
    return Projects(folder / "scripts")


def go(page: Any) -> Any:
    """To the tab, wherever it is."""
    page.get_by_role("tab").first.wait_for()
    tab = page.get_by_role("tab", name="Script")
    if not tab.is_visible():
        page.locator(".overflow-menu > button").click()
        tab = page.locator(".overflow-dropdown button", has_text="Script")
    tab.click()
    page.locator("#script-lines .timbre-board > *").first.wait_for()
    return page


# As by a paste; the driver's own way takes eight seconds for a thousand lines.
WRITE = """(area, text) => {
  area.value = text;
  area.dispatchEvent(new Event('input', { bubbles: true }));
}"""


def write(page: Any, text: str) -> None:
    page.locator("#script-text textarea").evaluate(WRITE, text)


def press(page: Any, name: str) -> None:
    page.get_by_role("tabpanel").get_by_role("button", name=name, exact=True).first.click()


def speak(page: Any) -> None:
    page.locator(".timbre-go:visible").click()


def lines(page: Any) -> Any:
    return page.locator("#script-lines article")


@pytest.fixture(scope="module")
def shared(open_pages: OpenPage, url: str) -> Any:
    return go(open_pages(url))


@pytest.fixture
def empty(shared: Any) -> Any:
    """A page that other tests have used, with a new script."""
    if lines(shared).count():
        press(shared, "New")
        expect(shared.locator("#script-text textarea")).to_have_value("")
        expect(lines(shared)).to_have_count(0)
    return shared


@pytest.fixture
def page(empty: Any) -> Any:
    """With the lines of a text to be seen."""
    write(empty, TEXT)
    press(empty, "Split into lines")
    expect(lines(empty)).to_have_count(3)
    return empty


def player(page: Any) -> Tap:
    """The tab's own player; each tab that was opened has one."""
    index = page.evaluate(
        "timbre.players.findIndex((own) => own.root.closest('#script-player') !== null)"
    )
    return Tap(page, index)


def whole(projects: Projects, number: str, folder: Path) -> np.ndarray:
    """Every sound that is kept, with the pauses between, as the page should play it."""
    project, sounds = projects.open(number), Projects(folder / "scripts").sounds(number)
    voices = resolve_cast(project.script.speakers, project.casting, Preset)
    parts = []
    for job in plan(project.script, voices, project.delivery):
        parts += [sounds.read(job.key), np.zeros(round(job.pause * SAMPLE_RATE), np.int16)]
    return np.concatenate(parts)


def test_a_pasted_dialogue_is_heard_sample_for_sample_and_survives_a_reload(
    open_page: OpenPage, url: str, projects: Projects, folder: Path
) -> None:
    page = go(open_page(url))
    tap = player(page)
    write(page, TEXT)
    speak(page)
    tap.wait("now?.over && now.made")
    [project] = projects.listed()
    expected = as_heard(np.trim_zeros(whole(projects, project.id, folder)))
    if not tap.state()["report"]["underruns"]:  # a busy machine may be late with the first chunks
        np.testing.assert_array_equal(tap.sound(), expected)
    play_through([tap], lambda _: speak(page))  # again: all of it lies on the disk
    np.testing.assert_array_equal(tap.sound(), expected)
    page.locator("#script-lines").get_by_text("3 lines · 3 rendered").wait_for()
    page.reload()
    go(page)
    page.locator("#script-lines").get_by_text("3 lines · 3 rendered").wait_for()
    expect(page.locator("#script-seen")).to_be_hidden()
    expect(page.locator("#script-text textarea")).to_have_value(TEXT)
    expect(page.locator("#script-cast select")).to_have_count(2)


SAID = """() => {
  window.said = [];
  const bar = document.querySelector('.timbre-player');
  new MutationObserver(() => {
    const now = ['.voice', '.text'].map((part) => bar.querySelector(part).textContent).join(': ');
    if (now !== window.said.at(-1)) window.said.push(now);
  }).observe(bar, { childList: true, subtree: true });
}"""


def test_the_bar_tells_who_speaks_which_line(page: Any) -> None:
    tap = player(page)
    page.evaluate(SAID)
    play_through([tap], lambda _: speak(page))
    spoken = page.evaluate("window.said")
    expected = [
        r"Anna · \w+: Good evening\.",
        r"Ben · \w+: And to you\.",
        r"Ben · \w+: Come in\.",
    ]
    found = [
        next((at for at, each in enumerate(spoken) if re.fullmatch(one, each)), -1)
        for one in expected
    ]
    assert -1 not in found, spoken
    assert found == sorted(found)
    lines(page).first.get_by_label("Listen to line 1").click()
    expect(page.locator(".timbre-player .voice")).to_have_text(re.compile("^Anna · "))
    expect(page.locator(".timbre-player .text")).to_have_text("Good evening.")


def test_what_was_typed_is_there_after_a_reload(empty: Any) -> None:
    page = empty
    box = page.locator("#script-text textarea")
    for typed in ("Only typed.", "Typed and read."):
        write(page, typed)
        page.reload()
        go(page)
        expect(box).to_have_value(typed)
    press(page, "Split into lines")
    lines(page).nth(0).get_by_label("Edit").click()
    lines(page).nth(0).locator("textarea").fill("Changed as a line.")
    press(page, "Save")
    page.locator("#script-lines p", has_text="Changed").wait_for()
    page.reload()
    go(page)
    expect(box).to_have_value("Changed as a line.")  # not what was typed before it


def test_settings_of_an_empty_page_are_those_of_its_script(empty: Any, projects: Projects) -> None:
    """Also one in which the cursor still is."""
    manner = empty.locator("#script-manner")
    manner.get_by_role("button", name="Reading settings").click()
    manner.get_by_label("Seed").fill("77")
    write(empty, TEXT)
    manner.get_by_label("Seconds between speakers").fill("3")
    empty.keyboard.press("Control+Enter")
    expect(empty.locator("#script-lines")).to_contain_text("3 lines · 3 rendered")
    delivery = projects.open(projects.listed()[0].id).delivery
    assert (delivery.seed, delivery.pauses.turn) == (77, 3)
    manner.get_by_role("button", name="Reading settings").click()


def test_a_line_is_edited_spoken_locked_and_taken_back(page: Any) -> None:
    second = lines(page).nth(1)
    second.get_by_label("Edit").click()
    second.locator("textarea").fill("Good morning, I should say. [pause 0.3s]")
    second.locator("textarea").press("Enter")
    page.locator("#script-lines p", has_text="Good morning").wait_for()
    written = re.compile(r"Ben: Good morning, I should say\.")
    expect(page.locator("#script-text textarea")).to_have_value(written)
    second.get_by_label("Listen to line 2").click()
    second.get_by_label("Lock this take").click()
    second.get_by_label("Unlock this take").wait_for()
    page.locator("#script-lines").get_by_role("button", name="Undo").click()
    second.get_by_label("Lock this take").wait_for()
    page.locator("#script-lines").get_by_role("button", name="Undo").click()
    page.locator("#script-lines p", has_text="And to you").wait_for()


def test_the_folded_text_shows_its_first_line(page: Any) -> None:
    box = page.locator("#script-text textarea")
    box.fill("\n\n".join(f"This is line {number}." for number in range(30)))
    box.press("Control+End")
    page.get_by_role("button", name="Split into lines").click()
    page.locator("#script-text.timbre-folded").wait_for()
    assert box.evaluate("box => box.scrollTop") == 0


def test_takes_are_compared_and_lines_found_and_dragged(page: Any) -> None:
    second = lines(page).nth(1)
    second.get_by_label("Listen to line 2").click()
    second.get_by_label("Lock this take").wait_for()
    second.get_by_label("Regenerate").click()
    second.get_by_label("Compare 2 takes").click()
    second.get_by_label("Use take 1").click()
    second.get_by_label("Use take 2").wait_for()  # still open, and the first is in use
    page.reload()
    second = lines(go(page)).nth(1)
    second.get_by_label("Compare 2 takes").click()
    expect(second.locator("li[aria-current]")).to_contain_text("Take 1")
    page.get_by_placeholder("Search in lines").fill("ben:")
    expect(lines(page)).to_have_count(2)
    page.get_by_placeholder("Search in lines").fill("")
    expect(lines(page)).to_have_count(3)
    lines(page).nth(2).locator("[data-grip]").hover()  # scrolls it into view
    target = lines(page).first.bounding_box()
    page.mouse.down()
    page.mouse.move(target["x"] + 90, target["y"] + 4, steps=5)
    page.mouse.up()
    box = page.locator("#script-text textarea")
    expect(box).to_have_value(re.compile("^Ben: Come in"))
    assert page.evaluate("getSelection().toString()") == ""
    lines(page).first.locator("[data-grip]").press("ArrowDown")
    expect(box).to_have_value(re.compile("^Anna: Good evening.*\nBen: Come in"))
    expect(lines(page).nth(1).locator("[data-grip]")).to_be_focused()


def test_a_button_is_not_drawn_over_while_it_is_pressed(page: Any) -> None:
    second = lines(page).nth(1)
    second.get_by_label("Edit").hover()
    page.mouse.down()
    page.evaluate(
        "[...document.querySelectorAll('.timbre-go')].find((own) => own.offsetParent).click()"
    )
    page.locator("#script-lines").get_by_text("3 rendered").wait_for()
    assert second.get_attribute("data-status") != "done"  # still as it was pressed
    page.mouse.up()
    second.locator("textarea").wait_for()
    second.locator("textarea").press("Escape")
    page.locator("article[data-status=done]").nth(1).wait_for()


RELAPSED = """() => {
  window.shown = [];
  const board = document.querySelector('#script-lines');
  const note = () => window.shown.push(board.querySelectorAll('.said p')[1]?.textContent);
  const everything = { childList: true, subtree: true, characterData: true };
  new MutationObserver(note).observe(board, everything);
}"""


def test_a_poll_that_is_answered_late_takes_no_change_back(
    page: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    second = lines(page).nth(1)
    second.wait_for()
    polled, release = threading.Event(), threading.Event()
    build = ScriptTab._lines

    def late(tab: ScriptTab, opened: OpenScript, view: View) -> Board:
        board = build(tab, opened, view)
        if not polled.is_set():
            polled.set()
            release.wait(PATIENCE)
        return board

    monkeypatch.setattr(ScriptTab, "_lines", late)
    lines(page).first.get_by_label("Listen to line 1").click()
    wait_until(polled.is_set)
    second.get_by_label("Edit").click()
    second.locator("textarea").fill("And to all of you.")
    press(page, "Save")
    expect(second.locator(".said p")).to_have_text("And to all of you.")
    page.evaluate(RELAPSED)
    release.set()
    lines(page).first.locator(".sound svg").wait_for()  # a later answer has come
    assert set(page.evaluate("window.shown")) <= {"And to all of you."}


MARKED = (
    "(name) => document.querySelectorAll('#script-lines button').forEach((own) => own[name] = 1)"
)
UNMARKED = """() => [...document.querySelectorAll('#script-lines :is(article, .bar) button')]
  .filter((own) => !own.mine).map((own) => own.dataset.act)"""


def test_a_button_stays_the_same_while_lines_are_spoken(page: Any) -> None:
    lines(page).nth(2).wait_for()
    page.evaluate(MARKED, "mine")
    speak(page)
    page.locator("#script-lines").get_by_text("3 rendered").wait_for()
    assert set(page.evaluate(UNMARKED)) == {"lock"}  # what was not there before


def test_a_form_stays_open_until_it_is_saved(page: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    may_save, edit = threading.Event(), ScriptStore.edit

    def later(*args: Any) -> OpenScript:
        assert may_save.wait(PATIENCE)
        return edit(*args)

    monkeypatch.setattr(ScriptStore, "edit", later)
    first = lines(page).first
    first.get_by_label("Edit").click()
    first.locator("textarea").fill("Good night.")
    first.get_by_role("button", name="Save").click()
    lines(page).nth(1).get_by_label("Listen to line 2").click()
    page.locator("#script-lines").get_by_text("1 rendered").wait_for()
    expect(first.locator("textarea")).to_have_value("Good night.")
    expect(first.locator("textarea")).to_be_visible()
    may_save.set()
    first.locator("p", has_text="Good night.").wait_for()
    first.get_by_label("Edit").click()
    expect(first.locator("textarea")).to_have_value("Good night.")


def test_a_refusal_is_told(empty: Any) -> None:
    page = empty
    speak(page)
    page.get_by_text("There is nothing to speak in this script.").wait_for()
    write(page, "One line, and no other.")
    press(page, "Split into lines")
    lines(page).first.get_by_label("Edit").click()
    lines(page).first.get_by_role("button", name="Delete").click()
    page.get_by_text("A script keeps one line.").wait_for()
    form = lines(page).first.locator("form")
    form.locator("textarea").fill("")
    form.get_by_role("button", name="Save").click()
    page.get_by_text("A line needs text or a pause.").wait_for()
    expect(form).to_have_css("opacity", "1")  # it waits for nothing
    expect(form.locator("textarea")).to_have_value("")


def test_an_open_form_is_left_alone_while_lines_are_spoken(page: Any) -> None:
    first = lines(page).first
    first.get_by_label("Edit").click()
    first.locator("textarea").fill("Unfinished")
    speak(page)
    page.locator("#script-lines").get_by_text("3 rendered").wait_for()
    assert first.locator("textarea").input_value() == "Unfinished"
    first.locator("textarea").press("Escape")
    first.get_by_text("Good evening.").first.wait_for()


def test_stop_stops_the_engine_and_what_is_done_stays(
    empty: Any, engine: FakeEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(engine.worker, "costs", Costs(step=0.02))  # longer than a busy page takes
    page = empty
    tap = player(page)
    write(page, MANY)
    speak(page)
    tap.wait("now?.report?.played > 4800", seconds=180)
    expect(lines(page)).to_have_count(PAGE)
    page.locator("#script-lines").get_by_text("Lines rendered:").wait_for()
    page.locator("article.heard").wait_for()
    page.locator("article[data-status=done]").first.wait_for()
    press(page, "Next")
    press(page, "Show the playing line")
    page.locator("article.heard").wait_for()
    page.keyboard.press("Escape")
    wait_until(lambda: engine.stats().running == 0)
    some = re.compile(r"^1,000 lines · [1-9]\d{0,2} rendered")
    page.locator("#script-lines .bar p", has_text=some).wait_for()


@pytest.mark.slow  # 3,000 lines race the page's reload: seen to fail beside other tests
def test_rendering_goes_on_while_the_page_is_closed(
    open_page: OpenPage, url: str, engine: FakeEngine
) -> None:
    page = go(open_page(url))
    write(page, "\n\n".join(f"A short line with the number {number}." for number in range(3000)))
    page.get_by_label("Play while rendering").uncheck()
    speak(page)
    page.locator("article[data-status=done]").first.wait_for()
    page.goto("about:blank")
    ended = sum(engine.stats().ended.values())
    wait_until(lambda: sum(engine.stats().ended.values()) > ended + 8)
    page.goto(url)
    go(page)
    page.locator("#script-lines").get_by_text("Lines rendered:").wait_for()
    page.locator("#script-lines").get_by_role("button", name="Stop").click()
    wait_until(lambda: engine.stats().running == 0)
    some = re.compile(r"^3,000 lines · [1-9][\d,]* rendered")
    page.locator("#script-lines .bar p", has_text=some).wait_for()


@pytest.mark.slow
def test_a_thousand_lines_stay_quick_to_use(open_page: OpenPage, url: str) -> None:
    page = go(open_page(url))
    write(page, MANY)
    began = time.monotonic()
    press(page, "Split into lines")
    page.get_by_text("1 to 25 of 1,000").wait_for()
    read = time.monotonic() - began
    began = time.monotonic()
    press(page, "Next")
    page.get_by_text("26 to 50 of 1,000").wait_for()
    turned = time.monotonic() - began
    expect(lines(page)).to_have_count(PAGE)
    print(f"\n1,000 lines: read in {1000 * read:.0f} ms, a page turned in {1000 * turned:.0f} ms")
    assert read < 60  # 3 on two cores with other work
    assert turned < 15  # 0.3


def test_a_script_fits_on_a_phone_and_can_be_deleted_and_brought_back(
    open_page: OpenPage, url: str
) -> None:
    page = go(open_page(url, **PHONE))
    page.get_by_role("button", name="Show an example").tap()
    lines(page).nth(5).wait_for()
    wide = page.evaluate("document.documentElement.scrollWidth")
    assert wide <= PHONE["viewport"]["width"]
    press(page, "Delete")
    page.get_by_role("button", name="Show an example").wait_for()
    page.get_by_role("button", name="Restore “The Key”").tap()
    lines(page).nth(5).wait_for()
