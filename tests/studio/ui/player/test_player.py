"""The live player in a real browser: what is heard is what was made, on both transports."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest

from engine import InvalidText
from tests.support.browser import PATIENCE, OpenPage, Tap, expect, play_through, wait_until
from tests.support.player_stage import (
    OVER,
    TRANSPORTS,
    Performance,
    Stage,
    as_heard,
    held,
    noise,
    playing,
    press,
    released,
    stage,
    steady,
    url,
)

__all__ = ["stage", "url"]  # fixtures

EXTRA_MS = {"event": 80, "raw": 40}  # what a transport may add to the engine's first chunk
LOADED_MS = 400  # what a busy machine may add on top before a test fails


both = pytest.mark.parametrize("transport", TRANSPORTS)


@pytest.fixture(scope="module")
def page(url: str, open_pages: OpenPage) -> Any:
    """One page for all that does not break it."""
    return open_pages(url)


@pytest.fixture(scope="module")
def taps(page: Any) -> dict[str, Tap]:
    return {transport: Tap(page, index) for index, transport in enumerate(TRANSPORTS)}


@pytest.fixture
def tap(taps: dict[str, Tap], transport: str) -> Tap:
    taps[transport].restart()
    return taps[transport]


def bar_says(tap: Tap, selector: str, text: str) -> None:
    expect(tap.page.locator(f".timbre-player {selector}")).to_have_text(text)


def stopped_in_time(tap: Tap, transport: str, samples: int) -> None:
    """Stopped where so much was heard, and nothing of it late."""
    for _ in range(5):
        press(tap, transport)
        tap.wait(playing(samples))
        tap.page.locator(".timbre-player .stop").click()
        tap.wait("now.over && now.made && now.report.state === 'ended'")
        if not tap.gaps():  # the count is gone with the stop
            return
        tap.restart()
    raise AssertionError("the sound was late five times")


def as_dict(tap: Tap) -> Any:
    """Where the page shows what the event `take` said."""
    return tap.page.get_by_label("take").nth(tap.index)


@both
def test_heard_is_made_sample_for_sample(stage: Stage, tap: Tap, transport: str) -> None:
    stage.submit = lambda: steady(7)
    play_through([tap], lambda _: press(tap, transport))
    assert tap.state()["report"]["underruns"] == 0
    assert np.array_equal(tap.sound(), as_heard(stage.performed[-1].pcm))
    assert tap.get("feed.transport") == transport


@both
def test_the_finished_take_is_told(stage: Stage, tap: Tap, transport: str) -> None:
    stage.submit = lambda: steady(3)
    press(tap, transport)
    tap.wait(OVER)
    kept = f"finished {3 * 2 * 1920} take-{len(stage.kept)}"
    expect(as_dict(tap)).to_have_value(kept)
    assert np.array_equal(stage.kept[-1], stage.performed[-1].pcm)
    bar_says(tap, ".state", "Finished")


@both
def test_the_first_sound_follows_the_first_chunk(
    stage: Stage, tap: Tap, transport: str, capsys: pytest.CaptureFixture[str]
) -> None:
    stage.submit = lambda: steady(1)
    most, extra = EXTRA_MS[transport] + LOADED_MS, list[float]()
    while not extra or (len(extra) < 20 and extra[-1] >= most):
        tap.restart()
        press(tap, transport)
        tap.wait(OVER)
        first = stage.performed[-1].first
        assert first is not None
        extra.append(tap.first() - tap.get("now.asked") - 1000 * first)
    with capsys.disabled():
        print(f"\n{transport}: first sound {extra[-1]:.0f} ms", end="")
        print(f" after the engine's first chunk (goal {EXTRA_MS[transport]})")
    assert extra[-1] < most


@both
def test_stop_stops_sound_and_engine(stage: Stage, tap: Tap, transport: str) -> None:
    stage.submit = lambda: held(100)
    stopped_in_time(tap, transport, 9600)
    wait_until(lambda: stage.performed[-1].end)
    end = stage.performed[-1].end
    assert end is not None
    assert end.reason == "cancelled"
    heard = tap.sound()
    made = as_heard(stage.performed[-1].pcm)[: len(heard)]
    assert np.array_equal(heard[:-60], made[:-60])
    assert np.abs(heard[-60:]).max() <= np.abs(made[-60:]).max()
    assert abs(heard[-1]) < abs(made[-1]) / 20  # faded, not cut
    bar_says(tap, ".state", "Stopped")
    bar_says(tap, "[data-figure=lead]", "–")  # nothing is ahead any more
    assert np.array_equal(stage.kept[-1], stage.performed[-1].pcm[: len(stage.kept[-1])])
    assert len(stage.kept[-1]) >= len(heard)


@both
def test_a_new_press_takes_over(stage: Stage, tap: Tap, transport: str) -> None:
    def takes_over(_: Tap) -> None:
        stage.submit = lambda: held(200)
        press(tap, transport)
        tap.wait(playing(4800))
        stage.submit = lambda: steady(4, seed=5)
        press(tap, transport)
        tap.wait(OVER)

    play_through([tap], takes_over)
    old, new = stage.performed[-2:]
    heard = as_heard(new.pcm)
    assert np.array_equal(tap.sound()[-len(heard) + 60 :], heard[60:])  # its start is over a fade
    assert old.left


@both
def test_pause_keeps_every_sample(stage: Stage, tap: Tap, transport: str) -> None:
    stage.submit = lambda: held(25)

    def paused(_: Tap) -> None:
        press(tap, transport)
        tap.wait(playing(4800))
        tap.page.locator(".timbre-player .pause").click()
        tap.wait("now.report.paused")
        bar_says(tap, ".state", "Paused")
        released(stage.performed[-1])
        tap.page.locator(".timbre-player .pause").click()

    play_through([tap], paused)
    sound, made = tap.sound(), as_heard(stage.performed[-1].pcm)
    faded = 60
    cut = int(np.flatnonzero(sound != np.resize(made, len(sound)))[0])
    rest = len(made) - cut - 2 * faded
    assert np.array_equal(sound[-rest:], made[-rest:])


def smooth_in_the_end(tap: Tap, transport: str) -> bool:
    """Gaps at first, as nothing has been learned yet; soon none."""
    press(tap, transport)
    tap.wait(OVER)
    gaps = tap.gaps()
    if not gaps:  # the page itself began late: nothing to be learned
        return False
    assert len(gaps) == tap.state()["report"]["underruns"]
    return len(gaps) <= 2 and all(end < len(tap.sound()) * 2 / 3 for _, end in gaps)


@both
def test_a_jittery_network_is_smooth_once_the_prebuffer_has_grown(
    stage: Stage, url: str, open_page: OpenPage, transport: str
) -> None:
    draw = random.Random(3)
    chunks, every = 20, 0.16
    late = [0.02, *(0.16 + every * index + draw.uniform(0, 0.4) for index in range(1, chunks))]
    moments = [max(late[: index + 1]) for index in range(chunks)]
    stage.submit = lambda: Performance(noise(2 * chunks), moments)
    fresh = (Tap(open_page(url), TRANSPORTS.index(transport)) for _ in range(5))
    assert any(smooth_in_the_end(tap, transport) for tap in fresh)  # a busy machine is late itself


@pytest.mark.parametrize("transport", ["event"])
def test_a_page_that_was_busy_loses_nothing(stage: Stage, tap: Tap, transport: str) -> None:
    stage.submit = lambda: steady(12, speed=1.2)
    press(tap, transport)
    tap.wait(playing(1920))
    tap.page.evaluate("() => { const end = Date.now() + 1200; while (Date.now() < end); }")
    tap.wait(OVER)
    assert tap.state()["report"]["played"] == len(stage.performed[-1].pcm)


@both
def test_the_queue_is_shown(stage: Stage, tap: Tap, transport: str) -> None:
    stage.submit = lambda: Performance(noise(4), [0.0, 0.05], queued=PATIENCE)
    bar = tap.page.locator(".timbre-player")

    def queued(_: Tap) -> None:
        press(tap, transport)
        bar.get_by_text("Number 3 in line, about 3 s").wait_for()
        stage.performed[-1].queued = 0.0

    play_through([tap], queued)


@both
def test_a_refusal_says_why(stage: Stage, tap: Tap, transport: str) -> None:
    def refuse() -> Performance:
        raise InvalidText("There is nothing to say. Type a sentence.")

    stage.submit = refuse
    press(tap, transport)
    tap.page.locator(".timbre-player").get_by_text("There is nothing to say.").wait_for()


@pytest.mark.parametrize("transport", ["event"])
def test_a_call_in_between_loses_nothing(stage: Stage, tap: Tap, transport: str) -> None:
    stage.submit = lambda: held(20)
    bar = tap.page.locator(".timbre-player")

    def interrupted(_: Tap) -> None:
        press(tap, transport)
        tap.wait(playing(1920))
        tap.page.evaluate("window.timbre.Sound.context.suspend()")
        bar.get_by_text("Your browser keeps the sound off.").wait_for()
        released(stage.performed[-1])
        bar.get_by_role("button", name="Turn the sound on").click()

    play_through([tap], interrupted)
    assert np.array_equal(tap.sound(), as_heard(stage.performed[-1].pcm))
