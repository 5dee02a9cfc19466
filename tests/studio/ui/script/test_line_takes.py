"""Takes of a line in the Script tab: kept, heard, picked, exported; and lines put in order."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import soundfile

from studio.scripts.export.script_files import ExportOptions, export
from studio.ui.tabs.script.handlers import ScriptTab
from studio.ui.tabs.script.view import View
from tests.support.script_tab_makers import act, event, html, page, spoken, statuses
from tests.support.tab_makers import heard, payloads_of


def regenerate(tab, number, line, times=1):
    for _ in range(times):
        assert payloads_of(tab.playback.redo(number, line))


def keys(tab, number, line):
    opened = tab.store.open(number)
    return [take.key for take in opened.takes(opened.script.line(line))]


def key(tab, number, line):
    return tab.store.open(number).job(line).key


def test_every_take_is_kept_heard_and_can_be_picked(tab, number, tmp_path):
    spoken(tab, number, aloud=False)
    line = tab.store.open(number).script.lines[1].id
    regenerate(tab, number, line, 2)
    takes = keys(tab, number, line)
    assert len(takes) == len(set(takes)) == 3
    assert takes[-1] == key(tab, number, line)
    sounds = tab.store.open(number).sounds
    for each in takes:
        sound = heard(payloads_of(tab.playback.take(number, line, each)))
        assert sound == sounds.read(each).tobytes()
    for each in (takes[0], takes[1]):
        act(tab, number, do="pick", line=line, take=each)
        assert key(tab, number, line) == each
        assert keys(tab, number, line) == takes
        assert statuses(tab, number)[1] == "done"
        options = ExportOptions("wav", loudness=None, texts=False)
        [path] = export(tab.store.open(number), options, tmp_path, lambda *_: None)
        whole, _ = soundfile.read(path, dtype="int16")
        first = tab.store.open(number).jobs[0]
        start = len(sounds.read(first.key)) + round(first.pause * 24_000)
        picked = sounds.read(each)
        np.testing.assert_array_equal(whole[start : start + len(picked)], picked)


def test_undo_and_a_new_page_lose_no_take(tab, number, studio):
    spoken(tab, number, aloud=False)
    line = tab.store.open(number).script.lines[2].id
    regenerate(tab, number, line, 2)
    takes = keys(tab, number, line)
    for _ in range(2):
        act(tab, number, do="undo")
        assert set(keys(tab, number, line)) == set(takes)
    assert key(tab, number, line) == takes[0]
    again = ScriptTab(replace(studio))
    assert set(keys(again, number, line)) == set(takes)
    shown = html(page(again, number).lines)
    assert all(f'data-take="{each}"' in shown for each in takes)
    assert shown.count('aria-current="true"') == 1


def test_a_take_of_another_text_is_locked_when_it_is_picked(tab, number):
    spoken(tab, number, aloud=False)
    line = tab.store.open(number).script.lines[1].id
    before = key(tab, number, line)
    act(tab, number, do="edit", line=line, text="Something else.", who="Anna")
    spoken(tab, number, aloud=False)
    assert before in keys(tab, number, line)
    act(tab, number, do="pick", line=line, take=before)
    opened = tab.store.open(number)
    assert opened.script.line(line).locked
    assert opened.job(line).key == before
    act(tab, number, do="unlock", line=line)
    assert statuses(tab, number)[1] == "done"  # what was spoken of the new text is still there


def test_takes_are_bounded_and_what_is_no_take_is_refused(tab, number):
    spoken(tab, number, aloud=False)
    line = tab.store.open(number).script.lines[1].id
    regenerate(tab, number, line, 11)
    takes = keys(tab, number, line)
    assert len(takes) == 9  # eight earlier ones and the present one
    assert takes[-1] == key(tab, number, line)
    for gone in ("", "0" * 32, "../../x", key(tab, number, 0)):
        with pytest.warns(UserWarning, match="take is gone"):
            act(tab, number, do="pick", line=line, take=gone)
        [payload] = payloads_of(tab.playback.take(number, line, gone))
        assert payload["ended"]["reason"] == "refused"


def test_a_slower_script_finds_its_takes(tab, number):
    spoken(tab, number, aloud=False)
    line = tab.store.open(number).script.lines[1].id
    regenerate(tab, number, line)
    first, _second = keys(tab, number, line)
    tab.store.deliver(number, lambda each: each.having(speed=0.8))
    act(tab, number, do="pick", line=line, take=first)
    assert tab.store.open(number).job(line).natural == first
    spoken(tab, number, aloud=False)
    assert statuses(tab, number)[1] == "done"


def test_lines_are_moved_by_step_and_by_drop_and_back(tab, number):
    def order():
        return [line.id for line in tab.store.open(number).script.lines]

    first = order()  # a title, then five lines
    act(tab, number, do="up", line=first[3])
    assert order() == [*first[:2], first[3], first[2], *first[4:]]
    act(tab, number, do="down", line=first[3])
    assert order() == first
    act(tab, number, do="move", line=first[1], target=first[4], below=True)
    assert order() == [first[0], *first[2:5], first[1], *first[5:]]
    act(tab, number, do="move", line=first[5], target=first[2], below=False)
    assert order()[1] == first[5]
    for _ in range(4):
        act(tab, number, do="undo")
    assert order() == first
    with pytest.warns(UserWarning, match="title stays"):
        act(tab, number, do="down", line=first[0])


def test_a_search_shows_the_lines_that_have_it(tab, number):
    def found(words):
        shown = tab.act(number, "", View(), "", "", event(do="search", value=words))
        return html(shown.lines).count("<article"), shown

    assert found("")[0] == 6
    assert found("  KEY ")[0] == 3
    assert found("anna:")[0] == 1
    count, shown = found("nowhere")
    assert count == 0
    assert "No results" in html(shown.lines)
