"""The page's one player bar follows the latest take and plays it again, from anywhere."""

from __future__ import annotations

import io
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
import soundfile

from tests.support.browser import OpenPage, Tap, expect, play_through
from tests.support.player_stage import (
    OVER,
    Stage,
    as_heard,
    held,
    playing,
    press,
    stage,
    steady,
    url,
)

__all__ = ["stage", "url"]  # fixtures

SHIFTS = """
window.shifts = [];
new PerformanceObserver((list) => {
  for (const { value, sources } of list.getEntries()) {
    window.shifts.push([value, ...sources.map(({ node }) => node?.className)]);
  }
}).observe({ type: 'layout-shift' });
"""


@pytest.fixture
def page(url: str, open_page: OpenPage) -> Iterator[Any]:
    page = open_page("about:blank")
    page.add_init_script(SHIFTS)
    page.goto(url)
    page.wait_for_function("window.timbre?.players.length === 2")
    return page


@pytest.fixture
def bar(page: Any) -> Any:
    return page.get_by_role("region", name="Player")


def test_it_comes_with_the_first_take_and_moves_nothing(page: Any, bar: Any, stage: Stage) -> None:
    stage.submit = lambda: steady(100, speed=2)
    expect(bar).to_be_hidden()
    tap = Tap(page, 0)
    page.evaluate("window.shifts = []")
    press(tap, "event")
    tap.wait(playing(1920))
    bar.wait_for()
    assert page.evaluate("window.shifts") == []
    page.evaluate("scrollTo(0, document.documentElement.scrollHeight)")
    last = page.locator("footer").bounding_box()
    assert last["y"] + last["height"] <= bar.bounding_box()["y"] + 1


def test_it_shows_the_latest_take_and_silences_the_other(page: Any, bar: Any, stage: Stage) -> None:
    event, raw = Tap(page, 0), Tap(page, 1)
    stage.submit = lambda: steady(100, speed=2)
    press(event, "event")
    event.wait(playing(1920))
    stage.submit = lambda: steady(3, speed=2)
    press(raw, "raw")
    event.wait("now.report.paused")
    raw.wait(OVER)
    expect(bar.locator(".state")).to_have_text("Finished")
    expect(bar.locator(".time")).to_have_text("0:00 / 0:00")
    assert not event.state()["over"]  # it is made to its end all the same


def test_a_take_is_played_again_sample_for_sample(page: Any, bar: Any, stage: Stage) -> None:
    tap = Tap(page, 0)
    stage.submit = lambda: steady(7, speed=6)
    play_through([tap], lambda _: press(tap, "event"))
    tap.restart()
    bar.get_by_role("button", name="Play").click()
    tap.wait("now.report.state === 'playing'")
    expect(bar.locator(".state")).to_have_text("Playing")
    tap.wait("now.report.state === 'ended'")
    heard, made = tap.sound(), as_heard(stage.performed[-1].pcm)
    assert np.array_equal(heard[60:], made[60:])  # its start fades in


def test_a_long_name_covers_nothing(page: Any, bar: Any) -> None:
    voice = "+".join(f"voice{number}(10)" for number in range(10))
    page.evaluate("(voice) => timbre.hear({ take: 'x', voice, text: voice, samples: 9 })", voice)
    expect(bar.locator(".voice")).to_have_attribute("title", voice)
    name, track = (bar.locator(each).bounding_box() for each in (".voice", ".track"))
    assert name["x"] + name["width"] <= track["x"]
    expect(bar.locator(".state")).to_have_text("This take could not be loaded.")


def test_keys_move_the_position(page: Any, bar: Any, stage: Stage) -> None:
    tap = Tap(page, 0)
    stage.submit = lambda: steady(40, speed=20)
    press(tap, "event")
    tap.wait(playing(1920))
    place = bar.get_by_role("slider", name="Position")
    tap.wait("player.feed.total !== null")
    place.press("End")
    tap.wait(OVER)
    total = 40 * 2 * 1920
    assert tap.state()["report"]["played"] == total
    expect(place).to_have_attribute("aria-valuetext", "0:06 / 0:06")
    place.press("ArrowLeft")
    tap.wait("now.report.state === 'playing'")
    bar.get_by_role("button", name="Pause").click()
    tap.wait("now.report.paused")
    assert total - 48_000 <= tap.state()["report"]["played"] < total


def test_the_speed_is_for_what_plays_and_for_the_next_visit(
    page: Any, bar: Any, stage: Stage
) -> None:
    tap = Tap(page, 0)
    stage.submit = lambda: steady(12, speed=20)
    press(tap, "event")
    tap.wait(OVER)
    bar.get_by_label("Playback speed").select_option("2")
    tap.restart()
    press(tap, "event")
    tap.wait(OVER)
    made = stage.performed[-1].pcm
    assert len(tap.sound()) < 0.6 * len(made)
    page.reload()
    expect(page.locator(".timbre-player .rate")).to_have_value("2")


def test_what_is_not_kept_is_downloaded_from_the_page(page: Any, bar: Any, stage: Stage) -> None:
    tap = Tap(page, 0)
    stage.submit = lambda: held(100)  # a slow machine finds it unfinished, too
    press(tap, "event")
    tap.wait(playing(9600))
    bar.get_by_role("button", name="Stop").click()
    tap.wait("now.over")
    with page.expect_download() as download:
        bar.get_by_label("Download").click()
    pcm, rate = soundfile.read(io.BytesIO(download.value.path().read_bytes()), dtype="int16")
    assert rate == 24_000
    assert len(pcm) > 9600
    assert np.array_equal(pcm, stage.performed[-1].pcm[: len(pcm)])
