"""The map of voices: places that stay, one request of points, what is heard, pulled, used."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from engine import Blend, Mooded, SpeechRequest, learn_shift, parse_blend, speaker_space
from engine.testing import fake_capabilities
from studio.context import Studio
from studio.ui.tabs import blend
from studio.ui.tabs.blend_handlers import BlendTab
from studio.ui.voice_map import map_value
from tests.support.browser import OpenPage, Server, Tap, as_served, expect, until_silent
from tests.support.tab_makers import app_of, heard, make_studio, payloads_of, save_many, some_clone


def learn_glad(studio: Studio) -> None:
    pair = (some_clone(90).vector, some_clone(91).vector)
    studio.library.moods.save("glad", learn_shift([pair]), speaker_space(fake_capabilities()))


@pytest.fixture
def studio(tmp_path: Path) -> Iterator[Studio]:
    made = make_studio(tmp_path)
    with made.engine:
        yield made


def test_voices_stay_where_they_are_while_others_come_and_go(studio: Studio) -> None:
    saved = studio.library.save("Anna", some_clone(1), consent=True)
    before = {spot["name"]: spot for spot in map_value(studio)["spots"]}
    save_many(studio.library, 20)
    among = {spot["name"]: spot for spot in map_value(studio)["spots"]}
    assert {name: among[name] for name in before} == before
    assert len(among) == len(before) + 20
    studio.library.delete(saved.id)
    del before["Anna"]
    assert {name: spot for name, spot in among.items() if name in before} == before


def test_two_thousand_voices_are_one_small_answer(studio: Studio) -> None:
    save_many(studio.library, 40)
    spots = map_value(studio)["spots"]
    assert len({(spot["x"], spot["y"]) for spot in spots}) == len(spots) > 40
    assert len(json.dumps(spots)) / len(spots) * 2000 < 500_000  # bytes


def test_what_is_written_for_a_place_is_spoken_and_played_again(
    studio: Studio, monkeypatch: pytest.MonkeyPatch
) -> None:
    learn_glad(studio)
    tab = BlendTab(studio)
    moved = SimpleNamespace(_data={"recipe": "ryan(60)+vivian(40)+glad(0.5)"})
    first = payloads_of(tab.speak_found("linear", "Hi you.", "", moved))
    engine, submit = studio.engine, studio.engine.submit
    monkeypatch.setattr(engine, "submit", lambda request: pytest.fail("it was spoken again"))
    again = payloads_of(tab.speak_found("linear", "Hi you.", "", moved))
    monkeypatch.undo()
    assert heard(first) == heard(again) != b""
    requests: list[SpeechRequest] = []
    monkeypatch.setattr(
        engine, "submit", lambda request: requests.append(request) or submit(request)
    )
    for recipe, phrase in (("ryan(60)+vivian(40)", "Hi you."), (moved._data["recipe"], "Hi.")):
        payloads_of(
            tab.speak_found("linear", phrase, "", SimpleNamespace(_data={"recipe": recipe}))
        )
    assert [(type(each.voice), each.text) for each in requests] == [
        (Blend, "Hi you."), (Mooded, "Hi."),
    ]  # fmt: skip


@pytest.mark.parametrize("sent", [{}, {"recipe": 5}, {"recipe": "x" * 9999}, {"recipe": "nobody"}])
def test_what_no_map_sends_is_refused(studio: Studio, sent: dict[str, Any]) -> None:
    payloads = payloads_of(
        BlendTab(studio).speak_found("linear", "Hi.", "", SimpleNamespace(_data=sent))
    )
    assert payloads[-1]["ended"]["message"]


# ---- in a browser


@pytest.fixture(scope="module")
def url(browser: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    studio = make_studio(tmp_path_factory.mktemp("studio"), raw=True)
    learn_glad(studio)
    save_many(studio.library, 8)
    with studio.engine, Server(as_served(app_of(blend.build, studio))) as url:
        yield url


@pytest.fixture
def page(open_page: OpenPage, url: str) -> Any:
    page = open_page(url)
    page.get_by_role("tab", name="Map").click()
    page.locator(".timbre-map li button").first.wait_for()
    return page


def recipe(page: Any) -> Any:
    return page.locator("#blend-recipe").locator("input, textarea")


def test_a_voice_of_the_list_is_heard_when_focused_and_taken_when_pressed(page: Any) -> None:
    tap = Tap(page, 0)
    button = page.locator(".timbre-map li button", has_text="Vivian")
    button.focus()
    tap.wait("now?.report?.played > 0")
    button.press("Enter")
    expect(recipe(page)).to_have_value("vivian")
    expect(page.locator(".timbre-map .use")).to_have_attribute("href", "#use-voice=vivian")
    button.press("ArrowDown")
    expect(button).not_to_be_focused()
    page.get_by_label("Search voices").fill("voice 003")
    expect(page.locator(".timbre-map li")).to_have_count(1)


def test_the_cross_is_dragged_between_voices_and_an_arrow_pulled(page: Any) -> None:
    tap = Tap(page, 0)
    box = page.locator(".timbre-map canvas").bounding_box()
    middle = (box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
    page.mouse.move(box["x"] + 30, box["y"] + 30)
    page.mouse.down()
    page.mouse.move(*middle, steps=4)
    page.mouse.up()
    tap.wait("now?.report?.played > 0")
    expect(recipe(page)).to_have_value(re.compile(r"\(\d+\)"))
    parts = dict(parse_blend(recipe(page).input_value()))
    assert sum(parts.values()) == 100
    [mood] = page.evaluate("""() => {
      const html = [...document.querySelectorAll('.timbre-map')][0];
      return html.voiceMap.moods.map((mood) => html.voiceMap.knob(mood));
    }""")
    page.mouse.move(box["x"] + mood["x"], box["y"] + mood["y"])
    page.mouse.down()
    x, y = box["x"] + mood["x"], box["y"] + mood["y"]
    away = (2 * (x - middle[0]) + x, 2 * (y - middle[1]) + y)
    page.mouse.move(*away, steps=4)
    page.mouse.up()
    expect(recipe(page)).to_have_value(re.compile(r"\+glad\((0\.\d+|1(\.\d+)?)\)$"))
    expect(page.locator(".timbre-map .there")).to_contain_text("glad")


def test_the_arrow_keys_move_the_cross(page: Any) -> None:
    canvas, before = page.locator(".timbre-map canvas"), recipe(page).input_value()
    canvas.focus()
    for _ in range(6):
        canvas.press("ArrowRight")
    expect(recipe(page)).not_to_have_value(before)
    expect(canvas).to_have_attribute("aria-valuetext", re.compile("%"))


def test_a_pad_without_voices_has_no_formula(page: Any) -> None:
    page.get_by_role("tab", name="Pad").click()
    expect(recipe(page)).not_to_have_value("")
    page.locator("#blend-voices").locator(".remove-all").click()
    expect(recipe(page)).to_have_value("")
    expect(page.locator("#blend-pad .corner").first).to_be_empty()


def test_a_mood_beside_the_pad_is_written_and_heard(page: Any) -> None:
    page.get_by_role("tab", name="Pad").click()
    recipe(page).fill("ryan(50)+vivian(50)")
    tap = Tap(page, 0)
    page.locator("#blend-mood input").click()
    page.get_by_role("option", name="glad").click()
    expect(recipe(page)).to_have_value("ryan(50)+vivian(50)+glad(1)")
    tap.wait("now?.report?.played > 0")


def test_a_page_with_the_map_that_is_left_alone_asks_for_nothing(page: Any) -> None:
    requested: list[str] = []
    page.on("request", lambda request: requested.append(request.url))
    for name in ("Pad", "Map"):
        page.get_by_role("tab", name=name).click()
        until_silent(page, requested)
