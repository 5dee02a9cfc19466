"""The live player on pages of all kinds: two at once, a phone, other devices, no raw route."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest

from tests.support.browser import OpenPage, Tap, expect, play_through, wait_until
from tests.support.player_stage import (
    OVER,
    TRANSPORTS,
    Stage,
    as_heard,
    playing,
    press,
    stage,
    steady,
    url,
)

__all__ = ["stage", "url"]  # fixtures


@pytest.fixture
def own_tap(url: str, open_page: OpenPage, transport: str) -> Tap:
    """On a page of its own."""
    return Tap(open_page(url), TRANSPORTS.index(transport))


@pytest.mark.parametrize("transport", ["raw"])
@pytest.mark.parametrize("trouble", ["refused", "held back"])
def test_without_the_raw_route_the_event_goes_on(
    stage: Stage, own_tap: Tap, transport: str, trouble: str
) -> None:
    held = []
    own_tap.page.route(
        "**/timbre/live/**",
        lambda route: route.abort() if trouble == "refused" else held.append(route),
    )
    stage.submit = lambda: steady(10)
    heard_in_time(stage, {transport: own_tap})
    assert own_tap.get("feed.transport") == "event"
    for route in held:
        route.abort()


def heard_in_time(stage: Stage, taps: dict[str, Tap]) -> None:
    """Each hears its own, all at once."""
    named = {tap.index: transport for transport, tap in taps.items()}

    def speak(tap: Tap) -> None:
        press(tap, named[tap.index])
        tap.wait(playing(1))

    play_through([*taps.values()], speak)
    for tap, performed in zip(taps.values(), stage.performed[-len(taps) :], strict=True):
        assert np.array_equal(tap.sound(), as_heard(performed.pcm))


def test_two_pages_at_once_hear_their_own(stage: Stage, url: str, open_page: OpenPage) -> None:
    seeds = itertools.count()
    stage.submit = lambda: steady(8, speed=6, seed=next(seeds))
    taps = {name: Tap(open_page(url), index) for index, name in enumerate(TRANSPORTS)}
    heard_in_time(stage, taps)


@pytest.mark.parametrize("transport", ["event"])
def test_closing_the_page_frees_the_engine(stage: Stage, own_tap: Tap, transport: str) -> None:
    stage.submit = lambda: steady(200, speed=1)
    press(own_tap, transport)
    own_tap.wait(playing(1920))
    own_tap.page.close()
    wait_until(lambda: stage.performed[-1].left)


def test_it_fits_a_phone(stage: Stage, url: str, open_page: OpenPage) -> None:
    page = open_page(url, viewport={"width": 360, "height": 740})
    tap = Tap(page, 0)
    stage.submit = lambda: steady(100, speed=2)
    press(tap, "event")
    tap.wait(playing(1920))
    assert page.evaluate("document.documentElement.scrollWidth") <= 360
    for name in ("Stop", "Pause"):
        box = page.get_by_role("button", name=name).bounding_box()
        assert box["height"] >= 44
        assert box["x"] + box["width"] <= 360


def test_it_speaks_chinese_to_a_chinese_browser(url: str, open_page: OpenPage) -> None:
    page = open_page(url, locale="zh-CN")
    page.wait_for_function("window.timbre?.players.length === 2")
    assert page.locator(".timbre-player .stop").get_attribute("aria-label") == "停止"


def test_a_device_at_48_khz_plays_it_all(stage: Stage, url: str, open_page: OpenPage) -> None:
    page = open_page("about:blank")
    page.add_init_script(
        "const Native = window.AudioContext;"
        "window.AudioContext = class extends Native {"
        "  constructor() { super({ sampleRate: 48000 }); } };"
    )
    page.goto(url)
    stage.submit = lambda: steady(5, speed=6)
    tap = Tap(page, 0)
    play_through([tap], lambda _: press(tap, "event"))
    made = len(stage.performed[-1].pcm)
    assert tap.state()["report"]["played"] == made
    assert abs(len(tap.sound()) - 2 * made) <= 64


def test_a_page_without_worklets_speaks_too(stage: Stage, url: str, open_page: OpenPage) -> None:
    page = open_page("about:blank")
    page.add_init_script(
        "const Native = window.AudioContext;"
        "window.AudioContext = class extends Native { get audioWorklet() { return undefined; } };"
    )
    page.goto(url)
    stage.submit = lambda: steady(5, speed=12)
    tap = Tap(page, 0)
    press(tap, "event")
    tap.wait(OVER)
    made = as_heard(stage.performed[-1].pcm)
    assert tap.state()["report"]["played"] == len(made)
    # A busy machine interrupts a ScriptProcessor, and may play one block of it twice.
    places = np.array(pieces_of(made, tap.sound()))
    assert len(places) * PIECE >= len(made) / 4
    assert np.mean(np.diff(places) == PIECE) > 0.8


PIECE = 64  # samples


def pieces_of(made: np.ndarray, heard: np.ndarray) -> list[int]:
    """Where in what was made the pieces are that were heard."""
    known = {made[at : at + PIECE].tobytes(): at for at in range(len(made) - PIECE + 1)}
    pieces = (heard[at : at + PIECE].tobytes() for at in range(0, len(heard), PIECE))
    return [known[piece] for piece in pieces if piece in known]


def test_a_player_that_left_the_page_is_let_go(url: str, open_page: OpenPage) -> None:
    page = open_page(url)
    page.wait_for_function("window.timbre?.players.length === 2")
    made = page.evaluate(
        """() => {
          const page = { ask: async () => null, leave() {}, tell() {} };
          for (const _ of [1, 2, 3]) {
            const root = document.body.appendChild(document.createElement('div'));
            window.timbre.addPlayer(root, page);
            root.remove();
          }
          return window.timbre.players.length;
        }"""
    )
    assert made == 5
    page.wait_for_function("window.timbre.players.length === 2")


def test_the_volume_is_remembered(stage: Stage, url: str, open_page: OpenPage) -> None:
    page = open_page(url)
    tap = Tap(page, 0)
    play_through([tap], lambda _: press(tap, "event"))
    volume = page.get_by_label("Volume")
    volume.fill("0.5")
    page.reload()
    tap = Tap(page, 0)
    expect(volume).to_have_value("0.5")
    stage.submit = lambda: steady(3)
    play_through([tap], lambda _: press(tap, "event"))
    made = as_heard(stage.performed[-1].pcm)
    assert np.allclose(tap.sound(), made / 2, atol=1e-6)


def test_a_reload_in_the_middle_keeps_what_was_made(
    stage: Stage, url: str, open_page: OpenPage
) -> None:
    page = open_page(url)
    tap, before = Tap(page, 1), len(stage.kept)
    stage.submit = lambda: steady(200, speed=2)
    press(tap, "raw")
    tap.wait(playing(9600))
    page.reload()
    wait_until(lambda: len(stage.kept) > before)
    kept, performed = stage.kept[-1], stage.performed[-1]
    assert performed.left
    assert 9600 < len(kept) < len(performed.pcm)
    assert np.array_equal(kept, performed.pcm[: len(kept)])
    tap = Tap(page, 1)
    expect(page.locator(".timbre-player")).to_be_hidden()  # there is nothing to play yet
    stage.submit = lambda: steady(3)
    heard_in_time(stage, {"raw": tap})


@pytest.fixture
def kept_requests(stage: Stage, own_tap: Tap) -> list[str]:
    """The kept takes that the page asks for, which are served as they were made."""
    requested: list[str] = []

    def answer(route: Any) -> None:
        requested.append(route.request.url.split("/")[-1])
        route.fulfill(body=stage.kept[-1].tobytes(), content_type="audio/pcm")

    own_tap.page.route("**/timbre/takes/**", answer)
    return requested


@pytest.mark.parametrize("transport", ["event"])
def test_a_stopped_take_is_heard_whole_from_the_list(
    stage: Stage, own_tap: Tap, kept_requests: list[str], transport: str
) -> None:
    stage.submit = lambda: steady(190, speed=60)
    press(own_tap, transport)
    own_tap.wait(playing(24_000))
    wait_until(lambda: stage.performed[-1].end)
    own_tap.page.locator(".timbre-player .stop").click()
    own_tap.wait("now.over && now.made")
    row = {"take": own_tap.get("kept"), "voice": "Ada", "text": "Hello.", "samples": "729600"}
    assert own_tap.get("received") < 729_600
    own_tap.page.evaluate("(row) => window.timbre.hear(row)", row)
    wait_until(lambda: own_tap.page.evaluate("window.timbre.players.at(-1).received") == 729_600)
    assert kept_requests == [f"{row['take']}.pcm?from=0"]


@pytest.mark.parametrize("transport", ["event"])
def test_a_take_whose_beginning_is_gone_is_fetched_again(
    stage: Stage, own_tap: Tap, kept_requests: list[str], transport: str
) -> None:
    stage.submit = lambda: steady(12, speed=20)
    press(own_tap, transport)
    own_tap.wait("now?.over && now.made && player.kept")
    own_tap.page.evaluate("window.timbre.players[0].now.report.first = 3840")  # after 20 minutes
    own_tap.page.locator(".timbre-player .pause").click()
    wait_until(lambda: kept_requests == [f"{own_tap.get('kept')}.pcm?from=0"])
