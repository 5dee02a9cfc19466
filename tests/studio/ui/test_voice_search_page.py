"""An old voice of a large library is found by typing, in every menu of the page."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from typing import Any

import pytest

from engine import Library
from studio.ui.voice_list import SHOWN
from tests.support.browser import DRAWN, OpenPage, Tap, expect, open_tab, wait_until
from tests.support.cuttable import Servers, fill, opened
from tests.support.tab_makers import save_many

MANY = 150
OLD, OLDER = "Voice 017", "Voice 004"


@pytest.fixture(scope="module")
def servers(browser: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Servers]:
    folder = tmp_path_factory.mktemp("data")
    save_many(Library(folder / "voices"), MANY)
    with ExitStack() as stack:
        yield Servers(folder, stack)


@pytest.fixture(scope="module")
def tap(open_pages: OpenPage, servers: Servers) -> Tap:
    """One page for all: each test is in a tab of its own."""
    return opened(open_pages, servers.wire.url)


def options(page: Any) -> Any:
    return page.locator("[role=listbox] [role=option]")


def test_an_old_voice_is_found_and_spoken_with(tap: Tap, servers: Servers) -> None:
    page = tap.page
    cards = page.get_by_role("radiogroup", name="Voices").get_by_role("radio")
    search, about = page.get_by_label("Voice", exact=True), page.locator("#speak-about strong")
    expect(cards.filter(has_text="Voice 149")).to_have_count(0)  # the first ones are shown
    expect(cards).to_have_count(SHOWN)
    search.press_sequentially("voice 01")
    expect(cards).to_have_count(12)  # 01 anywhere
    search.press_sequentially("7")
    expect(cards).to_have_count(1)
    search.press("Enter")
    expect(about).to_have_text(OLD)
    expect(search).to_have_value("")
    fill(page, "Text", "Good evening.")
    page.get_by_role("button", name="Speak", exact=True).click()
    tap.wait("now?.made")
    wait_until(lambda: [take.voice for take in servers.takes.search("Good evening")] == [OLD])
    page.reload()
    expect(about).to_have_text(OLD)
    search.fill("017")
    expect(cards).to_have_count(1)
    expect(cards).to_have_attribute("aria-checked", "true")


def test_old_voices_are_blended_also_after_a_restart(tap: Tap, servers: Servers) -> None:
    page = tap.page
    open_tab(page, "Blend")
    panel = page.locator("#blend-voices")
    voices = panel.get_by_role("combobox", name="Voices")
    expect(panel.locator(".token")).to_have_count(4)  # what the tab begins with
    panel.get_by_title("Clear").click()
    page.evaluate(DRAWN)
    expect(panel.locator(".token")).to_have_count(0)
    voices.click()
    for name in (OLD, OLDER):
        voices.press_sequentially(name[-3:])
        expect(options(page).first).to_have_text(f"✓ {name}")
        voices.press("Enter")
        expect(panel.locator(".token", has_text=name)).to_have_count(1)
        expect(voices).to_have_value("")
        expect(options(page).filter(has_text="Voice 149")).to_have_count(1)
    voices.press("Escape")
    formula = page.locator("#blend-recipe :is(input, textarea)")
    expect(formula).to_have_value(f"{OLD}(50)+{OLDER}(50)")
    fill(page, "What to say", "Hi.")
    page.get_by_role("button", name="Speak the blend").click()
    state = page.locator(".timbre-player").get_by_text("Finished")
    state.wait_for()
    servers.wire.cut()
    servers.wire.mend(servers.start())  # another process, which knows nothing of the page
    page.get_by_role("button", name="Play all nine steps").click()
    page.locator(".timbre-player .voice").get_by_text(f"{OLD} → {OLDER}").wait_for()
    state.wait_for()


def test_an_old_voice_is_cast(tap: Tap) -> None:
    page = tap.page
    open_tab(page, "Script")
    page.locator("#script-lines .timbre-board > *").first.wait_for()
    page.locator("#script-text textarea").fill("Anna: Hi.\nBen: Hi.")
    page.get_by_role("button", name="Split into lines").click()
    cast = page.locator("#script-cast select").first
    expect(cast.get_by_text(OLD)).to_have_count(0)
    search = page.get_by_label("Search for a voice")
    search.fill("nobody")
    page.locator("#script-cast").get_by_text("No results").wait_for()
    search.fill("017")
    expect(cast.get_by_text(OLD)).to_have_count(1)
    cast.select_option(OLD)
    search.fill("")
    expect(cast.get_by_text("Voice 149")).to_have_count(1)
    expect(cast.locator("option:checked")).to_have_text(OLD)
    page.locator("#script-cast").get_by_role("button", name="Listen").first.click()
    page.locator(".timbre-player").get_by_text("Finished").wait_for()
