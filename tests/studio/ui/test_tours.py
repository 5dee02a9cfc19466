"""The six jobs that people come with, done in a browser on the embedded model, with every press
counted: a click, a choice, a file, a text that is typed or pasted, a key that is no letter of it.
docs/studio.md tells the counts."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import av
import pytest
import soundfile

from engine import Library, open_engine
from studio.cli.app_context import MINI
from studio.context import Studio, open_studio
from studio.ui.tabs.clone import READ_ALOUD
from tests.studio.imports.books.book_makers import epub
from tests.studio.ui.test_clone_page import MICROPHONE
from tests.support.browser import OpenPage, expect, serve_page
from tests.support.programs import CACHE

RECORDED = 7_000  # ms that the line to read may take
PAGE = "<h1>{}</h1><p>The sea was calm.</p>"
PACKAGE = """<package xmlns="http://www.idpf.org/2007/opf">
<metadata xmlns:dc="http://purl.org/dc/elements/1.1/"><dc:title>The Sea</dc:title></metadata>
<manifest><item id="one" href="One.xhtml" media-type="application/xhtml+xml"/>
<item id="two" href="Two.xhtml" media-type="application/xhtml+xml"/></manifest>
<spine><itemref idref="one"/><itemref idref="two"/></spine></package>"""
DIALOGUE = """Maya: Welcome back. Today we talk about the sea.
Tom: And about ships, I hope.
Maya: About ships too."""


@pytest.fixture(scope="module")
def studio(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Studio]:
    with open_engine([MINI], "cpu", cache=CACHE) as engine:
        yield open_studio(engine, Library(tmp_path_factory.mktemp("tours") / "voices"))


@pytest.fixture(scope="module")
def url(browser: Any, studio: Studio) -> Iterator[str]:
    with serve_page(studio) as url:
        yield url


class Visitor:
    """Somebody at a page, whose presses are counted."""

    def __init__(self, page: Any) -> None:
        self.page, self.presses = page, 0
        self.page.wait_for_function("window.timbre?.players[0]?.speaker.node")

    def press(self, what: Any) -> None:
        what.click()
        self.presses += 1

    def button(self, name: str) -> None:
        named = self.page.get_by_role("button", name=name, exact=True)
        self.press(named.locator("visible=true").last)

    def tab(self, name: str) -> None:
        self.press(self.page.get_by_role("tab", name=name, exact=True))
        expect(self.page.get_by_role("tab", name=name, exact=True)).to_have_attribute(
            "aria-selected", "true"
        )

    def type(self, field: Any, text: str) -> None:
        field.fill(text)
        self.presses += 1

    def choose(self, select: Any, value: str) -> None:
        select.select_option(value)
        self.presses += 1

    def key(self, key: str) -> None:
        self.page.keyboard.press(key)
        self.presses += 1

    def download(self, name: str, folder: Path) -> Path:
        with self.page.expect_download() as saved:
            self.press(self.page.locator(f"a[download$='{name}']"))
        path = folder / saved.value.suggested_filename
        saved.value.save_as(path)
        return path


@pytest.fixture
def visit(open_page: OpenPage, url: str) -> Callable[..., Visitor]:
    return lambda **options: Visitor(open_page(url, **options))


def test_a_podcast_in_eight_presses(visit: Callable[..., Visitor], tmp_path: Path) -> None:
    """Two voices of one's own choice, one line once more, an MP3."""
    visitor = visit()
    page = visitor.page
    visitor.tab("Script")
    visitor.type(page.locator("#script-text textarea"), DIALOGUE)
    visitor.button("Speak")
    lines, cast = page.locator("#script-lines"), page.locator("#script-cast")
    for who, voice in (("Maya", "iris"), ("Tom", "otto")):
        visitor.choose(cast.locator(f"select[data-who={who}]"), voice)
    expect(lines.get_by_role("button", name="Undo: the voice of Tom")).to_be_visible()
    stale = "Made before a change"  # a machine was quicker than the choice
    expect(lines).to_contain_text(re.compile(f"3 lines · 3 rendered|{stale}"))
    once_more = lines.get_by_text(stale).count() > 0
    if once_more:
        visitor.button("Speak")
    expect(lines).to_contain_text("3 lines · 3 rendered")
    second = lines.locator("article").nth(1)
    visitor.press(second.get_by_role("button", name="Regenerate"))
    expect(second).to_contain_text("seed")
    expect(lines).to_contain_text("3 lines · 3 rendered")
    visitor.button("Export")
    made = visitor.download(".mp3", tmp_path)
    assert soundfile.info(made).duration > 3
    assert visitor.presses <= 8 + once_more


def test_an_audiobook_in_five_presses(visit: Callable[..., Visitor], tmp_path: Path) -> None:
    """A book's file in, an M4B with its chapters, title and author out."""
    book = tmp_path / "sea.epub"
    pages = {f"{name}.xhtml": PAGE.format(name) for name in ("One", "Two")}
    book.write_bytes(epub(pages, {"OEBPS/book.opf": PACKAGE}))
    visitor = visit()
    lines = visitor.page.locator("#script-lines")
    visitor.tab("Script")
    with visitor.page.expect_file_chooser() as chooser:
        visitor.page.get_by_role("button", name="Upload a file").click()
    chooser.value.set_files(book)
    visitor.presses += 1
    expect(lines).to_contain_text("The sea was calm.")
    visitor.button("Speak")
    expect(lines).to_contain_text("4 lines · 4 rendered")
    visitor.button("Export")
    made = visitor.download(".m4b", tmp_path)
    with av.open(str(made)) as opened:
        assert len(opened.chapters()) == 2
        assert opened.metadata["title"] == "The Sea"
    assert visitor.presses <= 5


def test_a_teachers_clone_in_seven_presses(open_page: OpenPage, url: str, studio: Studio) -> None:
    """Recorded with the microphone, with the words that were read, tried and saved."""
    page = open_page("about:blank")
    page.add_init_script(MICROPHONE)
    page.goto(url)
    visitor = Visitor(page)
    visitor.tab("Clone")
    visitor.press(page.locator("#clone-recording .record-button"))
    page.wait_for_timeout(RECORDED)
    visitor.press(page.locator("#clone-recording .stop-button"))
    expect(page.get_by_label("Transcript (optional)")).to_have_value(READ_ALOUD[0])
    visitor.press(page.get_by_label("This is my voice"))
    visitor.button("Try it")
    expect(page.locator(".timbre-player").get_by_text("Finished")).to_be_visible()
    panel = page.get_by_role("tabpanel").filter(has=page.locator("#clone-recording"))
    visitor.type(panel.get_by_label("Name", exact=True), "Ms Lind")
    visitor.button("Save as voice")
    expect(panel).to_contain_text("Ms Lind is saved")
    assert studio.library.named("Ms Lind") is not None
    assert visitor.presses <= 7


def test_a_designers_character_in_six_presses(
    visit: Callable[..., Visitor], studio: Studio
) -> None:
    """Described, three takes heard one after the other, one of them saved."""
    visitor = visit()
    page = visitor.page
    visitor.tab("Design")
    visitor.type(page.get_by_label("The voice"), "A calm old man with a deep voice.")
    visitor.button("Make three takes")
    expect(page.get_by_text("s, seed")).to_have_count(3)
    visitor.press(page.get_by_label("Take 2", exact=True))
    panel = page.get_by_role("tabpanel").filter(has=page.get_by_text("Which take to save?"))
    visitor.type(panel.get_by_label("Name"), "The ferryman")
    visitor.button("Save as voice")
    expect(panel).to_contain_text("The ferryman is saved")
    assert studio.library.named("The ferryman") is not None
    assert visitor.presses <= 6


def test_a_sentence_on_a_phone_in_four_presses(visit: Callable[..., Visitor]) -> None:
    """Typed, in another voice, heard, starred."""
    visitor = visit(viewport={"width": 390, "height": 844}, has_touch=True, is_mobile=True)
    page = visitor.page
    visitor.type(page.locator("#speak-text textarea"), "The ferry leaves at eight.")
    visitor.press(page.get_by_role("radiogroup", name="Voices").get_by_role("radio").nth(1))
    visitor.button("Speak")
    take = page.locator(".timbre-take")
    expect(take).to_be_visible()
    visitor.press(take.get_by_role("button", name="Star"))
    assert visitor.presses <= 4
    wide = "document.documentElement.scrollWidth - document.documentElement.clientWidth"
    assert page.evaluate(wide) == 0


def test_a_script_by_keys_alone(visit: Callable[..., Visitor]) -> None:
    """To the script, typed, spoken, a line edited and made anew; no pointer is used."""
    visitor = visit()
    page, lines = visitor.page, visitor.page.locator("#script-lines")
    expect(page.locator("#speak-text textarea")).to_be_focused()  # as a page opens
    visitor.key("Shift+Tab")
    for name in ("Library", "Script"):
        visitor.key("ArrowLeft")
        chosen = page.get_by_role("tab", name=name, exact=True)
        expect(chosen).to_have_attribute("aria-selected", "true")
    expect(lines.get_by_role("button", name="Show an example")).to_be_visible()
    visitor.key("F6")
    expect(page.locator("#script-text textarea")).to_be_focused()
    page.keyboard.insert_text(DIALOGUE)
    visitor.presses += 1
    visitor.key("Control+Enter")
    expect(lines).to_contain_text("3 lines · 3 rendered")
    visitor.key("F6")
    visitor.key("ArrowDown")
    visitor.key("e")
    visitor.key("Control+a")
    page.keyboard.insert_text("And about whales.")
    visitor.presses += 1
    visitor.key("Enter")
    expect(lines.locator("article").nth(1)).to_contain_text("And about whales.")
    expect(lines).to_contain_text("3 lines · 3 rendered")
    assert visitor.presses <= 12
