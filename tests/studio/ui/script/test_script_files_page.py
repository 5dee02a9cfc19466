"""Files in and out of the Script tab in a browser: a book, an audiobook, a project and back."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import av
import fastapi
import pytest

from engine import Library
from engine.testing import Costs, FakeEngine
from studio.context import open_studio
from studio.ui.page import mount_page
from tests.studio.imports.book_makers import epub
from tests.support.browser import OpenPage, Server, open_tab

BOOK = epub(
    {
        "a.xhtml": "<h1>The Storm</h1><p>It had been raining for a whole week.</p>",
        "b.xhtml": "<h1>The Sun</h1><p>Then it was over, and they went out.</p>",
    }
)


@pytest.fixture
def url(browser: Any, tmp_path: Path) -> Iterator[str]:
    application = fastapi.FastAPI()
    with FakeEngine(costs=Costs(step=0.002)) as engine:
        mount_page(application, open_studio(engine, Library(tmp_path / "voices")))
        with Server(application) as url:
            yield url


def download(page: Any, folder: Path) -> Path:
    with page.expect_download() as begun:
        page.locator("#script-export a[download]").first.click()
    path = folder / begun.value.suggested_filename
    begun.value.save_as(path)
    return path


def test_a_book_becomes_an_audiobook_and_a_project_that_comes_back(
    open_page: OpenPage, url: str, tmp_path: Path
) -> None:
    page = open_page(url)
    page.get_by_role("button", name="Hear a welcome").wait_for()
    open_tab(page, "Script")
    page.locator("#script-lines .timbre-board > *").first.wait_for()
    upload = page.locator("input[type=file][accept*='.epub']")
    upload.set_input_files({"name": "Weather.epub", "mimeType": "", "buffer": BOOK})
    page.locator("#script-lines p", has_text="It had been raining").wait_for()
    page.locator(".timbre-go:visible").click()
    page.locator("#script-lines").get_by_text("4 lines · 4 rendered").wait_for()
    page.get_by_role("button", name="Export").first.click()
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
    export.get_by_role("button", name="Save project (.zip)").click()
    export.locator("a[download='Weather.zip']").wait_for()
    project = download(page, tmp_path)
    for accepts, name in (("='.zip'", "Weather (2)"), ("*='.epub'", "Weather (3)")):
        page.locator(f"input[type=file][accept{accepts}]").set_input_files(project)
        page.get_by_text(f"This one is called “{name}”").wait_for()
        all_lines = re.compile("^4 lines · 4 rendered")
        page.locator("#script-lines .bar p", has_text=all_lines).wait_for()


def test_a_file_that_is_no_project_is_refused_in_words(
    open_page: OpenPage, url: str, tmp_path: Path
) -> None:
    page = open_page(url)
    page.get_by_role("button", name="Hear a welcome").wait_for()
    page.get_by_role("tab", name="Script").click()
    page.locator("#script-lines .timbre-board > *").first.wait_for()
    field = page.locator("input[type=file][accept='.zip']")
    for content, said in ((b"no archive", "This file is damaged"), (b"", "Say how long")):
        field.set_input_files({"name": "mine.zip", "mimeType": "", "buffer": content})
        page.get_by_text(said).first.wait_for()
    assert not any((tmp_path / "uploads").iterdir())
