"""The page in front of a cluster: its endpoints for programs, and every tab in a browser."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from engine import Library
from studio.ui.tabs.design import TAKES
from tests.studio.ui.test_page import (  # noqa: F401  # the page's own tests
    test_a_refusal_reaches_programs,
    test_a_script_answers_its_sound_and_its_subtitles,
    test_a_voice_may_be_left_out_or_be_another_services,
    test_programs_see_named_endpoints_only,
    test_speak_answers_the_engines_own_samples,
    test_stream_answers_every_chunk_once_and_in_order,
    test_voices_are_listed,
)
from tests.support.browser import OpenPage, expect
from tests.support.programs import visited
from tests.support.tab_makers import recording

IDS = "() => window.timbre.players.map((player) => player.now?.id)"
HEARD = """(before) => window.timbre.players.some(
  ({ now }) => now && now.over && now.made && !before.includes(now.id))"""


@pytest.fixture(scope="module")
def findings(address: str, tmp_path_factory: pytest.TempPathFactory) -> Any:
    """What a program heard from the endpoints of the front."""
    return visited(
        "tests.support.page_visit", str(tmp_path_factory.mktemp("visit")), address, timeout=600
    )


def test_every_tab_speaks_through_the_replicas(
    open_page: OpenPage, url: str, library: Library, tmp_path: Path
) -> None:
    page = open_page(url)

    def go(label: str) -> Any:
        page.get_by_role("tab", name=label, exact=True).click()
        return page.get_by_role("tabpanel").locator("visible=true").last

    def heard(press: Callable[[], object]) -> None:
        before = page.evaluate(IDS)
        press()
        page.wait_for_function(HEARD, arg=before)

    def button(name: str) -> Any:
        return page.get_by_role("button", name=name, exact=True).locator("visible=true").first

    page.wait_for_function("window.timbre?.players[0]?.speaker.node")
    heard(page.get_by_role("button", name="Hear a welcome").click)
    page.locator(".timbre-take").wait_for()

    go("Clone")
    file = page.locator("#clone-file input[type=file]")
    file.set_input_files(str(recording(tmp_path / "mine.wav")))
    page.locator("#clone-report").get_by_text("of silence cut").wait_for()
    page.get_by_label("This is my voice").check()
    heard(button("Try it").click)
    panel = page.get_by_role("tabpanel").filter(has=page.locator("#clone-recording"))
    panel.get_by_label("Name").fill("Mama")
    panel.get_by_role("button", name="Save as voice").click()
    panel.get_by_text("Mama is saved").wait_for()
    assert library.find("Mama")

    go("Design")
    page.get_by_label("The voice").locator("visible=true").fill("A calm old man.")
    button("Make three takes").click()
    expect(page.get_by_text("s, seed")).to_have_count(TAKES)

    go("Blend")
    heard(button("Speak the blend").click)

    go("Script")
    page.locator("#script-text textarea").fill("Ryan: Good evening.\nVivian: And to you.")
    heard(page.locator(".timbre-go:visible").click)
    page.locator("#script-lines").get_by_text("2 lines · 2 rendered").wait_for()

    for label in ("Library", "Voices"):
        go(label).locator("button, input").locator("visible=true").first.wait_for()

    go("Engine")
    expect(page.locator(".timbre-replicas tbody tr")).to_have_count(2)
