"""The mood of a line, in its edit form: a menu and a strength that write a tag into its text."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from engine import learn_shift, speaker_space
from engine.testing import fake_capabilities
from studio.ui.tabs import script
from tests.support.browser import DRAWN, OpenPage, Server, expect
from tests.support.tab_makers import app_of, make_studio, some_clone

TEXT = "Anna: Come in at once, the door is open!\nBen: [glad 0.5] So I will, and gladly. [/glad]"


@pytest.fixture(scope="module")
def url(browser: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    studio = make_studio(tmp_path_factory.mktemp("studio"), raw=True)
    pair = (some_clone(1).vector, some_clone(2).vector)
    studio.library.moods.save("glad", learn_shift([pair]), speaker_space(fake_capabilities()))
    with studio.engine, Server(app_of(script.build, studio)) as url:
        yield url


def test_a_line_is_put_in_a_mood_and_out_of_it(open_page: OpenPage, url: str) -> None:
    page = open_page(url)
    page.locator("#script-lines .timbre-board > *").first.wait_for()
    page.evaluate(DRAWN)  # fields that have just opened take their values once more
    page.locator("#script-text textarea").fill(TEXT)
    page.get_by_role("button", name="Split into lines").click()
    lines = page.locator("#script-lines article")
    expect(lines).to_have_count(2)
    first, second = lines.nth(0), lines.nth(1)
    first.locator("[data-edit]").click()
    strength = first.get_by_label("Strength of the mood")
    expect(strength).to_be_hidden()
    first.get_by_label("Mood", exact=True).select_option("glad")
    expect(strength).to_be_visible()
    strength.fill("0.75")
    strength.press("Tab")
    first.get_by_role("button", name="Save").click()
    wanted = "[glad 0.75] Come in at once, the door is open! [/glad]"
    expect(first.locator(".said p")).to_have_text(wanted)
    second.locator("[data-edit]").click()
    expect(second.get_by_label("Mood", exact=True)).to_have_value("glad")
    expect(second.get_by_label("Strength of the mood")).to_have_value("0.5")
    second.get_by_label("Mood", exact=True).select_option("")
    second.get_by_role("button", name="Save").click()
    expect(second.locator(".said p")).to_have_text("So I will, and gladly.")
    typed = page.locator("#script-text textarea")
    expect(typed).to_have_value(f"Anna: {wanted}\nBen: So I will, and gladly.")
