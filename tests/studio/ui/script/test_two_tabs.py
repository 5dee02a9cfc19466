"""Two tabs of one browser, and takes that were stopped: nothing of either is written over."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from engine import Library
from engine.testing import Costs, FakeEngine
from studio.context import open_studio
from studio.scripts import Projects, text_of
from studio.takes.take_store import Takes
from tests.support.browser import (
    DRAWN,
    FULL_STORAGE,
    OpenPage,
    Tap,
    expect,
    in_front,
    open_tab,
    serve_page,
    wait_until,
)
from tests.support.tab_makers import some_clone

TEXT = "Anna: Good evening.\nBen: Good evening to you, too."
TYPED = "Anna: Good night.\nBen: Good night to you, too. And another word."
CAME_BACK = "document.dispatchEvent(new Event('visibilitychange'))"


@contextmanager
def served(folder: Path) -> Iterator[str]:
    library, takes = Library(folder / "voices"), Takes(folder / "takes")
    library.save("Ada", some_clone())
    with (
        FakeEngine(costs=Costs(step=0.02)) as engine,
        serve_page(open_studio(engine, library, takes)) as url,
    ):
        yield url


@pytest.fixture
def url(browser: Any, tmp_path: Path) -> Iterator[str]:
    with served(tmp_path) as url:
        yield url


@pytest.fixture(scope="module")
def drafts(browser: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """One address for what a browser keeps: each of these tests is a visitor with its own."""
    with served(tmp_path_factory.mktemp("drafts")) as url:
        yield url


def script(page: Any) -> Any:
    page.get_by_role("tab").first.wait_for()
    open_tab(page, "Script")
    page.locator("#script-lines .timbre-board > *").first.wait_for()
    return page


def text(page: Any) -> Any:
    return page.locator("#script-text textarea")


def split(page: Any) -> None:
    page.get_by_role("button", name="Split into lines").click()


def expect_words(page: Any, words: str) -> None:
    page.get_by_text(words).first.wait_for()


def reading_settings(page: Any) -> Any:
    """Open them; a field that has just opened takes its value from the page once more."""
    in_front(page).get_by_role("button", name=re.compile("^Reading settings")).click()
    settings = page.locator("#script-manner")
    settings.get_by_label("Seconds between speakers").wait_for()
    page.evaluate(DRAWN)
    return settings


@pytest.fixture
def tabs(open_page: OpenPage, url: str) -> tuple[Any, Any]:
    """Two tabs with the same script open."""
    first = script(open_page(url))
    text(first).fill(TEXT)
    split(first)
    first.locator("#script-lines article").nth(1).wait_for()
    second = first.context.new_page()
    second.goto(url)
    script(second)
    expect(text(second)).to_have_value(TEXT)
    return first, second


def test_a_tab_shows_what_the_other_typed_and_what_both_type_becomes_two(
    tabs: tuple[Any, Any], tmp_path: Path
) -> None:
    first, second = tabs
    other = TEXT.replace("Good evening.", "Good day.")
    text(in_front(first)).fill(other)
    split(first)
    expect(first.locator("#script-seen :is(textarea, input)")).to_have_value(other)
    in_front(second).evaluate(CAME_BACK)
    expect_words(second, "This is how it is now")
    expect(text(second)).to_have_value(other)
    changed = TEXT.replace("Good evening.", "Good morning.")
    text(in_front(first)).fill(changed)
    split(first)
    first.locator("#script-lines p").get_by_text("Good morning.").wait_for()
    text(in_front(second)).fill(TYPED)
    second.evaluate(CAME_BACK)
    expect_words(second, "becomes a script of its own")
    expect(text(second)).to_have_value(TYPED)
    split(second)
    expect_words(second, "is a script of its own now")
    projects = Projects(tmp_path / "scripts")
    wait_until(lambda: len(projects.listed()) == 2)
    written = {text_of(projects.open(each.id).script) for each in projects.listed()}
    assert written == {changed, TYPED}


def test_a_line_and_a_setting_of_the_other_tab_stay(tabs: tuple[Any, Any], tmp_path: Path) -> None:
    first, second = tabs
    for page, words in ((second, "Mine"), (first, "Theirs")):
        line = in_front(page).locator("#script-lines article").first
        line.get_by_role("button", name="Edit").click()
        line.locator("textarea").fill(words)
    first.locator("#script-lines article").first.get_by_role("button", name="Save").click()
    first.locator("#script-lines p").get_by_text("Theirs").wait_for()
    mine = in_front(second).locator("#script-lines article").first
    mine.get_by_role("button", name="Save").click()
    expect_words(second, "It says now: “Theirs”")
    projects = Projects(tmp_path / "scripts")
    [project] = projects.listed()
    for page, label, value in ((first, "Seed", "7"), (second, "Seconds between speakers", "2")):
        field = reading_settings(page).get_by_label(label)
        field.fill(value)
        field.blur()
        wait_until(lambda: projects.open(project.id).delivery.seed == 7)
    wait_until(lambda: projects.open(project.id).delivery.pauses.turn == 2)
    assert projects.open(project.id).delivery.seed == 7
    assert projects.open(project.id).script.lines[0].text == "Theirs"
    settings = in_front(first).locator("#script-manner")
    for number in (3, 4, 5):  # in quick succession
        for label in ("Seed", "Seconds between speakers"):
            field = settings.get_by_label(label)
            field.fill(str(number))
            field.blur()
    wait_until(lambda: projects.open(project.id).delivery.pauses.turn == 5)
    assert projects.open(project.id).delivery.seed == 5


def test_a_form_of_a_script_that_the_other_tab_deleted_can_be_copied_from(
    tabs: tuple[Any, Any],
) -> None:
    first, second = tabs
    line = in_front(second).locator("#script-lines article").first
    line.get_by_role("button", name="Edit").click()
    line.locator("textarea").fill("Mine")
    in_front(first).get_by_role("button", name="Delete", exact=True).first.click()
    expect(first.locator("#script-lines article")).to_have_count(0)
    in_front(second)
    line.get_by_role("button", name="Save").click()
    expect_words(second, "This script was deleted")
    expect(line.locator("form")).to_have_css("opacity", "1")
    expect(line.locator("textarea")).to_have_value("Mine")


def test_a_refused_name_of_a_script_that_became_a_copy_is_shown_as_it_was(
    tabs: tuple[Any, Any],
) -> None:
    first, second = tabs
    text(in_front(first)).fill(TEXT.replace("Good evening.", "Good day."))
    split(first)
    first.locator("#script-lines p").get_by_text("Good day.").wait_for()
    text(in_front(second)).fill(TYPED)
    second.locator("#script-cast select").first.select_option(index=2)  # reads what is typed
    expect_words(second, "is a script of its own now")
    name = second.get_by_role("tabpanel").get_by_label("Name", exact=True).first
    expect(name).to_have_value(re.compile(r"\(2\)$"))
    named = name.input_value()
    name.fill("")
    name.press("Enter")
    expect(name).to_have_value(named)


def test_each_tab_has_its_own_draft(open_page: OpenPage, drafts: str) -> None:
    first = open_page(drafts)
    second = first.context.new_page()
    second.goto(drafts)
    for page, words in ((first, "Of the first."), (second, "Of the second.")):
        in_front(page).get_by_role("tab").first.wait_for()
        page.get_by_label("Text", exact=True).first.fill(words)
        page.wait_for_function("sessionStorage.getItem('timbre-draft-speak')?.includes('Of the')")
    for page, words in ((first, "Of the first."), (second, "Of the second.")):
        in_front(page).reload()
        expect(page.get_by_label("Text", exact=True).first).to_have_value(words)


def test_a_stopped_take_is_kept_when_asked_only(
    open_page: OpenPage, url: str, tmp_path: Path
) -> None:
    page = open_page(url)
    tap = Tap(page, 0)
    page.get_by_label("Text", exact=True).first.fill("x" * 400)
    page.get_by_role("button", name="Speak", exact=True).click()
    tap.wait("now?.report?.played > 4800")
    page.get_by_role("button", name="Stop", exact=True).locator("visible=true").click()
    page.get_by_text("Not kept, as it was stopped.").wait_for()
    expect(page.locator(".timbre-history:visible [data-do=pick]")).to_have_count(0)
    assert Takes(tmp_path / "takes").search() == []
    page.get_by_role("button", name="Keep this part").click()
    page.locator(".timbre-history:visible").get_by_text("Stopped early").wait_for()
    [take] = Takes(tmp_path / "takes").search()
    assert take.stopped


def test_an_instruction_survives_another_voice(open_page: OpenPage, drafts: str) -> None:
    page = open_page(drafts)
    page.get_by_role("tab").first.wait_for()
    instruction = page.get_by_label("Style instructions (optional)")
    instruction.fill("slowly, with a smile")
    for name in ("Ada", "Vivian"):
        page.get_by_role("radio", name=name).click()
        open_ = name == "Vivian"
        page.wait_for_function(
            "(open) => [...document.querySelectorAll('textarea')].some("
            "(each) => each.value.startsWith('slowly') && each.disabled !== open)",
            arg=open_,
        )
        expect(instruction).to_have_value("slowly, with a smile")


def test_a_draft_of_choices_that_are_no_more_keeps_the_rest(
    open_page: OpenPage, drafts: str
) -> None:
    page = open_page(drafts)
    page.get_by_label("Text", exact=True).first.fill("Of before.")
    page.wait_for_function("sessionStorage.getItem('timbre-draft-speak')?.includes('Of before')")
    page.evaluate(
        "() => { const kept = sessionStorage.getItem('timbre-draft-speak').replace('\"off\"', "
        "'\"steady\"'); sessionStorage.setItem('timbre-draft-speak', kept); }"
    )
    assert "steady" in page.evaluate("sessionStorage.getItem('timbre-draft-speak')")
    page.reload()
    expect(page.get_by_label("Text", exact=True).first).to_have_value("Of before.")
    page.get_by_role("button", name="Speak", exact=True).click()
    expect(page.locator(".timbre-history:visible [data-do=pick]").first).to_be_visible()


def test_a_full_storage_of_the_browser_hides_no_lines(open_page: OpenPage, drafts: str) -> None:
    page = script(open_page(drafts))
    page.evaluate(FULL_STORAGE)
    page.get_by_role("button", name="Show an example").click()
    page.locator("#script-lines article").first.wait_for()


def test_typed_text_is_there_after_the_browser_went_back(
    open_page: OpenPage, url: str, tmp_path: Path
) -> None:
    page = script(open_page(url))
    text(page).fill(TEXT)
    page.get_by_role("button", name="Split into lines").click()
    page.locator("#script-lines article").first.wait_for()
    page.get_by_role("button", name="New", exact=True).click()
    expect(text(page)).to_have_value("")
    text(page).fill("Clara: Three.")
    page.get_by_role("button", name="Split into lines").click()
    expect(page.locator("#script-lines article")).to_have_count(1)
    text(page).fill("Clara: Three. And four, typed and not read.")
    page.wait_for_function("sessionStorage['timbre-script-draft']?.includes('not read')")
    page.go_back()
    expect(text(page)).to_have_value(TEXT)
    page.go_forward()
    expect(text(page)).to_have_value("Clara: Three. And four, typed and not read.")
    text(page).fill("Clara: Three. And five.")
    page.get_by_role("button", name="New", exact=True).click()
    expect(text(page)).to_have_value("")
    projects = Projects(tmp_path / "scripts")
    kept = [text_of(projects.open(each.id).script) for each in projects.listed()]
    assert "Clara: Three. And five." in kept
