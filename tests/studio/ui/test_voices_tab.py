"""The kept voices without a browser: found, changed, sent, received, deleted and back."""

from __future__ import annotations

import os
import re
from pathlib import Path

import gradio as gr
import numpy as np
import pytest
import soundfile

from engine import Clone, Design, SpeechRequest
from studio.ui.tabs.voice_form import MAX_FILE, hex_colour
from studio.ui.tabs.voices import EMPTY, VoicesTab, split_tags
from studio.ui.voice_list import found_cards
from studio.voices.consent_recordings import ConsentRecordings
from tests.support.script_tab_makers import event
from tests.support.tab_makers import heard, make_studio, payloads_of, some_clone


@pytest.fixture
def tab(studio, tmp_path):
    return VoicesTab(studio, tmp_path)


@pytest.fixture
def kept(studio):
    save = studio.library.save
    return [
        save("Ada", some_clone(1), tags=("warm", "old"), note="from the radio", consent=True),
        save("Bo", some_clone(2), tags=("cold",), kind="blend"),
        save("Cy", Design("A warm voice."), note="nobody"),
    ]


@pytest.mark.parametrize(
    ("words", "names"),
    [("", "Ada Bo Cy"), ("ADA", "Ada"), ("warm radio", "Ada"), ("blended", "Bo"), ("nothing", "")],
)
def test_every_word_is_looked_for(studio, kept, words, names):
    found = found_cards(studio, words, ())
    assert " ".join(card.name for card in found if card.kind != "preset") == names


def test_the_list_keeps_what_is_picked_only_while_it_is_there(tab, kept):
    for number in (kept[0].id, ""):
        shown, _, picked = tab.search("", "all", number, [])
        assert picked == gr.skip()  # another may be picked by now
        assert all(f'data-voice="#{each.id}"' in shown for each in kept)
    assert tab.search("bo", "all", kept[0].id, [])[2] == ""


@pytest.mark.parametrize(
    ("which", "names"),
    [("clone", "Ada"), ("blend", "Bo"), ("design", "Cy"), ("starred", "Cy Vivian")],
)
def test_cards_are_of_one_kind_or_starred(tab, kept, which, names):
    shown = tab.search("", which, "", ["vivian", f"#{kept[2].id}", "gone"])[0]
    assert sorted(re.findall("<strong>(.*?)</strong>", shown)) == names.split()


def test_presets_are_in_the_library_and_found_by_what_is_said_of_them(tab, studio):
    shown = tab.search("sunny", "preset", "", None)[0]
    assert re.findall("<strong>(.*?)</strong>", shown) == ["Aiden"]
    everybody = tab.search("", "preset", "", None)[0]
    assert everybody.count("<li") == len(studio.choices().speakers())


def test_a_star_is_given_and_taken_and_stands_first(tab, kept):
    key = f"#{kept[2].id}"
    starred = tab.act([], event(do="star", voice=key))[1]
    shown = tab.search("", "all", "", starred)[0]
    assert re.findall("<strong>(.*?)</strong>", shown)[0] == "Cy"
    assert tab.act(starred, event(do="star", voice=key))[1] == []
    assert tab.act([], event(do="edit", voice=key)) == (kept[2].id, gr.skip())


def test_a_card_is_heard(tab, kept, studio):
    for key in ("vivian", f"#{kept[0].id}"):
        payloads = payloads_of(tab.hear("hello", event(do="hear", voice=key)))
        seed = payloads[-1]["ended"]["seed"]
        line = SpeechRequest("hello", studio.choices().named(key), seed=seed)
        assert heard(payloads) == studio.engine.submit(line).collect().tobytes()


def test_an_empty_library_teaches(tab):
    assert EMPTY in tab.search("", "all", "", [])[1]
    assert "xyz" in tab.search(" xyz ", "all", "", [])[1]


def test_a_card_is_written_and_shown_again(tab, kept, studio):
    spoken, *_ = tab.change(
        kept[0].id, " Ada  Two ", "new, new , old", "rgb(255, 0, 128)", " note "
    )
    assert "Ada Two" in spoken
    _, name, tags, colour, note, *_ = tab.show(kept[0].id)
    assert (name, tags, colour, note) == ("Ada Two", "new, old", "#ff0080", "note")
    assert np.array_equal(studio.library.get(kept[0].id).voice.vector, kept[0].voice.vector)


def test_a_form_changes_what_was_written_in_it_alone(tab, kept, studio):
    _, *fields, shown, _, _, _ = tab.show(kept[0].id)
    studio.library.change(kept[0].id, name="Adele", tags=("old",))  # another page
    fields[3] = "A note."
    assert "Adele" in tab.change(kept[0].id, *fields, shown)[0]
    card = studio.library.get(kept[0].id).card
    assert (card.name, card.tags, card.note) == ("Adele", ("old",), "A note.")
    assert "already" in tab.change(kept[0].id, "Bo", *fields[1:], shown)[0]


def test_a_recorded_consent_is_heard_where_there_is_one(tab, studio, kept):
    recordings = ConsentRecordings(studio.library)
    tone = (0.3 * np.sin(np.arange(48_000) / 20)).astype(np.float32)
    consent = recordings.add("Dee agrees", "en-US", tone)
    made = studio.library.save(
        "Dee", some_clone(3), recordings.files(consent.id), kind="clone", consent=True
    )
    *_, facts, sound, _ = tab.show(made.id)
    assert "Dee agrees (en-US" in facts
    assert sound["visible"]
    assert soundfile.info(sound["value"]).duration == 2
    studio.library.rename(made.id, "Deirdre")
    assert tab.show(made.id)[-2]["visible"]
    *_, facts, sound, _ = tab.show(kept[0].id)
    assert not sound["visible"]
    assert "Recorded" not in facts


def test_a_name_of_another_voice_is_refused(tab, kept, studio):
    refused, *form = tab.change(kept[0].id, "bo", "", "", "A note that took time.")
    assert "already" in refused
    assert all(field == gr.skip() for field in form)  # nothing that was typed is lost
    assert "changed" in tab.change(kept[0].id, "ADA", "", "", "")[0]
    assert "first" in tab.change(None, "Some", "", "", "")[0]
    assert [each.name for each in studio.library.list()] == ["ADA", "Bo", "Cy"]


def test_an_exported_file_is_the_voice_for_somebody_else(tab, kept, tmp_path):
    other = make_studio(tmp_path / "other")
    with other.engine:
        theirs = VoicesTab(other, tmp_path)
        for each in kept:
            path = tab.show(each.id)[-1]
            assert each.name in theirs.receive(path)[0]
            count = len(other.library.list())
            spoken, waiting, again = theirs.receive(path)
            assert "already" in spoken
            assert again["visible"]
            assert len(other.library.list()) == count
            assert each.name in theirs.receive_again(waiting)[0]
            assert len(other.library.list()) == count + 1
            came = other.library.find(each.name)
            assert came.card == each.card
            if isinstance(each.voice, Clone):
                assert np.array_equal(came.voice.vector, each.voice.vector)
            else:
                assert came.voice == each.voice


@pytest.mark.parametrize("data", [b"", b"not a voice", b"\0" * (MAX_FILE + 1)])
def test_a_foreign_file_changes_nothing(tab, studio, tmp_path, data):
    path = tmp_path / "foreign.safetensors"
    path.write_bytes(data)
    assert tab.receive(str(path))[0].startswith("⚠️")
    assert studio.library.list() == ()


def test_a_deleted_voice_comes_back_as_it_was(tab, kept, studio):
    spoken, ticket, undo, *_ = tab.delete(kept[1].id)
    assert "Bo" in spoken
    assert undo["visible"]
    assert studio.library.find("Bo") is None
    spoken, undo = tab.restore(ticket)
    assert "Bo" in spoken
    assert not undo["visible"]
    assert studio.library.get(kept[1].id).card == kept[1].card


def test_deleting_twice_is_told_and_leaves_the_way_back(tab, kept):
    tab.delete(kept[1].id)
    spoken, *way_back, anyway, _ = tab.delete(kept[1].id)
    assert spoken.startswith("⚠️")
    assert all(each == gr.skip() for each in way_back)
    assert not anyway["visible"]


def test_listening_speaks_the_voice(tab, kept, studio):
    for each in kept:
        payloads = payloads_of(tab.speak(each.id, "hello"))
        line = SpeechRequest("hello", each.voice, seed=payloads[-1]["ended"]["seed"])
        assert heard(payloads) == studio.engine.submit(line).collect().tobytes()


def test_a_damaged_voice_is_named_and_left_alone(tab, kept, studio):
    card = Path(studio.library.folder) / kept[0].id / "voice.json"
    card.write_text("{")
    os.utime(studio.library.folder)  # or some seconds later
    assert kept[0].id in tab.search("", "all", "", [])[1]
    assert not tab.show(kept[0].id)[0]["visible"]
    assert card.read_text() == "{"


def test_tags_are_split_and_kept_once():
    assert split_tags(" a, b  c ,,a,") == ("a", "b c")


@pytest.mark.parametrize(
    ("picked", "kept_as"),
    [
        ("#4f7cac", "#4f7cac"),
        ("rgba(79.3, 124, 172, 1)", "#4f7cac"),
        ("rgb(79 124 172)", "#4f7cac"),
        ("rgb(999, 0, 0)", "#ff0000"),
        *((wrong, "") for wrong in ("#zzzzzz", "rgb()", "rgb(nan,1,2)", "rgb(a, b, c)", "red", "")),
    ],
)
def test_a_colour_is_one_or_none(picked, kept_as):
    assert hex_colour(picked) == kept_as


def test_why_a_second_copy_is_refused_is_told(tab, studio, kept, tmp_path):
    path = tmp_path / "ada.voice.safetensors"
    path.write_bytes(studio.library.export(kept[0].id))
    studio.library._most = 3
    assert "full" in tab.receive_again(str(path))[0]
