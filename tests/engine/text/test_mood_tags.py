"""Tags of moods in texts: what is spoken in which mood, and what stays ordinary text."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.text.mood_tags import mood_named, mood_runs, unknown_tags, without_tags

KNOWN = {"glad", "tired", "whisper", "happy"}


def runs(text: str) -> list[tuple[str, str]]:
    return [(run.text, run.spoken.mood) for run in mood_runs(text, KNOWN)]


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("Plain.", [("Plain.", "")]),
        ("One. [glad] Two! [/glad] Three.", [("One. ", ""), ("Two! ", "glad"), ("Three.", "")]),
        ("(gladly) Come in! Sit.\nNext.", [("Come in! Sit.\n", "glad"), ("Next.", "")]),
        (
            "Well, [whisper]be quiet,[/whisper] said she.",
            [("Well, ", ""), ("be quiet, ", "whisper"), ("said she.", "")],
        ),
        # inside a clause: the clause is spoken so, the mark is not lost
        ("He said [glad]come in[/glad] and left. Then he slept.",
         [("He said come in and left. ", "glad"), ("Then he slept.", "")]),
        ("[glad] One. [tired] Two. [/tired] Three.",
         [("One. ", "glad"), ("Two. ", "tired"), ("Three.", "glad")]),
        ("[Glad] One. [/GLAD] Two.", [("One. ", "glad"), ("Two.", "")]),
        # a mood without anything to speak, and ends of nothing
        ("One. [glad] [/glad] Two.", [("One. Two.", "")]),
        ("One [/glad] two.", [("One two.", "")]),
        # other brackets
        ("As said [1] (aside) [sic] [/b].", [("As said [1] (aside) [sic] [/b].", "")]),
        ("[ [ [ glad", [("[ [ [ glad", "")]),
        ("你好。[happy]很好！[/happy]再见。",
         [("你好。", ""), ("很好！", "happy"), ("再见。", "")]),
    ],
)  # fmt: skip
def test_runs(text: str, found: list[tuple[str, str]]) -> None:
    assert runs(text) == found


def test_a_strength_is_read() -> None:
    for tag in ("[tired 0.6]", "[tired:0.6]", "[ tired = 0,6 ]", "[very tired .6]"):
        (run,) = mood_runs(f"{tag} Good night.", KNOWN)
        assert run.spoken.strength == 0.6
        assert run.text == "Good night."


def test_adverbs_mean_their_mood() -> None:
    assert [mood_named(word, KNOWN) for word in ("gladly", "Happily", "very tired", "sadly")] == [
        "glad", "happy", "tired", "",
    ]  # fmt: skip


def test_nothing_but_tags_and_space_is_lost() -> None:
    text = "A, [glad] b; (tired) c. [1] [/glad]\n [whisper .5] D? [/whisper] e (f)."
    spoken = "".join(run.text for run in mood_runs(text, KNOWN))
    assert "".join(spoken.split()) == "A,b;c.[1]D?e(f)."


def test_long_hostile_texts_are_read_in_time() -> None:
    for piece in ("[glad", "[/glad] ", "[glad 0.5] a. ", "(", "[" * 50, "[glad 1" + " " * 50):
        assert len(mood_runs(piece * (60_000 // len(piece)), KNOWN)) < 60_000


@pytest.mark.parametrize(
    ("text", "left", "names"),
    [
        ("[sad] Hi there. [/sad] Bye.", "Hi there. Bye.", ["sad"]),
        ("Say [sad 0.5] this [/ Sad ] now.", "Say this now.", ["Sad"]),
        ("[glad] Hi. [/glad] Bye [1].", "[glad] Hi. [/glad] Bye [1].", []),
        (" Either [this] and/or [that]. ", " Either [this] and/or [that]. ", []),
    ],
)
def test_a_tag_that_is_closed_is_no_text_whatever_it_is_called(
    text: str, left: str, names: list[str]
) -> None:
    unknown = unknown_tags(text, {"glad"})
    assert list(unknown.values()) == names
    assert without_tags(text, unknown) == left


@given(st.text(alphabet="ab [](0.5)", max_size=60))
def test_a_text_in_which_nothing_is_closed_stays(text: str) -> None:
    assert unknown_tags(text, ()) == {}
    assert without_tags(text, {}) == text
