"""Files in and out of the Script tab in a browser: a book, an audiobook, a project and back."""

from __future__ import annotations

import re
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import av
import pytest

from engine import Library
from engine.testing import Costs, FakeEngine
from studio.context import open_studio
from studio.scripts.export import export_jobs
from studio.scripts.export.script_files import export
from studio.scripts.store import ScriptStore
from tests.studio.imports.books.book_makers import epub
from tests.support.browser import PATIENCE, OpenPage, expect, open_tab, serve_page

BOOK = epub(
    {
        "a.xhtml": "<h1>The Storm</h1><p>It had been raining for a whole week.</p>",
        "b.xhtml": "<h1>The Sun</h1><p>Then it was over, and they went out.</p>",
    }
)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("data")


@pytest.fixture(scope="module")
def url(browser: Any, folder: Path) -> Iterator[str]:
    with (
        FakeEngine(costs=Costs(step=0.002)) as engine,
        serve_page(open_studio(engine, Library(folder / "voices"))) as url,
    ):
        yield url


@pytest.fixture(scope="module")
def page(open_pages: OpenPage, url: str) -> Any:
    """One page for files that come in."""
    page = open_pages(url)
    page.get_by_role("tab").first.wait_for()
    open_tab(page, "Script")
    page.locator("#script-lines .timbre-board > *").first.wait_for()
    return page


def give_book(page: Any) -> None:
    upload = page.locator("input[type=file][accept*='.epub']")
    upload.set_input_files({"name": "Weather.epub", "mimeType": "", "buffer": BOOK})


def download(page: Any, folder: Path) -> Path:
    with page.expect_download() as begun:
        page.locator("#script-export a[download]").first.click()
    path = folder / begun.value.suggested_filename
    begun.value.save_as(path)
    return path


def test_a_book_becomes_an_audiobook_and_a_project_that_comes_back(
    page: Any, tmp_path: Path
) -> None:
    give_book(page)
    page.locator("#script-lines p", has_text="It had been raining").wait_for()
    page.locator(".timbre-go:visible").click()
    page.locator("#script-lines").get_by_text("4 lines · 4 rendered").wait_for()
    export = page.locator("#script-export")
    export.get_by_label("m4b", exact=True).check()
    export.get_by_role("button", name="Export", exact=True).last.click()
    export.locator("a[download]").first.wait_for()
    path = download(page, tmp_path)
    assert path.name == "Weather.m4b"
    with av.open(str(path)) as file:
        titles = [each["metadata"]["title"] for each in file.chapters()]
        assert titles == ["The Storm", "The Sun"]
        assert sum(frame.samples for frame in file.decode(audio=0)) > 24_000
    page.reload()  # the server has it still
    page.get_by_role("tab").first.wait_for()
    open_tab(page, "Script")
    export.locator("a[download='Weather.m4b']").wait_for()
    export.get_by_role("button", name="Save project (.zip)").click()
    export.locator("a[download='Weather.zip']").wait_for()
    project = download(page, tmp_path)
    for accepts, name in (("='.zip'", "Weather (2)"), ("*='.epub'", "Weather (3)")):
        page.locator(f"input[type=file][accept{accepts}]").set_input_files(project)
        page.get_by_text(f"This one is called “{name}”").wait_for()
        all_lines = re.compile("^4 lines · 4 rendered")
        page.locator("#script-lines .bar p", has_text=all_lines).wait_for()


def test_an_export_shows_how_far_it_is_also_after_a_reload_and_is_cancelled(
    open_page: OpenPage, url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    may_go_on = threading.Event()

    def slow(*values: Any) -> Any:
        values[-1]("subtitles", 0.25)
        assert may_go_on.wait(PATIENCE)
        return export(*values)

    monkeypatch.setattr(export_jobs, "export", slow)
    page = open_page(url)
    page.get_by_role("tab").first.wait_for()
    open_tab(page, "Script")
    page.get_by_role("button", name="Show an example").click()
    page.locator("#script-lines article").nth(5).wait_for()  # before it there is nothing to speak
    page.locator(".timbre-go:visible").click()
    page.locator("#script-lines").get_by_text("6 lines · 6 rendered").wait_for()
    section = page.locator("#script-export")
    press = section.get_by_role("button", name="Export", exact=True).last
    press.click()
    for again in (False, True):
        if again:
            page.reload()
            page.get_by_role("tab").first.wait_for()
            open_tab(page, "Script")
        section.get_by_text("Timing subtitles").wait_for()
        expect(section.locator(".timbre-export p")).to_contain_text("25 %")
        expect(section.locator("progress")).to_have_attribute("value", "0.417")
        expect(press).to_be_disabled()
    section.get_by_role("button", name="Cancel the export").click()
    may_go_on.set()
    section.get_by_text("The export was cancelled.").wait_for()
    expect(press).to_be_enabled()
    expect(section.locator("a[download]")).to_have_count(0)


def test_a_file_that_is_no_project_is_refused_in_words(page: Any, folder: Path) -> None:
    field = page.locator("input[type=file][accept='.zip']")
    for content, place in ((b"no archive", ".toast-body"), (b"", ".timbre-import em")):
        field.set_input_files({"name": "mine.zip", "mimeType": "", "buffer": content})
        page.locator(place).get_by_text("This file is damaged").first.wait_for()
    assert not any((folder / "uploads").iterdir())


def test_a_file_that_is_read_is_told_until_it_is_there(
    page: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    go, receive = threading.Event(), ScriptStore.receive

    def slow(self: ScriptStore, *args: Any) -> Any:
        assert go.wait(PATIENCE)
        return receive(self, *args)

    monkeypatch.setattr(ScriptStore, "receive", slow)
    give_book(page)
    expect(page.get_by_role("button", name="Reading the file …")).to_be_disabled()
    go.set()
    page.locator("#script-lines p", has_text="It had been raining").wait_for()
    expect(page.get_by_role("button", name="Upload a file")).to_be_enabled()
