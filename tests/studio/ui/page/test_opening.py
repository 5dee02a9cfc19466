"""What the page asks its server for when it opens and when its tabs are shown: each thing once."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from engine import Library
from engine.testing import FakeEngine
from studio.context import open_studio
from tests.support.browser import OpenPage, expect, open_tab, serve_page, until_silent
from tests.support.tab_makers import save_many

MANY = 70  # saved voices; cards are shown of 60
ASKED = ("/queue/join", "/gradio_api/run/")


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Library:
    library = Library(tmp_path_factory.mktemp("data") / "voices")
    save_many(library, MANY)
    return library


@pytest.fixture(scope="module")
def url(browser: Any, library: Library) -> Iterator[str]:
    with FakeEngine() as engine, serve_page(open_studio(engine, library)) as url:
        yield url


@pytest.fixture(scope="module")
def page(open_pages: OpenPage, url: str) -> Any:
    page = open_pages(url)
    with asked(page):  # what it asks now is not counted with a reload
        ready(page)
    return page


@contextmanager
def asked(page: Any) -> Iterator[list[str]]:
    """The names of the events that the page sends, known once it is silent."""
    bodies, names = list[Any](), list[str]()

    def note(request: Any) -> None:
        if any(part in request.url for part in ASKED):
            bodies.append(json.loads(request.post_data))

    page.on("request", note)
    yield names
    until_silent(page, bodies)
    page.remove_listener("request", note)
    known = page.evaluate("window.gradio_config.dependencies.map((own) => [own.id, own.api_name])")
    named = (dict(known)[body["fn_index"]] for body in bodies)
    names += sorted(re.sub(r"_\d+$", "", each) for each in named)  # of one name Gradio counts them


def ready(page: Any) -> None:
    page.get_by_role("button", name="Hear a welcome").wait_for()


OPENING = ["arrived", "listed", "opened"]


def test_the_page_opens_with_each_event_once_and_so_does_a_tab(page: Any) -> None:
    with asked(page) as first:
        page.reload()
        ready(page)
    assert first == OPENING
    with asked(page) as library:
        open_tab(page, "Library")
    assert library == ["listed", "listed", "looking", "search", "show"]
    with asked(page) as speak:
        open_tab(page, "Speak")
    assert speak == ["arrive", "chosen", "listed", "looking", "partial", "starts"]


def test_a_voice_far_down_and_its_star_are_there_after_a_reload(
    page: Any, library: Library
) -> None:
    name = library.list()[-1].name
    chosen = page.locator("#speak-voices").get_by_role("radio", name=name)
    page.locator("#speak-find :is(textarea, input)").fill(name)
    page.locator("#speak-find :is(textarea, input)").press("Enter")
    expect(page.locator("#speak-about strong")).to_have_text(name)
    again(page)
    expect(chosen).to_have_attribute("aria-checked", "true")
    page.get_by_role("button", name="Star", exact=True).click()
    page.get_by_role("button", name="Remove star").wait_for()
    again(page)
    expect(chosen.get_by_title("Starred")).to_be_visible()
    expect(page.get_by_role("button", name="Remove star")).to_be_visible()


def again(page: Any) -> None:
    """Load the page anew: what a draft changes is told beside the opening."""
    with asked(page) as sent:
        page.reload()
        ready(page)
    assert sorted({*sent} - {"chosen"}) == OPENING
    assert len(sent) == len({*sent})
