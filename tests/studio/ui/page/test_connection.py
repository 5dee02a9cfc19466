"""Nothing typed and nothing spoken is lost by a cut, a restart or a reload, in a real browser."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from studio.takes import live_takes
from tests.support.browser import OpenPage, Tap, Visitors, expect, in_front, open_tab, wait_until
from tests.support.cuttable import SEEN, Servers, fill, opened

TEXT = "Something that took an evening to write."
LONG = "x" * 400


@pytest.fixture
def servers(browser: Any, tmp_path: Path) -> Iterator[Servers]:
    with ExitStack() as stack:
        yield Servers(tmp_path, stack)


def test_a_reload_and_a_restart_empty_no_field(open_page: OpenPage, servers: Servers) -> None:
    page = opened(open_page, servers.wire.url).page
    fill(page, "Text", TEXT)
    fill(page, "Style instructions (optional)", "slowly")
    fill(page, "Seed", "4711")
    page.get_by_role("radio", name="Vivian").click()
    expect(page.locator("#speak-voice :is(input, textarea)")).to_have_value("vivian")  # answered
    open_tab(page, "Design")
    fill(page, "The voice", "An old man.")
    for again in range(2):
        if again:
            servers.wire.cut()
            servers.wire.mend(servers.start())
        page.reload()
        expect(page.get_by_label("Text", exact=True).first).to_have_value(TEXT)
        expect(page.get_by_label("Seed", exact=True)).to_have_value("4711")
        expect(page.get_by_label("Style instructions (optional)")).to_have_value("slowly")
        expect(page.locator("#speak-voice :is(input, textarea)")).to_have_value("vivian")
        open_tab(page, "Design")
        expect(page.get_by_label("The voice", exact=True)).to_have_value("An old man.")


def test_a_cut_is_told_and_waited_for_without_a_reload(
    open_page: OpenPage, servers: Servers, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(live_takes, "RESUME", 1.0)
    tap = opened(open_page, servers.wire.url)
    page = tap.page
    page.evaluate("window.same = true")
    fill(page, "Text", LONG)
    page.get_by_role("button", name="Speak", exact=True).click()
    tap.wait("now?.report?.played > 4800")
    servers.wire.cut()
    page.locator(".timbre-player[data-state=cut]").wait_for()
    expect(page.get_by_text("The server does not answer")).to_be_visible()
    servers.wire.mend(servers.start())  # another process, as after a restart: it has no such take
    page.locator(".timbre-connection").wait_for(state="hidden")
    page.locator(".timbre-player[data-state=lost]").wait_for()
    assert page.evaluate("window.same")
    expect(page.get_by_label("Text", exact=True).first).to_have_value(LONG)
    first = tap.state()["id"]
    wait_until(lambda: len(servers.takes.search()) == 1)  # kept, and marked as what it is
    assert servers.takes.search()[0].stopped
    fill(page, "Text", TEXT)
    page.get_by_role("button", name="Try again").locator("visible=true").click()
    tap.wait(f"now.id !== '{first}' && now.made")
    wait_until(lambda: servers.takes.search(TEXT))
    page.locator(".timbre-history:visible").get_by_text(TEXT).wait_for()
    page.locator(".timbre-history:visible").get_by_text("Stopped early").first.wait_for()


@pytest.fixture(scope="module")
def same(browser: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Servers]:
    """A server that no test ends."""
    with ExitStack() as stack:
        yield Servers(tmp_path_factory.mktemp("same"), stack, step=0.05)


@pytest.fixture(scope="module")
def heard(open_pages: OpenPage, same: Servers) -> Tap:
    """A page that comes through every cut."""
    return opened(open_pages, same.wire.url)


def test_a_press_during_a_cut_waits_for_its_end(heard: Tap, same: Servers) -> None:
    tap = heard
    before = (tap.state() or {}).get("id", "")
    fill(tap.page, "Text", TEXT)
    same.wire.cut()
    tap.page.get_by_role("button", name="Speak", exact=True).click()
    tap.page.locator(".timbre-connection").wait_for(state="visible")
    same.wire.mend()
    tap.wait(f"now && now.id !== '{before}' && now.made && now.over")
    tap.page.locator(".timbre-history:visible").get_by_text(TEXT).wait_for()


@pytest.mark.parametrize("at_once", [True, False])
def test_a_take_goes_on_after_a_cut_where_it_was(heard: Tap, same: Servers, at_once: bool) -> None:
    tap, servers, text = heard, same, f"{at_once} {'x' * 150}"
    other = (tap.state() or {}).get("id", "")
    fill(tap.page, "Text", text)
    tap.page.get_by_role("button", name="Speak", exact=True).click()
    started = f"now && now.id !== '{other}' && now.report?.played > 4800"
    tap.wait(f"{started} && player.feed.transport === 'raw'")
    before = tap.state()
    servers.wire.cut()
    if not at_once:
        tap.page.locator(".timbre-player[data-state=cut]").wait_for()
        expect(tap.page.locator(".timbre-player .state")).to_contain_text("goes on at 0:")
    servers.wire.mend()
    tap.wait(f"now.id === '{before['id']}' && now.made && now.over")
    wait_until(lambda: len(servers.takes.search(text)) == 1)
    [take] = servers.takes.search(text)
    assert not take.stopped
    assert tap.get("received") == round(24_000 * take.seconds)
    tap.page.locator(".timbre-history:visible").get_by_text(str(at_once)).first.wait_for()


# The script of a component that Gradio imports last, for a hidden tab.
LAST = """performance.getEntriesByType('resource').map((each) => each.name)
  .filter((name) => name.includes('/assets/Index-') && name.endsWith('.js')).at(-1)"""
RELOADED = "performance.getEntriesByType('navigation')[0].type === 'reload'"


def test_a_script_that_did_not_come_is_asked_for_again(
    visitors: Visitors, heard: Tap, same: Servers
) -> None:
    script = heard.page.evaluate(LAST)
    with visitors.context() as context:  # without the other's cache
        page = context.new_page()
        visits: list[str] = []
        page.on(
            "request",
            lambda request: request.is_navigation_request() and visits.append(request.url),
        )
        page.route(script, lambda it: it.abort() if len(visits) == 1 else it.continue_())
        page.goto(same.wire.url)
        page.wait_for_function(RELOADED)
        for tab, field in (("Script", "Name"), ("Design", "The voice")):
            open_tab(page, tab)
            expect(page.get_by_label(field, exact=True).locator("visible=true")).to_be_visible()


def test_tabs_of_one_browser_share_their_takes(open_page: OpenPage, same: Servers) -> None:
    first = opened(open_page, same.wire.url, quiet=False)
    page = first.page.context.new_page()
    page.goto(same.wire.url)
    page.wait_for_function(SEEN)
    for number, each in enumerate((first.page, page)):
        fill(in_front(each), "Text", f"Take number {number}.")
        each.get_by_role("button", name="Speak", exact=True).click()
        each.locator(".timbre-history:visible").get_by_text(f"Take number {number}.").wait_for()
    in_front(first.page).reload()
    rows = first.page.locator(".timbre-history:visible [data-do=pick]")
    expect(rows).to_have_count(2)
    stranger = opened(open_page, same.wire.url, quiet=False).page
    stranger.locator(".timbre-empty:visible").first.wait_for()


REFUSED = """
for (const name of ['localStorage', 'sessionStorage']) {
  const get = () => { throw new DOMException('Access is denied', 'SecurityError') }
  Object.defineProperty(window, name, { get, configurable: true })
}
"""


def test_a_browser_that_refuses_its_storage_speaks(open_page: OpenPage, servers: Servers) -> None:
    page = open_page("about:blank")
    page.add_init_script(REFUSED)
    page.goto(servers.wire.url)
    page.wait_for_function(SEEN)
    fill(page, "Text", "Good evening.")
    page.get_by_role("button", name="Speak", exact=True).click()
    Tap(page, 0).wait("now?.made")
    expect(page.locator(".timbre-take").first).to_be_visible()
    open_tab(page, "Script")
    page.get_by_role("button", name="Show an example").click()
    page.locator("#script-lines article").first.wait_for()
