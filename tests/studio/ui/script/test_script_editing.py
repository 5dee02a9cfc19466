"""A script edited as a page does: fields of a line, joined lines, words, what Undo takes back."""

from __future__ import annotations

import numpy as np
import pytest

from engine import Message, NotSaved, RequestError
from studio.scripts import projects
from studio.ui.tabs.script.words import words_shown
from tests.support.script_tab_makers import act, event, html, page, spoken, statuses
from tests.support.tab_makers import heard, payloads_of

EMOJI = "😀 Where have you been?"  # a face is two units for a page


def lines(tab, number):
    return tab.store.open(number).script.lines


@pytest.mark.parametrize(
    ("press", "named"),
    [
        ({"do": "cast", "who": "Anna", "value": "ryan"}, "Undo: the voice of Anna"),
        ({"do": "edit", "line": 1, "text": "Oh?", "who": "Anna"}, "Undo: the text of line 2"),
        ({"do": "remove", "line": 2}, "Undo: the deletion of line 3"),
    ],
)
def test_undo_names_what_it_takes_back(tab, number, press, named):
    assert "Undo" not in html(page(tab, number).lines)
    assert named in html(act(tab, number, **press).lines)
    assert "Undo" not in html(act(tab, number, do="undo").lines)


@pytest.mark.parametrize(("text", "place"), [("Anna: Hello.\nBen: A word.", 1), ("A word.", 0)])
def test_who_only_pauses_needs_no_voice(tab, text, place):
    number = tab.store.read("", text).number
    line = tab.store.open(number).script.lines[place]
    act(tab, number, do="edit", line=line.id, text="[pause 2s]", who=line.speaker)
    assert tab.store.open(number).jobs[place].pause == 2
    assert "Undo: the text of line" in html(page(tab, number).lines)
    act(tab, number, do="undo")
    assert tab.store.open(number).script.lines[place].text == line.text


def test_a_form_changes_speaker_direction_and_text_and_a_pause_splits_a_line(tab, number):
    form = {"text": "Where [pause 0.3s] have you been?", "who": "Ben", "direction": "softly"}
    split = act(tab, number, do="edit", line=1, **form)
    assert "Undo: the split of line 2" in html(split.lines)
    found = [each for each in lines(tab, number) if each.direction == "softly"]
    assert [(each.text, each.speaker, each.pause) for each in found] == [
        ("Where", "Ben", 0.3),
        ("have you been?", "Ben", None),
    ]
    assert found[0].id == 1
    assert 'name="direction"' in html(page(tab, number).lines)
    shown = act(tab, number, do="join", line=1)
    [joined] = [each for each in lines(tab, number) if each.direction == "softly"]
    assert (joined.id, joined.text, joined.pause) == (1, "Where have you been?", None)
    assert "Undo: the join of line 2" in html(shown.lines)


def test_what_is_made_anew_quietly_leaves_the_player_alone(tab, number):
    spoken(tab, number, aloud=False)
    before = tab.store.open(number).job(1).key
    pressed = event(do="redo", line=1, aloud=False)
    payloads = payloads_of(tab.play(number, pressed))
    assert not [each for each in payloads if "id" in each]
    assert tab.store.open(number).job(1).key != before
    assert set(statuses(tab, number)) == {"done"}


def test_a_page_is_told_when_each_word_is_heard_and_plays_from_one_on(tab, number):
    act(tab, number, do="edit", line=1, text=EMOJI, who="Anna")
    assert words_shown(tab.store, number, 1) == []
    spoken(tab, number, aloud=False)
    words = words_shown(tab.store, number, 1)
    units = EMOJI.encode("utf-16-le")
    texts = [units[2 * first : 2 * stop].decode("utf-16-le") for first, stop, _, _ in words]
    assert texts == ["Where", "have", "you", "been?"]
    at, begins = words[2][0], words[2][2]
    payloads = payloads_of(tab.play(number, event(do="word", line=1, at=at, to=at)))
    opened = tab.store.open(number)
    sound = opened.sounds.read(opened.job(1).key)
    start = heard([each for each in payloads if "id" in each])
    assert start[: 2 * len(sound) - 2 * begins] == sound[begins:].tobytes()
    [marks] = [each for each in tab.playback.heard(number).values() if each]
    assert marks[0] == (-begins, 1)
    for wrong in (None, "1", 99):
        assert words_shown(tab.store, number, wrong) == []


def test_selected_words_are_made_anew_and_the_take_before_is_kept(tab, number, monkeypatch):
    spoken(tab, number, aloud=False)
    opened = tab.store.open(number)
    before, text = opened.job(1).key, opened.script.line(1).text
    first = text.index("have")
    pieces = []
    monkeypatch.setattr("studio.ui.tabs.script.words.inform", pieces.append)
    pressed = event(do="words", line=1, at=first, to=first + 4)
    payloads = payloads_of(tab.play(number, pressed))
    assert "have" in pieces[0]
    opened = tab.store.open(number)
    after = opened.script.line(1).kept
    assert after
    assert after != before
    sound = opened.sounds.read(after)
    assert heard([each for each in payloads if "id" in each]) == sound.tobytes()
    assert not np.array_equal(sound, opened.sounds.read(before))
    assert [take.key for take in opened.takes(opened.script.line(1))] == [before, after]
    assert html(page(tab, number).lines).count("In use") == 1
    act(tab, number, do="unlock", line=1)  # the seed's own sound is in use again
    opened = tab.store.open(number)
    assert opened.job(1).key == before
    assert {take.key for take in opened.takes(opened.script.line(1))} == {before, after}
    act(tab, number, do="undo")
    assert tab.store.undone_next(number) == Message("the words of line {place}", place=2)
    [refused] = payloads_of(tab.play(number, event(do="words", line=99, at=0, to=3)))
    assert refused["ended"]["reason"] == "refused"


def test_words_of_a_line_that_is_edited_meanwhile_lock_nothing(tab, number, monkeypatch):
    """Before: the line kept the sound of a text that it no longer had."""
    spoken(tab, number, aloud=False)
    text = tab.store.open(number).script.line(1).text
    prepared = tab.store.job_with

    def meanwhile(*arguments):
        job = prepared(*arguments)
        act(tab, number, do="edit", line=1, text="Completely other words.", who="Anna")
        return job

    monkeypatch.setattr(tab.store, "job_with", meanwhile)
    at = text.index("have")
    payloads = payloads_of(tab.play(number, event(do="words", line=1, at=at, to=at + 4)))
    line = tab.store.open(number).script.line(1)
    assert (line.text, line.kept) == ("Completely other words.", "")
    assert payloads


def test_words_of_a_line_whose_voice_is_changed_meanwhile_lock_nothing(tab, number, monkeypatch):
    """Before: one sound had two voices."""
    spoken(tab, number, aloud=False)
    prepared = tab.store.job_with

    def meanwhile(*arguments):
        job = prepared(*arguments)
        act(tab, number, do="cast", who="Anna", value="dylan")
        return job

    monkeypatch.setattr(tab.store, "job_with", meanwhile)
    payloads = payloads_of(tab.play(number, event(do="words", line=1, at=6, to=10)))
    assert "meanwhile" in str(payloads)
    assert tab.store.open(number).script.line(1).kept == ""


@pytest.mark.parametrize("way", ["lock", "words", "take"])
def test_words_of_a_locked_line_are_made_anew_in_the_voice_that_spoke_it(tab, number, way):
    """Whoever its speaker is cast with since."""
    spoken(tab, number, aloud=False)
    first = tab.store.open(number).project.casting.voice_of("Anna")
    if way == "lock":
        act(tab, number, do="lock", line=1)
        act(tab, number, do="cast", who="Anna", value="dylan")
    elif way == "words":
        payloads_of(tab.play(number, event(do="words", line=1, at=6, to=10)))
        act(tab, number, do="cast", who="Anna", value="dylan")
    else:
        key = tab.store.open(number).take(1)
        act(tab, number, do="cast", who="Anna", value="dylan")
        act(tab, number, do="pick", line=1, take=key)
    line = tab.store.open(number).script.line(1)
    assert (line.locked, line.voice) == (True, first)
    job = tab.store.job_with(number, 1, 7)
    assert job.request.voice == tab.store.resolve(first)
    payloads_of(tab.play(number, event(do="words", line=1, at=6, to=10)))
    again = tab.store.open(number).script.line(1)
    assert again.kept != line.kept
    assert again.voice == first
    act(tab, number, do="unlock", line=1)
    now = tab.store.open(number)
    assert now.job(1).request.voice == tab.store.resolve("dylan")
    by = {take.key: take.voice for take in now.takes(now.script.line(1))}
    assert by[line.kept] == by[again.kept] == first


def test_a_full_disk_costs_no_state_that_can_be_taken_back(tab, number, monkeypatch):
    """Before: what could not be saved was forgotten, and the next press took back one more."""
    store = tab.store
    store.rename(number, "Named")
    before = store.open(number).script
    act(tab, number, do="edit", line=1, text="Something else.", who="Anna")

    def full(*_: object) -> None:
        raise NotSaved("{name} could not be saved: the disk is full.", name="project.json")

    with monkeypatch.context() as patched:
        patched.setattr(projects, "write_atomic", full)
        with pytest.raises(NotSaved):
            store.undo(number)
    assert store.undo(number).script.lines == before.lines


def test_what_was_deleted_in_another_tab_is_not_brought_back_by_undo(tab, number):
    act(tab, number, do="edit", line=1, text="Something else.", who="Anna")
    tab.store.delete(number)
    with pytest.raises(RequestError, match="deleted"):
        tab.store.undo(number)
    assert number not in [each.id for each in tab.store.summaries()]
    tab.store.restore(number)
    tab.store.undo(number)
