"""Voices as cards under Speak, on the embedded model: chosen by mouse, keys and search, heard when
they are pointed at, never over what plays."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from engine import Library, open_engine
from studio.cli.app_context import MINI
from studio.context import Studio, open_studio
from studio.takes.take_store import Takes
from studio.ui import voice_picker
from tests.support.browser import OpenPage, expect, serve_page
from tests.support.programs import CACHE

POINTED = 800  # ms after which a card that was pointed at would be heard
PLAYED = "(key) => document.querySelector('#speak-voices [data-played]')?.dataset.played === key"
PLAYING = """() => {
  const player = window.timbre.players.find(({ now }) => now)
  Object.defineProperty(player, 'active', { get: () => true })
}"""
COUNTED = """() => {
  const { start } = AudioBufferSourceNode.prototype
  window.started = 0
  AudioBufferSourceNode.prototype.start = function (...when) {
    window.started += 1
    start.apply(this, when)
  }
}"""
BUSY = """(busy) => {
  window.timbre.players[0].now = busy ? { over: false, report: {} } : null
}"""
ABOVE = """([one, other]) => {
  const top = (selector) => document.querySelector(selector).getBoundingClientRect().top
  return top(one) < top(other)
}"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("cards")


@pytest.fixture(scope="module")
def url(browser: Any, folder: Path) -> Iterator[str]:
    with (
        open_engine([MINI], "cpu", cache=CACHE) as engine,
        serve_page(open_studio(engine, Library(folder / "voices"))) as url,
    ):
        yield url


def cards(page: Any) -> Any:
    return page.get_by_role("radiogroup", name="Voices").get_by_role("radio")


def checked(page: Any, place: int) -> str:
    """That this card alone is chosen; its voice."""
    expect(cards(page).nth(place)).to_have_attribute("aria-checked", "true")
    expect(page.locator("#speak-voices [aria-checked=true]")).to_have_count(1)
    key = str(cards(page).nth(place).get_attribute("data-key"))
    expect(page.locator("#speak-voice :is(input, textarea)")).to_have_value(key)
    return key


def kept(folder: Path) -> int:
    return len([*(folder / "samples").glob("*.flac")])


def test_cards_are_heard_when_pointed_at_and_made_once(
    open_page: OpenPage, url: str, folder: Path
) -> None:
    page = open_page(url)
    page.get_by_role("button", name="Hear a welcome").wait_for()
    page.get_by_label("Text", exact=True).click()  # a browser has no sound before a press
    keys = [str(cards(page).nth(place).get_attribute("data-key")) for place in range(3)]
    for place in (1, 2, 1):
        cards(page).nth(place).hover()
        page.wait_for_function(PLAYED, arg=keys[place])
    assert kept(folder) == 2
    checked(page, 0)  # pointing chooses nothing
    again = cards(page).nth(1)
    expect(again).not_to_contain_class("heard")  # it has ended
    again.click()
    expect(again).to_contain_class("heard")  # a press speaks it once more
    assert kept(folder) == 2
    page.get_by_label("Play voices that are pointed at").uncheck()
    cards(page).nth(0).hover()
    page.wait_for_timeout(POINTED)
    page.reload()
    cards(page).nth(0).hover()
    page.wait_for_timeout(POINTED)
    expect(page.get_by_label("Play voices that are pointed at")).not_to_be_checked()
    assert kept(folder) == 2
    assert Takes(folder / "takes").search() == []


def test_keys_choose_a_focused_card_is_heard_and_a_blend_of_nobody_is_told(
    open_page: OpenPage, url: str
) -> None:
    page = open_page(url)
    page.get_by_role("button", name="Hear a welcome").wait_for()
    page.get_by_label("Voice", exact=True).click()
    page.keyboard.press("Tab")
    expect(cards(page).nth(0)).to_be_focused()
    page.keyboard.press("ArrowRight")
    expect(cards(page).nth(1)).to_be_focused()
    key = checked(page, 1)
    expect(page.locator("#speak-about strong")).to_have_text(key.capitalize())
    page.wait_for_function(PLAYED, arg=key)
    page.keyboard.press("ArrowLeft")
    page.keyboard.press("ArrowLeft")  # around the end
    last = checked(page, cards(page).count() - 1)
    page.keyboard.press("Home")
    checked(page, 0)
    page.get_by_label("Voice", exact=True).fill(last)
    expect(cards(page)).to_have_count(1)
    page.get_by_label("Voice", exact=True).press("Enter")
    expect(page.locator("#speak-about strong")).to_have_text(last.capitalize())
    page.get_by_role("button", name="Star", exact=True).click()
    expect(cards(page).first).to_have_attribute("data-key", last)  # favourites first
    expect(cards(page).first).to_have_attribute("aria-checked", "true")
    page.get_by_label("Voice", exact=True).fill("nobody+robert")
    page.get_by_label("Voice", exact=True).press("Enter")
    expect(page.get_by_text("No voice is called 'nobody'")).to_be_visible()


def test_a_card_that_is_left_meanwhile_is_heard_once(
    open_page: OpenPage, url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = voice_picker.sample_of

    async def slow(studio: Studio, voice: Any) -> str | None:
        await asyncio.sleep(2)
        return await made(studio, voice)

    monkeypatch.setattr(voice_picker, "sample_of", slow)
    page = open_page(url)
    page.get_by_role("button", name="Hear a welcome").wait_for()
    page.evaluate(COUNTED)
    card = cards(page).nth(2)
    card.hover()
    expect(card).to_contain_class("heard")
    page.get_by_label("Text", exact=True).hover()
    expect(card).not_to_contain_class("heard")
    card.hover()
    page.wait_for_function("window.started")
    page.wait_for_timeout(200)
    assert page.evaluate("window.started") == 1


def test_a_card_is_heard_at_a_press_once_nothing_else_is_until_speech_begins(
    open_page: OpenPage, url: str
) -> None:
    page = open_page(url)
    page.get_by_role("button", name="Hear a welcome").wait_for()
    card = cards(page).nth(1)
    page.evaluate(BUSY, True)
    card.click()
    page.wait_for_timeout(POINTED)
    page.evaluate(BUSY, False)
    card.click()
    page.wait_for_function(PLAYED, arg=card.get_attribute("data-key"))
    page.get_by_label("Text", exact=True).fill("Good evening.")
    card = cards(page).nth(2)
    card.click()
    expect(card).to_contain_class("heard")
    page.wait_for_function(PLAYED, arg=card.get_attribute("data-key"))
    page.evaluate("timbre.players[0].begin({ id: 'take' })")
    assert page.evaluate("document.querySelectorAll('#speak-voices .heard').length") == 0


def test_no_sample_over_what_plays_and_a_phone_has_the_take_first(
    open_page: OpenPage, url: str
) -> None:
    page = open_page(f"{url}?__theme=dark", viewport={"width": 390, "height": 844}, has_touch=True)
    page.get_by_role("button", name="Hear a welcome").wait_for()
    page.get_by_label("Text", exact=True).fill("Good evening.")
    page.get_by_role("button", name="Speak", exact=True).click()
    page.locator(".timbre-take").first.wait_for()
    page.evaluate(PLAYING)
    cards(page).nth(1).hover()
    page.wait_for_timeout(POINTED)
    assert page.locator("#speak-voices [data-played]").count() == 0
    for settings in (".timbre-settings", ".timbre-manner"):
        assert page.evaluate(ABOVE, [".timbre-take", settings])
    assert page.evaluate(ABOVE, ["#speak-text", "#speak-voices"])
    tops = {card.bounding_box()["y"] for card in cards(page).all()}
    assert len(tops) == 1  # a strip
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    dark = page.evaluate("getComputedStyle(document.body).backgroundColor")
    assert dark == page.evaluate("getComputedStyle(document.documentElement).backgroundColor")
