"""The Script tab without a browser: read, cast, changed, taken back, deleted and found again."""

from __future__ import annotations

import warnings
from dataclasses import replace
from zipfile import ZipFile

import gradio as gr
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine import Message, NotSaved, UnknownVoice
from studio.scripts import Delivery, text_of
from studio.scripts.export.script_files import save_project
from studio.ui.tabs.script.exports import ExportSection, ExportView, Saved
from studio.ui.tabs.script.handlers import ScriptTab
from studio.ui.tabs.script.options import UNREAD, AsRead, values_of
from studio.ui.tabs.script.shown import Shown
from studio.ui.tabs.script.view import EXAMPLE, View
from tests.support.script_tab_makers import LINES, LONG, act, event, html, page, spoken, statuses
from tests.support.tab_makers import make_studio, payloads_of, recording, some_clone


def test_a_text_becomes_a_script_with_a_voice_for_everybody(tab, number, studio):
    opened = tab.store.open(number)
    assert len(opened.jobs) == LINES
    assert opened.project.title == "The Key"
    voices = [opened.project.casting.voice_of(who) for who in opened.script.speakers]
    assert len(set(voices)) == 3
    assert set(voices) <= set(studio.choices().speakers())


def test_another_studio_finds_everything_again(tab, number, studio):
    spoken(tab, number)
    again = ScriptTab(replace(studio))
    assert statuses(again, number) == ["done"] * LINES
    shown = page(again, number)
    assert shown.opened == number
    assert shown.text == EXAMPLE.strip()
    assert "6 rendered" in html(shown.lines)


def test_a_setting_that_was_refused_is_refused_by_speak_too(tab, number):
    """The page still shows it; what is spoken without it would seem to have it."""
    text = text_of(tab.store.open(number).script)
    good = values_of(Delivery())
    bad = (good[0], "seven", *good[2:])
    with pytest.warns(UserWarning, match="seed"):
        _, read = tab.read_settings(number, View(), AsRead(number, good), *bad)
    before = AsRead(number, good) if read == gr.skip() else read
    with pytest.raises(gr.Error, match="seed"):
        tab.read(number, "", View(), text, text, before, *bad)
    tab.read_settings(number, View(), before, *values_of(Delivery(seed=7)))
    assert tab.store.open(number).project.delivery.seed == 7


def test_a_locked_line_keeps_its_take_and_refuses_changes(tab, number):
    spoken(tab, number, aloud=False)
    line = tab.store.open(number).script.lines[1].id
    act(tab, number, do="lock", line=line)
    kept = tab.store.open(number).job(line).key
    tab.read_settings(number, View(), AsRead(), *values_of(Delivery(seed=9)))
    assert statuses(tab, number) == ["waiting", "locked", *["waiting"] * (LINES - 2)]
    assert tab.store.open(number).job(line).key == kept
    with pytest.warns(UserWarning, match="locked"):
        act(tab, number, do="edit", line=line, text="Something else.", who="Anna")
    act(tab, number, do="unlock", line=line)
    assert statuses(tab, number)[1] == "waiting"


def test_an_edit_costs_only_its_own_line_and_is_written_into_the_text(tab, number):
    spoken(tab, number, aloud=False)
    line = tab.store.open(number).script.lines[3].id
    shown = act(tab, number, do="edit", line=line, text="I found none at all.", who="Anna")
    assert "Anna: I found none at all." in shown.text
    assert shown.text == shown.seen
    assert statuses(tab, number) == ["done", "done", "done", "waiting", "done", "done"]


def test_lines_are_added_removed_and_given_to_others(tab, number):
    lines = tab.store.open(number).script.lines
    act(tab, number, do="add", line=lines[1].id)
    act(tab, number, do="remove", line=lines[0].id)
    script = tab.store.open(number).script
    assert len(script.lines) == LINES
    assert script.lines[1].speaker == "Anna"


def test_a_text_that_the_page_has_is_not_sent_again(tab, number):
    text = page(tab, number).text
    for seen, sent in ((text, gr.skip()), ("", text)):
        shown = tab.read(number, "", View(), text, seen)
        assert (shown.text, shown.seen) == (sent, sent)


def test_the_heard_line_is_found_on_its_page(tab):
    number = tab.store.read("", LONG).number
    line = tab.store.open(number).script.lines[57].id
    shown = act(tab, number, do="find", line=line)
    assert f'data-line="{line}"' in html(shown.lines)


def test_the_last_line_stays(tab, number):
    first, *others = tab.store.open(number).script.lines
    for line in others:
        act(tab, number, do="remove", line=line.id)
    with pytest.warns(UserWarning, match="keeps one line"):
        act(tab, number, do="remove", line=first.id)
    assert len(tab.store.open(number).script.lines) == 1


def test_what_was_typed_is_read_before_anything_is_done(tab, number):
    line = tab.store.open(number).script.lines[1].id
    seen = page(tab, number).text
    typed = seen.replace("all this time", "so long")
    shown = tab.act(number, "", View(), typed, seen, event(do="cast", who="Anna", value="ryan"))
    opened = tab.store.open(number)
    assert opened.script.line(line).text == "Where have you been so long?"
    assert opened.project.casting.voice_of("Anna") == "ryan"
    assert shown.text == typed


def test_a_late_press_does_not_bring_an_old_text_back(tab, number):
    """The page's text is older than the script, but nobody has typed in it."""
    seen = page(tab, number).text
    line = tab.store.open(number).script.lines[1].id
    edited = tab.act(
        number, "", View(), seen, seen, event(do="edit", line=line, text="Well?", who="Anna")
    )
    tab.act(number, "", View(), seen, seen, event(do="show", value="open"))
    assert page(tab, number).text == edited.text


def test_a_voice_that_is_not_there_is_refused_by_name(tab, number, studio):
    with pytest.warns(UserWarning, match="nobody"):
        act(tab, number, do="cast", who="Anna", value="nobody")
    gone = lambda each: each.having(casting=each.casting.with_voice("Anna", "gone"))  # noqa: E731
    tab.store.change(number, gone, Message("the voice"))
    assert statuses(tab, number) == ["waiting"] * LINES  # shown all the same
    [payload] = payloads_of(tab.playback.speak(number, True))
    assert payload["ended"]["reason"] == "refused"
    assert "Anna" in payload["ended"]["message"]
    with pytest.raises(UnknownVoice, match="Anna"):
        tab.store.ready(number)


@pytest.mark.parametrize(
    ("data", "says"),
    [
        ({"do": "lock", "line": 1}, "Speak this line first"),
        ({"do": "undo"}, "nothing to undo"),
        ({"do": "join", "line": 1}, "one speaker"),
        ({"do": "join", "line": 5}, "no line after"),
        ({"do": "edit", "line": 99, "text": "x", "who": ""}, "no line 99"),
        ({"do": "edit", "line": 1, "text": "", "who": ""}, "needs text"),
        ({"do": "edit", "line": "1"}, "Reload"),
        ({"do": "turn", "page": None}, "Reload"),
        ({"do": "format the disk", "line": 1}, "Reload"),
        ({}, "Reload"),
    ],
)
def test_a_press_that_means_nothing_is_told_and_changes_nothing(tab, number, data, says):
    before = tab.store.open(number).project
    with pytest.warns(UserWarning, match=says):
        shown = act(tab, number, **data)
    assert all(update == gr.skip() for update in shown)
    assert tab.store.open(number).project == before


def test_an_empty_page_teaches_and_text_without_words_is_refused(tab):
    shown = page(tab, "")
    assert "Show an example" in html(shown.lines)
    with pytest.raises(gr.Error, match="nothing to speak"):
        tab.read("", "", View(), " \n ", "")
    assert tab.store.listed() == []
    assert act(tab, "", do="example").opened == tab.store.listed()[0][1]


def test_scripts_are_named_listed_deleted_and_brought_back(tab, number):
    tab.rename(number, "  A  better name ", "")
    assert tab.store.listed() == [(f"A better name · {LINES} lines", number)]
    *_, gone, back = tab.delete(number, "")
    assert gone == number
    assert back["visible"]
    assert tab.store.listed() == []
    assert "Show an example" in html(page(tab, number).lines)
    tab.restore(gone, "")
    assert [each for _, each in tab.store.listed()] == [number]


def test_a_name_is_shown_as_it_was_saved_where_its_script_is_the_page_s(tab, number):
    assert tab.rename(number, "A  name", "", number)[1] == "A name"
    with pytest.warns(UserWarning, match="a name"):
        assert tab.rename(number, "", "", number)[1] == "A name"
    assert tab.rename(number, "A name", "", number)[1] == gr.skip()  # there may be more by now
    assert tab.rename(number, "A  name", "", "")[1] == gr.skip()


def test_guests_find_the_scripts_of_their_own_browser_only(tmp_path):
    made = make_studio(tmp_path)
    with made.engine:
        shared, guests = ScriptTab(made), ScriptTab(replace(made, guests=True))
        numbers = [shared.store.read("", EXAMPLE).number for _ in range(3)]
        everybody = page(shared, "").picked["choices"]
        assert {number for _, number in everybody} == set(numbers)
        assert page(guests, "").picked["choices"] == []
        opened = page(guests, numbers[1], numbers[0])  # who knows a number may open it
        assert {number for _, number in opened.picked["choices"]} == set(numbers[:2])
        assert set(opened.mine.split()) == set(numbers[:2])


def test_a_file_becomes_a_script_of_its_name(tab, tmp_path):
    path = tmp_path / "My film.srt"
    path.write_text("1\n00:00:01,000 --> 00:00:02,000\nHello there, my friend.\n", "utf-8")
    tab.receive(str(path), "")
    assert tab.store.listed()[0][0].startswith("My film")
    path.with_suffix(".exe").write_bytes(b"MZ")
    for bad in (None, str(path.with_suffix(".exe"))):
        with pytest.warns(UserWarning, match="file|Upload"):
            tab.receive(bad, "")
    assert len(tab.store.listed()) == 1


presses = st.lists(
    st.tuples(
        st.sampled_from(["edit", "add", "remove", "cast", "up", "down"]),
        st.integers(0, LINES - 1),
        st.sampled_from(["Something else is said here.", "One. [pause 1s] Two.", "她没有回家。"]),
    ),
    max_size=12,
)


@settings(max_examples=20, deadline=None)
@given(presses)
def test_whatever_is_done_can_be_taken_back(tmp_path_factory, pressed):
    made = make_studio(tmp_path_factory.mktemp("studio"))
    with made.engine:
        tab = ScriptTab(made)
        number = tab.store.read("", EXAMPLE).number
        first = tab.store.open(number).project
        for does, place, text in pressed:
            lines = tab.store.open(number).script.lines
            line = lines[place % len(lines)].id
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # the last line that says anything stays
                act(tab, number, do=does, line=line, text=text, who="Anna", value="ryan")
            opened = tab.store.open(number)
            ids = [line.id for line in opened.script.lines]
            assert len(set(ids)) == len(ids) == len(opened.jobs)
        while tab.store.undone_next(number):
            act(tab, number, do="undo")
        last = tab.store.open(number).project
        script = last.script.having(issued=first.script.issued)  # the only thing that stays
        assert last.having(changed=0.0, script=script) == first.having(changed=0.0)


def test_a_project_is_saved_and_received_under_a_free_name(tab, number, studio, tmp_path, capsys):
    spoken(tab, number, aloud=False)
    path = save_project(tab.store, number, tmp_path)
    assert path.name == "The-Key.zip"
    for title in ("The Key (2)", "The Key (3)"):
        tab.receive(str(path), "")
        assert f"This one is called “{title}”" in capsys.readouterr().out
        again = tab.store.listed()[0][1]
        assert tab.store.open(again).project.title == title
        assert statuses(tab, again) == ["done"] * LINES
    guests = ScriptTab(replace(studio, guests=True))
    guests.receive(str(path), "")  # of other people's scripts nothing is told
    assert guests.store.listed()[0][0].startswith("The Key ·")


def test_what_a_project_has_lost_of_its_sounds_is_told(tab, number, studio, tmp_path):
    tab.receive(str(save_project(tab.store, number, tmp_path)), "")  # never spoken: none is lost
    studio.music.add(number, recording(tmp_path / "Rain.wav"), {})
    spoken(tab, number, aloud=False)
    line = tab.store.open(number).script.lines[0].id
    act(tab, number, do="edit", line=line, text="Something else.", who="")  # keeps a take
    spoken(tab, number, aloud=False)
    path = save_project(tab.store, number, tmp_path)
    tab.receive(str(path), "")  # all is there
    with ZipFile(path) as whole, ZipFile(tmp_path / "bare.zip", "w") as bare:
        bare.writestr("project.json", whole.read("project.json"))
    lost = f"those of {LINES} lines .*, 1 pieces of music, 1 earlier takes"
    with pytest.warns(UserWarning, match=lost):
        tab.receive(str(tmp_path / "bare.zip"), "")


TWO = "Anna: Good evening, my dear old friend of mine.\nBen: Good evening to you, too, dear Anna."


def test_a_name_in_capitals_keeps_the_voice_that_was_picked(tab, studio):
    studio.library.save("Mine", some_clone(1), consent=True)
    mine = studio.choices().key("Mine")
    number = tab.store.read("", TWO).number
    act(tab, number, do="cast", who="Anna", value=mine)
    spoken(tab, number)
    opened = tab.store.open(number)
    tab.store.read(number, text_of(opened.script) + "\nANNA: Stop it, I have said enough about it!")
    assert tab.store.open(number).project.casting.voice_of("Anna") == mine
    assert statuses(tab, number) == ["done", "done", "waiting"]


def test_what_a_deleted_voice_has_said_outlives_an_undo(tab, studio):
    saved = studio.library.save("Mine", some_clone(1), consent=True)
    number = tab.store.read("", TWO).number
    act(tab, number, do="cast", who="Anna", value=studio.choices().key("Mine"))
    line = tab.store.open(number).script.lines[1].id
    act(tab, number, do="edit", line=line, text="Good night to you, Anna.", who="Ben")
    spoken(tab, number)
    act(tab, number, do="undo")
    studio.library.delete(saved.id)
    assert statuses(tab, number) == ["done", "waiting"]


def test_a_new_voice_is_not_the_deleted_one_of_a_script(tab, studio):
    deleted = studio.library.save("小明", some_clone(1), consent=True)
    number = tab.store.read("", TWO).number
    act(tab, number, do="cast", who="Anna", value=studio.choices().key("小明"))
    ticket = studio.library.delete(deleted.id)
    assert studio.library.save("小红", some_clone(2), consent=True).id != deleted.id
    studio.library.restore(ticket)
    anna = tab.store.open(number).project.casting.voice_of("Anna")
    assert studio.choices().shown(anna) == "小明"


def test_text_that_is_typed_while_a_page_arrives_stays(tab):
    """Where the browser has no script, nothing is set over what was pasted meanwhile."""
    shown = Shown(*tab.arrive(event(number="", mine="", draft=None))[: len(Shown._fields)])
    assert shown.text == shown.seen == gr.skip()
    draft = {"number": "", "text": "Half a sen", "seen": ""}
    assert (
        Shown(*tab.arrive(event(number="", draft=draft))[: len(Shown._fields)]).text == "Half a sen"
    )


def test_an_address_of_a_script_that_is_gone_is_told(tab, number):
    tab.delete(number, "")
    with pytest.warns(UserWarning, match="no script at this address"):
        shown = Shown(*tab.arrive(event(number=number, asked=number))[: len(Shown._fields)])
    assert shown.opened == ""
    tab.arrive(event(number=number, asked=""))  # only remembered: nobody has asked for it


def test_an_address_of_a_damaged_script_says_so(tab, number, tmp_path):
    """Before, it was said to be deleted, though its file is there and can be mended."""
    (path,) = tmp_path.rglob(f"{number}/project.json")
    path.write_bytes(b"{")
    with pytest.warns(UserWarning, match="its file is damaged"):
        tab.arrive(event(number=number, asked=number))


def test_an_export_that_its_server_has_forgotten_is_said_to_have_ended(studio, tmp_path):
    number = "20261128-174718-6e5960c53a6fed67"
    shown = ExportView(*ExportSection(studio, tmp_path).see(number, f"{number} ", "", Saved())[:5])
    assert "The server was restarted" in shown.progress["value"]
    assert shown.press["interactive"]


def test_typed_text_is_read_before_another_script_is_shown(tab, number):
    other = tab.store.read("", "Clara: Three.").number
    first = Shown(*tab.turn(other, number, "", "Typed on an empty page.", "")[: len(Shown._fields)])
    assert first.opened == other
    known, read, _ = first.mine.split()
    assert known == number
    assert text_of(tab.store.open(read).script) == "Typed on an empty page."
    tab.new(first.mine, read, "Typed on an empty page.\n\nAnd more.", "Typed on an empty page.")
    assert text_of(tab.store.open(read).script).endswith("And more.")
    left = {"number": other, "text": "Clara: Three. And four.", "seen": "Clara: Three."}
    tab.arrive(event(number=number, mine=number, left=left))
    assert text_of(tab.store.open(other).script) == "Clara: Three. And four."


def test_text_that_cannot_be_read_keeps_its_script_shown(tab, number, monkeypatch):
    def full(*_: object) -> None:
        raise NotSaved("The disk is full.")

    monkeypatch.setattr(tab.store, "read", full)
    with pytest.warns(UserWarning, match="full"):
        shown = Shown(*tab.turn(number, "", "", "Typed.", "")[: len(Shown._fields)])
    assert shown.text == gr.skip()
    assert shown.picked == gr.update(value=None)


def test_settings_that_are_answered_after_another_script_is_shown_hide_no_change_of_it(tab, number):
    """The page keeps what was read last, which is of the script that was left."""
    other = tab.read("", "", View(), "Ann: Hello.", "").opened
    shown = page(tab, number).read
    wanted = values_of(Delivery(seed=9))
    late = tab.read_settings(number, View(), shown, *wanted)[1]
    tab.read_settings(other, View(), late, *wanted)
    assert tab.store.open(other).project.delivery.seed == 9


def test_text_that_was_typed_into_a_deleted_script_is_a_script_of_its_own(tab, number):
    """Another tab has deleted it."""
    seen = page(tab, number).seen
    typed = (number, f"{seen}\n\nAnna: Typed.", seen)
    drafted = {"number": number, "text": typed[1], "seen": seen}
    tab.delete(number, "")
    remove = event(do="remove", line=1)
    presses = (
        lambda *typed: tab.read(typed[0], "", View(), *typed[1:]).mine,
        lambda *typed: tab.act(typed[0], "", View(), *typed[1:], remove).mine,
        lambda *typed: tab.new("", *typed)[1],
    )
    for place, press in enumerate(presses):
        with pytest.warns(UserWarning, match="was deleted"):
            (read,) = str(press(number, f"{typed[1]} {place}", seen)).split()
        assert text_of(tab.store.open(read).script) == f"{typed[1]} {place}"
    shown = Shown(*tab.arrive(event(number=number, draft=drafted))[: len(Shown._fields)])
    assert (shown.opened, shown.text, shown.seen) == ("", typed[1], "")
    with pytest.warns(UserWarning, match="was deleted"):
        assert tab.act(number, "", View(), seen, seen, event(do="undo")).opened == gr.skip()


def test_a_new_script_has_the_settings_that_were_chosen_before_it(tab):
    wanted = values_of(Delivery(seed=9))
    before = tab.read_settings("", View(), UNREAD, *wanted)[1]
    told = tab.read("", "", View(), "Ann: Hello.", "", before, *wanted)
    assert tab.store.open(told.opened).project.delivery.seed == 9
    assert tab.store.undone_next(told.opened) is None
    kept = tab.new("", "", "Typed and left.", "", *wanted)
    (left,) = str(kept[1]).split()
    assert tab.store.open(left).project.delivery.seed == 9
    example = tab.act("", "", View(), "", "", event(do="example"), *wanted).opened
    assert tab.store.open(example).project.delivery.seed == 9


def test_settings_in_which_the_cursor_is_are_spoken(tab, number):
    """Ctrl+Enter leaves no field."""
    shown = page(tab, number)
    wanted = values_of(Delivery(seed=9))
    elsewhere = tab.store.open(number).project.delivery.having(speed=1.5)
    tab.store.deliver(number, lambda _: elsewhere)
    tab.read(number, "", View(), shown.text, shown.seen, shown.read, *wanted)
    assert tab.store.open(number).project.delivery == elsewhere.having(seed=9)
