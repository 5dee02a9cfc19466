"""Audio of a script that nothing uses any more is deleted; what can be brought back is kept."""

from __future__ import annotations

import time
from dataclasses import replace

import pytest

from studio.ui.tabs.script.handlers import ScriptTab
from tests.support.script_tab_makers import act, spoken, statuses

SUPERSEDED = 2.0  # days
DAY = 86_400.0


def tidy_for(tab, monkeypatch, days=3):
    """Once a day, as a server does."""
    now = time.time()
    for day in range(days + 1):
        monkeypatch.setattr(tab.store._projects, "_clock", lambda at=now + day * DAY: at)
        tab.store.tidy(SUPERSEDED)


def rewrite(tab, number):
    """Other sounds for all lines, of which no line has an earlier take."""
    tab.store.deliver(number, lambda each: each.having(seed=7))
    spoken(tab, number, aloud=False)


@pytest.fixture
def first(tab, number):
    spoken(tab, number, aloud=False)
    return tab.store.open(number).sounds.keys()


def test_superseded_audio_goes_after_some_days_and_no_earlier(
    tab, number, first, studio, monkeypatch
):
    rewrite(tab, number)
    tab = ScriptTab(replace(studio))  # a new server has no undo history
    tidy_for(tab, monkeypatch, days=1)
    assert tab.store.open(number).sounds.keys() > first
    tidy_for(tab, monkeypatch)
    left = tab.store.open(number).sounds
    assert len(left.keys()) == len(first)
    assert left.keys().isdisjoint(first)
    assert {path.stem for path in left.path("a").parent.iterdir()} == left.keys()
    assert set(statuses(tab, number)) == {"done"}


def test_what_undo_brings_back_still_sounds(tab, number, first, monkeypatch):
    rewrite(tab, number)
    tidy_for(tab, monkeypatch)
    act(tab, number, do="undo")
    assert set(statuses(tab, number)) == {"done"}
    assert tab.store.open(number).sounds.keys() >= first


def test_takes_and_locked_lines_keep_their_audio(tab, number, first, studio, monkeypatch):
    locked, edited, removed, *_ = (line.id for line in tab.store.open(number).script.lines)
    kept = tab.store.open(number).take(locked), tab.store.open(number).take(edited)
    gone = tab.store.open(number).take(removed)
    act(tab, number, do="lock", line=locked)
    act(tab, number, do="edit", line=edited, text="Something else.", who="Anna")
    act(tab, number, do="remove", line=removed)
    rewrite(tab, number)
    tab = ScriptTab(replace(studio))
    tidy_for(tab, monkeypatch)
    sounds = tab.store.open(number).sounds
    assert all(key in sounds for key in kept)
    assert gone not in sounds


def test_audio_of_other_models_and_of_speeds_in_use_is_kept(
    tab, number, first, studio, monkeypatch
):
    tab.store.deliver(number, lambda each: each.having(speed=1.5))
    spoken(tab, number, aloud=False)
    whole = tab.store.open(number).sounds.keys()
    assert whole > first
    tab = ScriptTab(replace(studio))
    monkeypatch.setattr(type(studio.choices()), "refusal", lambda *_: "not loaded")
    tidy_for(tab, monkeypatch)
    assert tab.store.open(number).sounds.keys() == whole


def test_trash_is_emptied_while_a_server_runs(tab, number, first, monkeypatch):
    tab.store.delete(number)
    tidy_for(tab, monkeypatch, days=29)
    assert [each.id for each in tab.store._projects.listed(deleted=True)] == [number]
    tidy_for(tab, monkeypatch, days=31)
    assert tab.store._projects.listed(deleted=True) == []
