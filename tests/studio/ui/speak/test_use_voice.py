"""A voice is heard and starred on its card, and used under Speak from wherever it was made."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any
from urllib.parse import unquote

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


@pytest.fixture(scope="module")
def page(open_pages: OpenPage, url: str) -> Any:
    """One page for all: what a test leaves are a star and a voice."""
    return open_pages(url)


HEARD = "window.timbre.players.some(({ now }) => now?.made && now.report?.played > 4800)"


def to(page: Any, *tabs: str) -> None:
    for name in tabs:
        open_tab(page, name)


def used(page: Any, name: str) -> None:
    """That Speak is in front, with this voice."""
    expect(page.get_by_role("tab", name="Speak", exact=True)).to_have_attribute(
        "aria-selected", "true"
    )
    expect(page.locator("#speak-about strong")).to_have_text(name)


def test_a_voice_is_used_from_its_card_and_from_where_it_was_made(page: Any) -> None:
    cards = page.locator("#library-voices")
    for name in ("Serena", "Ada", "Serena"):
        to(page, "Library", "Voices")
        cards.locator("li", has_text=name).get_by_text("Use in Speak").click()
        used(page, name)
    to(page, "Blend")
    panel = page.get_by_role("tabpanel").filter(has=page.locator("#blend-pad"))
    panel.get_by_label("Name", exact=True).fill("Ours")
    panel.get_by_role("button", name="Save as voice").click()
    panel.get_by_role("link", name="Use in Speak").click()
    used(page, "Ours")


def test_a_card_is_heard_and_a_star_is_there_after_a_reload(page: Any) -> None:
    to(page, "Library", "Voices")
    page.get_by_role("button", name="Listen: Ada").click()
    page.wait_for_function(HEARD)
    page.get_by_role("button", name="Star: Vivian").click()
    page.get_by_role("button", name="Remove star: Vivian").wait_for()
    page.reload()
    to(page, "Library", "Voices")
    expect(page.locator("#library-voices strong").first).to_have_text("Vivian")
    page.get_by_label("Starred").locator("visible=true").check()
    expect(page.locator("#library-voices strong")).to_have_count(1)


def test_what_the_map_has_found_is_used_under_speak(page: Any) -> None:
    to(page, "Blend", "Map")
    page.locator(".timbre-map li button", has_text="Serena").click()
    page.locator(".timbre-map .use").click()
    used(page, "Serena")
    to(page, "Blend")
    canvas = page.locator(".timbre-map canvas")
    for _ in range(8):
        canvas.press("ArrowRight")
    page.evaluate(DRAWN)
    use = page.locator(".timbre-map .use")
    written = unquote(use.get_attribute("href").split("=", 1)[1])
    assert "+" in written
    use.click()
    expect(page.locator("#speak-voice :is(input, textarea)")).to_have_value(written)
    expect(page.locator("#speak-about")).to_contain_text("A blend")
