"""A script spoken from its page: heard in order, redone, stopped, and what fails told."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Coroutine, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeVar
from unittest import mock

import gradio as gr
import pytest

from engine import InvalidText
from engine.testing import Costs
from studio.context import Studio
from studio.scripts import text_of
from studio.scripts.rendering import playback
from studio.ui.tabs.script.handlers import ScriptTab
from studio.ui.tabs.script.view import View
from tests.support.script_tab_makers import (
    LINES,
    LONG,
    act,
    event,
    html,
    page,
    spoken,
    statuses,
    whole,
)
from tests.support.tab_makers import heard, make_studio, payloads_of

Result = TypeVar("Result")


@pytest.fixture
def slow_studio(tmp_path: Path) -> Iterator[Studio]:
    """A studio whose engine takes longer over a script than a test does."""
    studio = make_studio(tmp_path, costs=Costs(step=0.01))
    with studio.engine:
        yield studio


def in_time(work: Coroutine[Any, Any, Result]) -> Result:
    return asyncio.run(asyncio.wait_for(work, 60))


async def _through(payloads: Any) -> None:
    async for _ in payloads:
        continue


def test_what_is_spoken_is_heard_in_order_and_kept(tab, number):
    assert statuses(tab, number) == ["waiting"] * LINES
    sound = spoken(tab, number)
    assert statuses(tab, number) == ["done"] * LINES
    assert sound == whole(tab, number)
    assert spoken(tab, number) == sound  # again: from the disk


def test_making_without_listening_tells_the_player_nothing(tab, number):
    assert not [each for each in payloads_of(tab.playback.speak(number, False)) if each]
    assert statuses(tab, number) == ["done"] * LINES


def test_a_redo_has_a_seed_of_its_own_and_undo_brings_the_first_take_back(tab, number):
    spoken(tab, number, aloud=False)
    before = tab.store.open(number)
    line = before.script.lines[1].id
    sound = heard(payloads_of(tab.playback.redo(number, line)))
    after = tab.store.open(number)
    assert after.job(line).key != before.job(line).key
    assert sound == after.sounds.read(after.job(line).key).tobytes()
    assert statuses(tab, number) == ["done"] * LINES
    act(tab, number, do="undo")
    assert tab.store.open(number).script == before.script
    assert statuses(tab, number) == ["done"] * LINES


def test_a_line_is_heard_alone_and_from_a_line_on(tab, number):
    spoken(tab, number, aloud=False)
    opened = tab.store.open(number)
    third = opened.script.lines[2].id
    alone = heard(payloads_of(tab.playback.listen(number, third)))
    assert alone == opened.sounds.read(opened.job(third).key).tobytes()
    onward = heard([each for each in payloads_of(tab.playback.speak(number, True, third)) if each])
    assert whole(tab, number).endswith(onward)
    assert onward.startswith(alone)


@pytest.mark.parametrize("arguments", [("gone", 1), ("", 1), ("../x", 0)])
def test_what_cannot_be_spoken_is_refused_in_words(tab, arguments):
    for payloads in (
        tab.playback.speak(arguments[0], True),
        tab.playback.redo(*arguments),
        tab.playback.listen(*arguments),
    ):
        [payload] = payloads_of(payloads)
        assert payload["ended"]["reason"] == "refused"
        assert payload["ended"]["message"]


def test_stop_stops_and_what_is_done_stays(slow_studio):
    tab = ScriptTab(slow_studio)

    async def work() -> None:
        number = tab.store.read("", LONG).number
        making = tab.playback.speak(number, False)
        while statuses(tab, number).count("done") < 3:
            await making.__anext__()
        assert tab.playback.busy(number)
        assert "Stop" in html(tab.look(number, View())[0])
        tab.playback.stop(number)
        await _through(making)
        while slow_studio.engine.stats().running or slow_studio.engine.stats().waiting:
            await asyncio.sleep(0.01)
        done = statuses(tab, number).count("done")
        assert 3 <= done < 60
        assert tab.playback.progress(number) is None

    in_time(work())


def test_listening_to_another_line_stops_nothing_and_the_takes_stop_does(slow_studio):
    tab = ScriptTab(slow_studio)

    async def work() -> None:
        number = tab.store.read("", LONG).number
        making = tab.playback.speak(number, True)
        take = (await making.__anext__())["id"]
        slow_studio.live.leave(take)  # another take begins in this player
        async for payload in tab.playback.listen(number, 0):
            assert payload["ended"] is None or payload["ended"]["reason"] == "finished"
        assert tab.playback.progress(number) is not None
        tab.stopped(event(id=take))
        await _through(making)
        assert statuses(tab, number).count("done") < 60

    in_time(work())


def test_stop_in_the_player_stops_what_was_pressed_twice(slow_studio):
    tab = ScriptTab(slow_studio)

    async def work() -> None:
        number = tab.store.read("", LONG).number
        first = tab.playback.speak(number, True)
        slow_studio.live.leave((await anext(first))["id"])  # the second press begins in its player
        second = tab.playback.speak(number, True)
        take = (await anext(second))["id"]
        rest = asyncio.create_task(_through(first))  # its page stays open
        await asyncio.sleep(0.05)
        slow_studio.live.leave(take)
        tab.stopped(event(id=take))
        await _through(second)
        await rest
        while tab.playback.busy(number):
            await asyncio.sleep(0.01)
        assert statuses(tab, number).count("done") < 60

    in_time(work())


def test_stop_and_looking_leave_what_was_typed(slow_studio):
    tab = ScriptTab(slow_studio)

    async def work() -> None:
        number = tab.store.read("", LONG).number
        seen = text_of(tab.store.open(number).script)
        making = tab.playback.speak(number, False)
        await anext(making)
        for typed in ("", "Something else."):  # nothing to speak; a text of its own
            for press in ({"do": "turn", "page": 1}, {"do": "stop"}):
                shown = tab.act(number, "", View(), typed, seen, event(**press))
                assert shown.opened == shown.text == gr.skip()
        await _through(making)
        assert statuses(tab, number).count("done") < 60
        assert text_of(tab.store.open(number).script) == seen

    in_time(work())


def test_a_line_that_is_gone_is_told_plainly(tab, number):
    for gone in (tab.playback.speak(number, True, 99), tab.playback.redo(number, 99)):
        [payload] = payloads_of(gone)
        assert "There is no line 99" in payload["ended"]["message"]


def test_two_windows_hear_one_rendering_that_goes_on_without_them(slow_studio):
    tab = ScriptTab(slow_studio)

    async def work() -> None:
        number = tab.store.read("", LONG).number
        one, two = tab.playback.speak(number, True), tab.playback.speak(number, True)
        takes = [(await each.__anext__())["id"] for each in (one, two)]
        assert len({id(each) for each in tab.playback._renders[number]}) == 1
        slow_studio.live.leave(takes[0])
        tab.stopped(event(id=takes[0]))
        await _through(one)
        assert tab.playback.progress(number) is not None  # the other goes on
        done = statuses(tab, number).count("done")
        await two.aclose()  # its page is closed
        while statuses(tab, number).count("done") < done + 3:
            await asyncio.sleep(0.01)
        assert "Stop" in html(page(tab, number).lines)  # at the next visit
        tab.playback.stop(number)
        while slow_studio.engine.stats().running or slow_studio.engine.stats().waiting:
            await asyncio.sleep(0.01)
        while tab.playback.busy(number):
            await asyncio.sleep(0.01)
        assert tab.playback.progress(number) is None
        assert not tab.store.is_rendering(number)
        assert statuses(tab, number).count("done") < 60

    in_time(work())


def test_a_line_that_fails_says_why_until_it_is_spoken(tab, number, studio, monkeypatch):
    line = tab.store.open(number).script.lines[1]
    engine = studio.engine
    original = engine.submit

    def refuse(request: Any) -> Any:
        if request.text == line.text:
            raise InvalidText("This text cannot be spoken. Change it.")
        return original(request)

    monkeypatch.setattr(engine, "submit", refuse)
    spoken(tab, number)
    assert statuses(tab, number)[1] == "failed"
    assert "cannot be spoken" in html(tab.look(number, View(show="failed"))[0])
    monkeypatch.undo()
    spoken(tab, number)
    assert statuses(tab, number) == ["done"] * LINES


def test_a_closed_page_leaves_a_rendering_that_completes(tab, number, studio):
    async def work() -> None:
        making = tab.playback.speak(number, False)
        await making.__anext__()
        assert tab.store.is_rendering(number)
        await making.aclose()
        while tab.playback.busy(number):
            await asyncio.sleep(0.01)

    in_time(work())
    assert statuses(tab, number) == ["done"] * LINES
    assert not tab.store.is_rendering(number)


async def begun(studio: Studio) -> str:
    """A script that was being rendered when its server was killed: the loop ends with this."""
    tab = ScriptTab(studio)
    number = tab.store.read("", LONG).number
    making = tab.playback.speak(number, False)
    while statuses(tab, number).count("done") < 3:
        await making.__anext__()
    await making.aclose()
    return number


def test_a_server_that_ends_while_it_renders_is_told_at_the_next_visit(slow_studio):
    number = in_time(begun(slow_studio))
    again = ScriptTab(replace(slow_studio))
    assert 3 <= statuses(again, number).count("done") < 60
    assert "Rendering was interrupted" in html(page(again, number).lines)
    assert "progress" not in html(page(again, number).lines)
    shown = act(again, number, do="dismiss")
    assert "Rendering was interrupted" not in html(shown.lines)


def test_a_rendering_that_nobody_hears_sends_its_page_a_beat_and_no_more(tmp_path):
    """Before: an event for each chunk, under which pages of long scripts stood still."""
    studio = make_studio(tmp_path, costs=Costs(step=0.002))
    tab = ScriptTab(studio)

    async def work() -> tuple[int, float]:
        number = tab.store.read("", LONG).number
        began = time.monotonic()
        sent = [each async for each in tab.playback.speak(number, False)]
        assert set(statuses(tab, number)) == {"done"}
        return len(sent), time.monotonic() - began

    with studio.engine:
        count, seconds = in_time(work())
    assert count <= seconds / playback.BEAT + 2


def test_a_page_looks_on_while_a_long_script_is_prepared(tab, number, monkeypatch):
    """Before: what took more than two seconds was made and never shown."""
    prepare, may_go_on, began = tab.playback._ready, threading.Event(), threading.Event()

    def slowly(*arguments: Any) -> Any:
        began.set()
        assert may_go_on.wait(60)
        return prepare(*arguments)

    async def work() -> list[bool]:
        speaking = asyncio.ensure_future(_through(tab.playback.speak(number, False)))
        await asyncio.to_thread(began.wait, 60)
        looked = [tab.playback.busy(number)]
        may_go_on.set()
        await speaking
        return [*looked, tab.playback.busy(number)]

    monkeypatch.setattr(playback, "SOON", 0.0)
    monkeypatch.setattr(tab.playback, "_ready", slowly)
    assert in_time(work()) == [True, False]


def test_what_could_not_be_prepared_is_not_waited_for(tab, monkeypatch):
    monkeypatch.setattr(playback, "SOON", 0.0)
    in_time(_through(tab.playback.speak("none", False)))
    assert not tab.playback.busy("none")


@pytest.mark.parametrize("guests", [False, True])
def test_renders_without_a_page_are_bounded(tmp_path, monkeypatch, guests):
    studio = replace(make_studio(tmp_path, costs=Costs(step=0.01)), guests=guests)
    monkeypatch.setattr(playback, "MOST_UNATTENDED", 2)
    monkeypatch.setattr(playback, "GUESTS_UNATTENDED", 0.2)
    monkeypatch.setattr(playback, "CHECK", 0.05)
    tab = ScriptTab(studio)

    async def work() -> None:
        numbers = [tab.store.read("", LONG).number for _ in range(3)]
        for number in numbers:
            making = tab.playback.speak(number, False)
            await making.__anext__()
            await making.aclose()
        while tab.playback.progress(numbers[0]):
            await asyncio.sleep(0.01)
        assert tab.playback.progress(numbers[2])  # looked at last
        while guests and any(map(tab.playback.progress, numbers)):
            await asyncio.sleep(0.01)
        assert bool(tab.playback.progress(numbers[1])) != guests
        for number in numbers:
            tab.playback.stop(number)
        while any(map(tab.playback.busy, numbers)):
            await asyncio.sleep(0.01)

    with studio.engine:
        in_time(work())


def test_a_voice_changed_during_a_rendering_is_that_of_lines_not_begun(tmp_path):
    studio = make_studio(tmp_path, costs=Costs(step=0.05))
    tab = ScriptTab(studio)

    async def work() -> str:
        number = tab.store.read("", LONG).number
        default = tab.store.open(number).project.casting.default
        other = next(key for _, key in tab.store.voices() if key != default)
        making = tab.playback.speak(number, False)
        while statuses(tab, number)[0] != "done":  # a shorter line may be the first to be done
            await making.__anext__()
        await asyncio.to_thread(act, tab, number, do="cast", who="", value=other)
        last = tab.store.open(number).jobs[-1]
        [render] = tab.playback._renders[number]
        while not render.batch.status_of_key(last.key):
            assert not render.batch.over
            await making.__anext__()
        tab.playback.stop(number)
        await _through(making)
        return number

    with studio.engine:
        number = in_time(work())
    assert statuses(tab, number)[0] == "waiting"
    assert "Made before a change" in html(page(tab, number).lines)
    opened = tab.store.open(number)
    [take] = opened.takes(opened.script.lines[0])  # with the voice before
    shown = act(tab, number, do="pick", line=opened.script.lines[0].id, take=take.key)
    assert statuses(tab, number)[0] == "locked"
    assert "Made before a change" not in html(shown.lines).split("</article>")[0]


def test_a_rendering_goes_on_after_the_servers_end(slow_studio):
    async def started(tab: ScriptTab, number: str) -> None:
        await tab.playback.resume()
        assert tab.playback.progress(number) is not None
        while tab.playback.busy(number):
            await asyncio.sleep(0.01)

    number = in_time(begun(slow_studio))
    tab = ScriptTab(replace(slow_studio))
    in_time(started(tab, number))
    assert set(statuses(tab, number)) == {"done"}
    assert not tab.store.is_rendering(number)


def test_a_rendering_that_waits_for_the_model_is_not_said_to_be_interrupted(slow_studio):
    async def starting(tab: ScriptTab, number: str) -> None:
        resuming = asyncio.create_task(tab.playback.resume())
        while not tab.playback.busy(number):
            await asyncio.sleep(0.01)
        assert "Rendering was interrupted" not in html(page(tab, number).lines)
        resuming.cancel()

    number = in_time(begun(slow_studio))
    tab = ScriptTab(replace(slow_studio))
    with mock.patch.object(slow_studio.engine, "capabilities", return_value={}):
        in_time(starting(tab, number))


def test_a_rendering_that_may_have_ended_the_server_is_not_resumed_again(tab, number):
    assert not tab.store.resume_rendering(number, 0)  # none was broken off
    tab.store.begin_rendering(number)
    assert tab.store.resume_rendering(number, 2)
    assert not tab.store.resume_rendering(number, 2)  # nothing was done since
    assert tab.store.resume_rendering(number, 3)
