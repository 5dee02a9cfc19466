"""axe-core finds nothing to complain about: every tab, cards, rows and the bar, in both themes."""

from __future__ import annotations

from collections.abc import Iterator
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
async () => (await axe.run(document, { resultTypes: ['violations'] })).violations
  .flatMap(({ id, nodes }) => nodes.map(({ html }) => `${id}: ${html.slice(0, 200)}`))
"""


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


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_no_tab_has_a_violation(open_page: OpenPage, url: str, axe: str, scheme: str) -> None:
    page = open_page(url, color_scheme=scheme)
    tap = Tap(page, 0)
    page.get_by_label("Text", exact=True).fill("Hi.")
    page.get_by_role("button", name="Speak", exact=True).click()
    tap.wait("now?.over && now.made")
    page.locator(".timbre-take").wait_for()
    page.add_script_tag(content=axe)
    found: dict[str, list[str]] = {}
    for tab in TABS:
        open_tab(page, tab)
        panel = page.get_by_role("tabpanel").locator("visible=true").last
        panel.locator("button, input").locator("visible=true").first.wait_for()
        found[tab] = page.evaluate(FOUND)
    assert found == {key: [] for key in TABS}


RENAMED = """async () => {
  const shown = [...document.querySelectorAll('fieldset')].find((each) => each.checkVisibility());
  const radios = [...shown.querySelectorAll('input[type=radio]')];
  radios.forEach((each, place) => { each.name = `own-${place}`; });
  await Promise.resolve(); // observers have run
  return radios.map((each) => each.name);
}"""


def test_tab_stops_at_what_is_seen_and_once_in_a_group(open_page: OpenPage, url: str) -> None:
    page = open_page(url)
    page.get_by_role("tab").first.wait_for()
    for tab in (*TABS, "Takes"):
        if tab == "Takes":
            open_tab(page, "Library")
        open_tab(page, tab)
        panel = page.get_by_role("tabpanel").locator("visible=true").last
        panel.locator("button, input").locator("visible=true").first.wait_for()
        page.evaluate("document.activeElement.blur(); getSelection().removeAllRanges()")
        stops = []
        for _ in range(100):
            page.keyboard.press("Tab")
            stop = page.evaluate(REACHED)
            if stop is None:
                break
            stops.append(stop)
        assert [stop["name"] for stop in stops if not stop["seen"]] == [], tab
        assert 3 < len(stops) < 45, tab
        groups = [stop["group"] for stop in stops if stop["group"]]
        assert len(groups) == len(set(groups)), tab
        rows = {stop["row"] for stop in stops if stop["row"] >= 0}
        assert len(rows) <= 1, tab


def test_radio_buttons_that_gradio_names_anew_are_one_group_before_the_next_key(
    open_page: OpenPage, url: str
) -> None:
    """It does so when one is chosen, and arrows that were pressed at once chose nothing."""
    page = open_page(url)
    for tab in ("Library", "Voices"):
        open_tab(page, tab)
    page.get_by_label("Starred", exact=True).locator("visible=true").wait_for()
    names = page.evaluate(RENAMED)
    assert len(names) > 3
    assert len(set(names)) == 1


def test_arrows_choose_in_a_group_of_gradios(open_page: OpenPage, url: str) -> None:
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
