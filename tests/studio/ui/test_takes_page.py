"""The kept takes and the models in a browser: what is pressed is heard, shown and done."""

from __future__ import annotations

import re
import threading
import time
import zipfile
from collections.abc import Iterator
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from engine import Library, Preset, SpeechRequest
from engine.testing import Costs, FakeEngine
from studio.context import open_studio
from studio.takes.take_store import Take, Takes
from tests.support.browser import OpenPage, Tap, expect, open_tab, paste, serve_page, wait_until
from tests.support.player_stage import as_heard

TEXTS = ("The first of them.", "The second one.")


@pytest.fixture(scope="module")
def engine() -> Iterator[FakeEngine]:
    with FakeEngine(costs=Costs(step=0.01)) as engine:
        yield engine


@pytest.fixture(scope="module")
def takes(engine: FakeEngine, tmp_path_factory: pytest.TempPathFactory) -> Takes:
    takes = Takes(tmp_path_factory.mktemp("takes"))
    for seed, text in enumerate(TEXTS):
        pcm = engine.submit(SpeechRequest(text, Preset("ryan"), seed=seed)).collect()
        takes.add(pcm, text, "ryan", seed)
    return takes


@pytest.fixture(scope="module")
def url(browser: Any, engine: FakeEngine, takes: Takes, tmp_path_factory: Any) -> Iterator[str]:
    library = Library(tmp_path_factory.mktemp("own") / "voices")
    with serve_page(open_studio(engine, library, takes)) as url:
        yield url


@pytest.fixture(scope="module")
def page(open_pages: OpenPage, url: str) -> Any:
    """One page for all: each test leaves the whole list behind, nothing searched or filtered."""
    page = open_pages(url)
    page.get_by_role("button", name="Hear a welcome").wait_for()
    return page


def test_a_take_is_spoken_again_and_stands_beside_the_first(page: Any, takes: Takes) -> None:
    open_tab(page, "Library")
    page.locator("[data-do=pick]:visible", has_text=TEXTS[0]).click()
    card = page.locator(".timbre-take:visible")
    card.get_by_role("button", name="Regenerate, same seed").click()
    card.nth(1).wait_for()
    [other, one] = takes.search(TEXTS[0])
    assert np.array_equal(takes.pcm(other.id), takes.pcm(one.id))
    assert other.seed == one.seed
    card.nth(1).get_by_role("button", name="Close").click()
    card.nth(1).wait_for(state="hidden")


def test_a_take_is_starred_deleted_and_brought_back(page: Any, takes: Takes) -> None:
    open_tab(page, "Library")
    row = page.locator("[data-do=pick]:visible", has_text=TEXTS[1])
    row.click()
    card = page.locator(".timbre-take:visible")
    expect(card).to_contain_text(TEXTS[1])
    card.get_by_role("button", name="Star").click()
    row.get_by_text("★").wait_for()
    card.get_by_role("button", name="Delete").click()
    row.wait_for(state="detached")
    assert takes.search(TEXTS[1]) == []
    card.get_by_role("button", name="Restore").click()
    row.wait_for()
    assert takes.search(TEXTS[1])[0].starred
    page.get_by_label("Starred").check()
    page.locator("[data-do=pick]:visible", has_text=TEXTS[0]).first.wait_for(state="detached")
    row.wait_for()
    page.get_by_label("All", exact=True).check()
    page.locator("[data-do=pick]:visible", has_text=TEXTS[0]).first.wait_for()


def test_a_kept_take_is_heard_sample_for_sample(page: Any, takes: Takes) -> None:
    open_tab(page, "Library")
    row = page.locator("li:visible", has_text=TEXTS[0]).last
    page.evaluate("window.timbre.hear({ take: 'gone', voice: '', text: '', samples: 24000 })")
    bar = page.get_by_role("region", name="Player")
    bar.get_by_text("This take could not be loaded.").wait_for()
    deck = Tap(page, page.evaluate("window.timbre.players.length") - 1)
    row.get_by_role("button", name="Play").click()
    deck.wait("now?.payload.text && now.over")
    [kept] = takes.search(TEXTS[0])[-1:]
    expect(bar.locator(".text")).to_have_text(TEXTS[0])
    made = as_heard(np.trim_zeros(takes.pcm(kept.id)))
    assert np.array_equal(deck.sound()[60:], made[60:])
    row.get_by_role("button", name="Play").click()  # once more, from the samples that are here
    deck.wait("now.over && player.active")


def test_a_kept_take_stopped_while_it_loads_is_heard_whole_the_next_time(
    page: Any, takes: Takes
) -> None:
    open_tab(page, "Library")
    row = page.locator("li:visible", has_text=TEXTS[1]).last
    [kept] = takes.search(TEXTS[1])[-1:]
    page.route(f"**/{kept.id}.pcm?*", lambda _: None)  # it never comes
    row.get_by_role("button", name="Play").click()
    deck = Tap(page, page.evaluate("window.timbre.players.length") - 1)
    deck.wait(f"player.kept === '{kept.id}'")
    page.get_by_role("region", name="Player").get_by_role("button", name="Stop").click()
    deck.wait("now.stopped")
    page.unroute(f"**/{kept.id}.pcm?*")
    row.get_by_role("button", name="Play").click()
    deck.wait("now.over && now.made && !now.stopped")
    assert deck.get("received") == len(takes.pcm(kept.id))


def test_selected_rows_are_downloaded_and_deleted_together(page: Any, takes: Takes) -> None:
    open_tab(page, "Library")
    rows = page.locator(".timbre-history li:visible")
    rows.nth(1).wait_for()
    chosen = page.locator(".timbre-chosen:visible")
    first = rows.nth(0).get_by_role("checkbox")
    first.check()
    first.press("ArrowDown")
    page.keyboard.press("Space")
    expect(rows.nth(1).get_by_role("checkbox")).to_be_checked()
    expect(chosen.get_by_role("status")).to_have_text("2")
    with page.expect_download() as download:
        chosen.get_by_text("Download (.zip)").click()
    with zipfile.ZipFile(download.value.path()) as pack:
        assert len(pack.namelist()) == 2
    much = chosen.get_by_text("Too many for one file")
    pack_link = chosen.locator("a.pack")
    for bound in ("most", "samples"):
        kept = pack_link.evaluate("(own, name) => own.dataset[name]", bound)
        pack_link.evaluate("(own, name) => own.dataset[name] = 1", bound)
        first.uncheck()
        first.check()
        expect(much).to_be_visible()
        assert pack_link.get_attribute("href") is None
        pack_link.evaluate("(own, [name, kept]) => own.dataset[name] = kept", [bound, kept])
        first.uncheck()
        expect(much).to_be_hidden()
    first.check()
    before = takes.search()
    chosen.get_by_label("Select all").check()
    chosen.get_by_role("button", name="Delete").click()
    page.get_by_text("What is spoken under Speak is kept here.").wait_for()
    assert takes.search() == []
    page.get_by_label("Deleted").check()
    chosen.get_by_label("Select all").check()
    chosen.get_by_role("button", name="Restore").click()
    page.get_by_text("Nothing is deleted.").wait_for()
    assert [take.id for take in takes.search()] == [take.id for take in before]
    page.get_by_label("All", exact=True).check()


def test_a_take_has_the_time_of_where_its_listener_is(
    open_page: OpenPage, url: str, takes: Takes
) -> None:
    page = open_page(url, timezone_id="Asia/Tokyo")
    open_tab(page, "Library")
    newest = takes.search()[0]
    then = datetime.fromtimestamp(newest.created, timezone(timedelta(hours=9)))
    row = page.locator("li:visible", has=page.locator(f"[data-take='{newest.id}']"))
    expect(row.locator("small")).to_have_text(re.compile(rf"{then:%H:%M}$"))


def test_a_pasted_word_is_searched_and_so_is_what_is_left_of_it(page: Any) -> None:
    open_tab(page, "Library")
    rows = page.locator("[data-do=pick]:visible")
    rows.nth(1).wait_for()
    search = page.get_by_label("Search").locator("visible=true")
    paste(page, search, "second one.x")
    page.get_by_text("No results").locator("visible=true").wait_for()
    search.press("Backspace")
    expect(rows).to_have_count(1)
    expect(rows).to_contain_text(TEXTS[1])
    search.fill("")
    rows.nth(1).wait_for()


def test_an_older_list_never_replaces_a_newer_one(
    page: Any, takes: Takes, monkeypatch: pytest.MonkeyPatch
) -> None:
    search, newer, older = takes.search, threading.Event(), threading.Event()

    def found(words: str = "", **wanted: Any) -> list[Take]:
        listed = search(words, **wanted)
        if words:
            newer.set()
        elif newer.wait(1):  # it was asked meanwhile: let its answer arrive first
            time.sleep(0.5)
        if not words:
            older.set()
        return listed

    open_tab(page, "Library")
    page.locator("[data-do=pick]:visible").nth(1).wait_for()
    open_tab(page, "Voices")
    monkeypatch.setattr(takes, "search", found)
    open_tab(page, "Takes")
    paste(page, page.get_by_label("Search").locator("visible=true"), "nowhere")
    wait_until(lambda: newer.is_set() and older.is_set())
    page.wait_for_timeout(500)  # by now the older list would be here
    expect(page.get_by_text("No results").locator("visible=true")).to_be_visible()
    page.get_by_label("Search").locator("visible=true").fill("")


def test_models_are_added_while_the_page_is_open(
    page: Any, engine: FakeEngine, golden_dir: Path
) -> None:
    before = list(engine.capabilities())
    open_tab(page, "Engine")
    page.get_by_label("Add model").fill(str(golden_dir / "custom_voice-1b7"))
    page.get_by_role("button", name="Add", exact=True).click()
    page.get_by_text("custom_voice-1b7 is loaded.").wait_for()
    assert list(engine.capabilities()) == [*before, "custom_voice-1b7"]
    row = page.locator(".timbre-models li").filter(has_text="custom_voice-1b7")
    unload = row.get_by_role("button", name="Unload")
    unload.scroll_into_view_if_needed()
    place = unload.bounding_box()
    there = [place["x"] + place["width"] / 2, place["y"] + place["height"] / 2]
    page.mouse.click(*there)
    page.get_by_text("custom_voice-1b7 is unloaded.").wait_for()
    expect(row).to_contain_text("Not loaded")
    under = "(there) => document.elementFromPoint(...there).closest('button')?.innerText"
    assert page.evaluate(under, there) is None  # who presses twice meets no other button
    assert engine.stats().talkers == tuple(before)
