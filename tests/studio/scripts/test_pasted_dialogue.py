"""Dialogue as people paste it: who speaks, how, and what is nobody's name."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine import Preset
from studio.scripts import Delivery, plan
from studio.scripts.serializer import text_of
from studio.scripts.text.cues import at_cues, cue_of, cues_of, without_cues
from studio.scripts.text.dialogue import read_parts, read_text
from studio.scripts.text.passages import Passage
from studio.scripts.text.typed import script_of_text
from tests.support.script_makers import script_of_file

WANTED = [("Anna", "Where have you been?"), ("Ben", "I looked for the key.")]
SCREENPLAY = """INT. KITCHEN - NIGHT

Anna puts the lamp on the table.

                    ANNA
          Where have
          you been?

                    BEN (CONT'D)
          (softly)
          I looked for the key.

CUT TO:
"""
FORMS = {
    "bold": "**Anna:** Where have you been?\n**Ben:** I looked for the key.",
    "bold name": "**Anna**: Where have you been?\n\n**Ben**: I looked for the key.",
    "emphasis": "*Anna:* Where have you been?\n_Ben:_ I looked for the key.",
    "brackets": "[Anna] Where have you been?\n[Ben] I looked for the key.",
    "brackets and colon": "[Anna]: Where have you been?\n\n[Ben]: I looked for the key.",
    "screenplay": SCREENPLAY,
    "plain": "Anna: Where have you been?\nBen: I looked for the key.",
}


@pytest.mark.parametrize("form", FORMS)
def test_who_speaks_is_found_in_every_form(form: str) -> None:
    script = script_of_text(FORMS[form])
    lines = [(line.speaker, line.text) for line in script.lines]
    assert [each for each in lines if each[0]] == WANTED
    again = script_of_text(text_of(script))
    assert [(line.speaker, line.text) for line in again.lines if line.speaker] == WANTED


def test_a_screenplay_keeps_its_scenes_and_directions() -> None:
    script = script_of_text(SCREENPLAY)
    assert script.lines[0].text.startswith("INT. KITCHEN")
    assert next(line.direction for line in script.lines if line.speaker == "Ben") == "softly"
    assert script.speakers == ("", "Anna", "Ben")


@pytest.mark.parametrize(
    "text",
    [
        "INTRODUCTION\nThis is the first part.\n\nMETHODS\nThis is the second one.",
        "He said [sic] so, and [he] went.\nNobody spoke.\nNobody at all.",
        "[1] A footnote stands here.\n[2] Another one stands here.",
        "**Important:** bring the key.",
    ],
)
def test_what_only_looks_like_a_name_is_told(text: str) -> None:
    assert script_of_text(text).speakers == ("",)


def test_a_note_is_nobody_unless_it_comes_back() -> None:
    text = "Anna: Good evening.\nBen: Good evening.\nNote: bring the key tonight."
    assert script_of_text(text).speakers == ("Anna", "Ben", "")
    assert script_of_text(text).lines[-1].text == "Note: bring the key tonight."
    assert "Note" in script_of_text(f"{text}\nNote: and a lamp.").speakers


@pytest.mark.parametrize("name", ["Narrator", "NARRATOR", "旁白", "Erzähler"])
def test_there_is_one_narrator(name: str) -> None:
    script = script_of_text(f"{name}: It was dark.\n\nAnna: Who is there?\n\nNobody answered.")
    assert set(script.speakers) <= {"", "Anna"}
    assert script.lines[0].text == "It was dark."


SRT = """1
00:00:01,000 --> 00:00:02,000
{first}Where have you been?

2
00:00:03,000 --> 00:00:04,000
{second}I looked for the key.

3
00:00:05,000 --> 00:00:06,000
{first}Then look again.

4
00:00:07,000 --> 00:00:08,000
{second}I will.
"""


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("Anna: ", "Ben: "),
        ("ANNA: ", "BEN: "),
        ("[Anna] ", "[Ben] "),
        ("- Anna: ", "- Ben: "),
    ],
)
@pytest.mark.parametrize("kind", ["srt", "vtt"])
def test_subtitles_tell_who_speaks(kind: str, first: str, second: str) -> None:
    text = SRT.format(first=first, second=second)
    text = "WEBVTT\n\n" + text.replace(",000", ".000") if kind == "vtt" else text
    script = script_of_file(f"talk.{kind}", text.encode())
    assert [line.speaker.title() for line in script.lines] == ["Anna", "Ben", "Anna", "Ben"]
    assert script.lines[1].text == "I looked for the key."


@pytest.mark.parametrize(
    ("tag", "cue"),
    [
        ("[whispers]", "whispers"),
        ("[laugh]", "laugh"),
        ("[very softly]", "very softly"),
        ("[clears throat]", "clears throat"),
        ("[sarcastically]", "sarcastically"),
        ("[轻声]", "轻声"),
        ("[1]", ""),
        ("[sic]", ""),
        ("[pause 1s]", ""),
        ("[Anna]", ""),
        ("<break/>", ""),
    ],
)
def test_cues(tag: str, cue: str) -> None:
    assert cue_of(tag) == cue


@given(st.lists(st.sampled_from(["[whispers]", "[laugh] ", "Come here. ", "No", " ", "[1]"])))
def test_cutting_at_cues_loses_nothing_and_leaves_something_to_say(parts: list[str]) -> None:
    text = "".join(parts)
    pieces = at_cues(text)
    assert "".join(pieces) == text
    if len(pieces) > 1:
        assert all(any(char.isalnum() for char in without_cues(piece)) for piece in pieces)


def test_a_cue_is_told_to_a_voice_that_follows_and_spoken_by_none() -> None:
    script = script_of_text(
        "Anna: [whispers] Come here. Quick! [laughs] You are late.\nBen: I know. [sighs]"
    )
    assert [cues_of(line.text) for line in script.lines] == [("whispers",), ("laughs",), ("sighs",)]
    voices = {"Anna": Preset("ryan"), "Ben": Preset("vivian")}
    jobs = plan(script, voices, Delivery(), able={"Anna"})
    requests = [job.request for job in jobs if job.request]
    assert [each.text for each in requests] == ["Come here. Quick!", "You are late.", "I know."]
    assert [each.voice.instruct for each in requests] == ["whispers", "laughs", ""]  # type: ignore[union-attr]
    again = script_of_text(text_of(script), speakers=("Anna", "Ben"))
    assert [line.text for line in again.lines] == [line.text for line in script.lines]


PROSE = "\n\n".join(
    [
        "Down, down, down. Would the fall never come to an end?",
        "let me see: that would be four thousand miles down, I think.",
        "She was not a bit hurt, and she jumped up on to her feet in a moment.",
        "Alice: the name was on the door, and nobody answered.",
        "There were doors all round the hall, but they were all locked.",
        "let me see: how is it to be managed?",
    ]
    + ["And so she went on, and on, until the lamps were lit again."] * 12
    + ["Alice: so it said on the second door as well."]
)


def test_a_colon_in_prose_makes_no_speaker() -> None:
    passages = list(read_text(PROSE))
    assert {passage.speaker for passage in passages} == {""}
    assert any(passage.text.startswith("let me see: that") for passage in passages)


@pytest.mark.parametrize(
    "line",
    ["He said: come here.", "For example: a lamp.", "Chapter 2: The Door.", "Figure 3a: a door.",
     "What follows is: nothing."],
)  # fmt: skip
def test_what_no_name_looks_like_is_no_speaker_however_often(line: str) -> None:
    text = "\n\n".join([line] * 6)
    assert {passage.speaker for passage in read_text(text)} == {""}
    roles = "Man in black: Hello.\nHE: Hello.\nWill: Hello.\nMan in black: Good."
    assert {line.speaker for line in read_text(roles)} == {"Man in black", "HE", "Will"}


def test_a_list_of_terms_is_no_cast() -> None:
    text = "Ingredients: flour.\nTime: an hour.\nMethod: mix it.\nOven: hot.\nServes: four."
    assert {passage.speaker for passage in read_text(text)} == {""}
    people = "Maya: Hello.\nXq: Hello.\nZorb: Good.\nVex: Yes.\nQuil: No."
    assert len({passage.speaker for passage in read_text(people)}) == 5


def test_a_chapter_of_terms_casts_nobody_in_a_book_of_prose() -> None:
    chapter = [Passage("Files", heading=True), "Files: in the list.\n\nFiles: on the disk."]
    book = ["And so she went on, and on, until the lamps were lit.\n\n" * 20, *chapter]
    assert {line.speaker for line in read_parts(book)} == {""}
    assert {line.speaker for line in read_parts(chapter) if not line.heading} == {"Files"}


def test_a_name_that_comes_back_in_a_short_scene_is_a_speaker() -> None:
    text = "It was late.\n\nAnna: Are you there?\n\nNobody came.\n\nAnna: Well then."
    assert [passage.speaker for passage in read_text(text)] == ["", "Anna", "", "Anna"]
