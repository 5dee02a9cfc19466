"""axe-core finds nothing to complain about: every tab, cards, rows and the bar, in both themes."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from engine import Library
from engine.testing import Costs, FakeCheckpoint, FakeEngine, fake_capabilities
from studio.context import open_studio
from studio.takes.take_store import Takes
from tests.support.browser import OpenPage, Tap, expect, open_tab, serve_page
from tests.support.tab_makers import some_clone

TABS = ("Speak", "Clone", "Design", "Blend", "Script", "Library", "Voices", "Engine")
FOUND = """
async (rules) => (await axe.run(document, { resultTypes: ['violations'], ...rules })).violations
  .flatMap(({ id, nodes }) => nodes.map(({ html }) => `${id}: ${html.slice(0, 200)}`))
"""
COLOURS = ["color-contrast", "link-in-text-block"]  # all that a theme may break
AT_ONCE = "*, ::before, ::after { transition: none !important }"  # a theme is there when chosen
SETTLED = "document.getAnimations().every((each) => !(each instanceof CSSTransition))"


# What Tab has reached: its name, whether it is seen (also by its label), its group, its row.
REACHED = """() => {
  const own = document.activeElement
  if (!own || own === document.body) return null
  const seen = (each) => each?.checkVisibility({ opacityProperty: true, visibilityProperty: true })
  const { width, height } = own.getBoundingClientRect()
  const rows = [...document.querySelectorAll('li, [role=radiogroup]')]
  return {
    name: `${own.nodeName} ${own.ariaLabel ?? own.innerText}`,
    seen: width >= 8 && height >= 8 && (seen(own) || seen(own.closest('label'))),
    group: own.type === 'radio' ? own.name : '',
    row: rows.indexOf(own.closest('li, [role=radiogroup]')),
  }
}"""


@pytest.fixture(scope="module")
def axe() -> str:
    package = pytest.importorskip("axe_playwright_python", reason="requirements-dev.txt")
    return (Path(package.__file__).parent / "axe.min.js").read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def url(browser: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    folder = tmp_path_factory.mktemp("data")
    library, takes = Library(folder / "voices"), Takes(folder / "takes")
    library.save("Grandmother", some_clone(), consent=True, tags=("warm",))
    for number in range(2):
        takes.add(np.arange(9600, dtype=np.int16), f"Take {number}", "ryan", number)
    able = fake_capabilities(design=True, clone=True)
    with (
        FakeEngine([FakeCheckpoint(able)], costs=Costs(step=0.01)) as engine,
        serve_page(open_studio(engine, library, takes)) as url,
    ):
        yield url


@dataclass
class Looked:
    """What one tab showed: violations by theme, and where Tab stops."""

    light: list[str]
    dark: list[str]
    stops: list[dict[str, Any]]


@pytest.fixture(scope="module")
def tabs(open_pages: OpenPage, url: str, axe: str) -> dict[str, Looked]:
    """One page, every tab opened once; a theme changes colours alone."""
    page = open_pages(url, color_scheme="light")
    tap = Tap(page, 0)
    empty = stops(page)
    page.get_by_label("Text", exact=True).fill("Hi.")
    page.get_by_role("button", name="Speak", exact=True).click()
    tap.wait("now?.over && now.made")
    page.locator(".timbre-take").wait_for()
    page.add_script_tag(content=axe)
    page.add_style_tag(content=AT_ONCE)
    looked: dict[str, Looked] = {}
    for tab in TABS:  # Library opens with Takes
        open_tab(page, tab)
        panel = page.get_by_role("tabpanel").locator("visible=true").last
        panel.locator("button, input").locator("visible=true").first.wait_for()
        light = page.evaluate(FOUND, {})
        page.evaluate("document.body.classList.add('dark')")
        page.wait_for_function(SETTLED)
        dark = page.evaluate(FOUND, {"runOnly": COLOURS})
        page.evaluate("document.body.classList.remove('dark')")
        page.wait_for_function(SETTLED)
        looked[tab] = Looked(light, dark, empty if tab == "Speak" else stops(page))
    return looked


def stops(page: Any) -> list[dict[str, Any]]:
    page.evaluate("document.activeElement.blur(); getSelection().removeAllRanges()")
    found = []
    for _ in range(100):
        page.keyboard.press("Tab")
        stop = page.evaluate(REACHED)
        if stop is None:
            break
        found.append(stop)
    return found


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_no_tab_has_a_violation(tabs: dict[str, Looked], scheme: str) -> None:
    found = {tab: getattr(looked, scheme) for tab, looked in tabs.items()}
    assert found == {tab: [] for tab in tabs}


def test_tab_stops_at_what_is_seen_and_once_in_a_group(tabs: dict[str, Looked]) -> None:
    for tab, looked in tabs.items():
        stops = looked.stops
        assert [stop["name"] for stop in stops if not stop["seen"]] == [], tab
        assert 3 < len(stops) < 45, tab
        groups = [stop["group"] for stop in stops if stop["group"]]
        assert len(groups) == len(set(groups)), tab
        rows = {stop["row"] for stop in stops if stop["row"] >= 0}
        assert len(rows) <= 1, tab


RENAMED = """async () => {
  const shown = [...document.querySelectorAll('fieldset')].find((each) => each.checkVisibility());
  const radios = [...shown.querySelectorAll('input[type=radio]')];
  radios.forEach((each, place) => { each.name = `own-${place}`; });
  await Promise.resolve(); // observers have run
  return radios.map((each) => each.name);
}"""


def test_arrows_choose_in_a_group_of_gradios(open_page: OpenPage, url: str) -> None:
    """Gradio names radio buttons anew when one is chosen; at the next key they are one group."""
    page = open_page(url)
    for tab in ("Library", "Voices"):
        open_tab(page, tab)
    cards = page.locator("#library-voices li")
    cards.first.wait_for()
    page.get_by_label("All", exact=True).locator("visible=true").focus()
    for name in ("Starred", "Preset", "Cloned"):
        page.keyboard.press("ArrowRight")
        expect(page.get_by_label(name, exact=True).locator("visible=true")).to_be_checked()
    expect(cards).to_have_count(1)
    expect(cards).to_contain_text("Grandmother")
    names = page.evaluate(RENAMED)
    assert len(names) > 3
    assert len(set(names)) == 1


@pytest.mark.parametrize("width", [1280, 390])
def test_a_voices_form_and_what_came_of_it_are_in_view(
    open_page: OpenPage, url: str, width: int
) -> None:
    """Also where the list is longer than the window."""
    page = open_page(url)
    for tab in ("Library", "Voices"):
        open_tab(page, tab)
    page.set_viewport_size({"width": width, "height": 400})
    panel = page.get_by_role("tabpanel").filter(has=page.locator("#library-voices")).last
    page.locator("#library-voices li", has_text="Grandmother").get_by_text("Edit").click()
    expect(panel.get_by_label("Name", exact=True)).to_be_in_viewport()
    panel.get_by_label("Note").fill("A note that took time.")
    panel.get_by_label("Name", exact=True).fill("Ryan")
    panel.get_by_role("button", name="Save changes").click()
    expect(panel.get_by_text("already. Choose another name.")).to_be_in_viewport()
    expect(panel.get_by_label("Note")).to_have_value("A note that took time.")


# Whether the last sign of a text is drawn left of its first one.
LEFTWARDS = """(element) => {
  const text = element.firstChild
  const left = (at) => {
    const range = document.createRange()
    range.setStart(text, at)
    range.setEnd(text, at + 1)
    return range.getBoundingClientRect().left
  }
  return left(text.length - 1) < left(0)
}"""


def test_a_line_that_runs_to_the_left_ends_there_with_its_full_stop(
    open_page: OpenPage, url: str
) -> None:
    page = open_page(url)
    tap = Tap(page, 0)
    page.get_by_label("Text", exact=True).first.fill("שלום לך.")
    page.locator(".timbre-go:visible").click()
    tap.wait("now?.over && now.made")
    shown = [page.locator(".timbre-take:visible p").first, page.locator(".timbre-player .text")]
    assert [each.evaluate(LEFTWARDS) for each in shown] == [True, True]
    open_tab(page, "Script")
    text = page.locator("#script-text textarea")
    text.fill("Anna: Good evening.\nאנה: שלום לך.")
    page.get_by_role("button", name="Split into lines").click()
    said = page.locator("#script-lines article p")
    expect(said).to_have_count(2)
    assert [each.evaluate(LEFTWARDS) for each in said.all()] == [False, True]
    expect(text).to_have_css("unicode-bidi", "plaintext")
