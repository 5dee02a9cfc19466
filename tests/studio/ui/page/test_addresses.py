"""Tabs, scripts, takes and voices have addresses: Back goes back, a link opens what it names."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import pytest

from engine import Library
from engine.testing import FakeEngine
from studio.context import open_studio
from tests.support.browser import DRAWN, OpenPage, expect, open_tab, serve_page
from tests.support.tab_makers import some_clone


@pytest.fixture(scope="module")
def url(browser: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    library = Library(tmp_path_factory.mktemp("data") / "voices")
    library.save("Ada", some_clone(), consent=True)
    with FakeEngine() as engine, serve_page(open_studio(engine, library)) as url:
        yield url


def opened(page: Any, name: str) -> None:
    expect(page.get_by_role("tab", name=name, exact=True)).to_have_attribute(
        "aria-selected", "true"
    )


def test_back_goes_to_the_tab_before_and_a_link_to_what_it_names(
    open_page: OpenPage, url: str
) -> None:
    page = open_page(f"{url}#%E0%A4%A")  # no address of ours, and no UTF-8
    page.get_by_label("Text", exact=True).first.fill("The train leaves at seven.")
    page.locator(".timbre-go:visible").click()
    link = page.locator("[data-do=copy]:visible", has_text="Copy link").first
    take = (link.get_attribute("data-text") or "").replace("{page}", url.rstrip("/"))
    open_tab(page, "Library")
    opened(page, "Takes")
    open_tab(page, "Voices")
    opened(page, "Voices")
    expect(page).to_have_url(re.compile("#voices$"))
    page.locator("#library-voices li", has_text="Ada").get_by_text("Use in Speak").click()
    opened(page, "Speak")
    page.go_back()
    opened(page, "Voices")
    open_tab(page, "Script")
    page.get_by_role("button", name="Show an example").click()
    expect(page).to_have_url(re.compile("#script=."))
    script = page.url
    page.goto("about:blank")
    page.goto(script)
    page.locator("#script-lines article").first.wait_for()
    opened(page, "Script")
    page.goto("about:blank")
    page.goto(take)
    opened(page, "Takes")
    page.locator(".timbre-take:visible", has_text="The train leaves at seven.").wait_for()
    page.evaluate("location.hash = 'moods'")
    opened(page, "Moods")
    page.goto("about:blank")
    page.goto(f"{url}#use-voice=%23ada")
    expect(page.locator("#speak-about strong")).to_have_text("Ada")
    for wrong in ("nobody", "script=../../x", 'a"]b', "take="):
        page.evaluate("wrong => (location.hash = wrong)", wrong)
    page.evaluate(DRAWN)
    expect(page.locator("#speak-about strong")).to_have_text("Ada")
