"""A change touches the line it is made to, and no other."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine import InvalidText, Preset
from studio.scripts import edits, text_of
from studio.scripts.edits import move
from studio.scripts.line_requests import Delivery, Job, plan
from studio.scripts.model import Line, Script
from studio.scripts.pauses import Pauses
from studio.scripts.text.passages import PLAIN, Passage
from studio.scripts.text.typed import script_of_text

SENTENCES = [
    f"This is sentence number {word} of the text." for word in ["one", "two", "three", "four"]
]
TEXTS = st.lists(st.sampled_from(SENTENCES), min_size=1, max_size=8)


def script_of(sentences: list[str]) -> Script:
    return script_of_text("\n\n".join(sentences))


def jobs_of(script: Script, **changes: object) -> dict[int, Job]:
    voices = {speaker: Preset(speaker or "ryan") for speaker in script.speakers}
    return {job.line: job for job in plan(script, voices, Delivery().having(**changes))}


@settings(max_examples=60, deadline=None)
@given(
    TEXTS,
    st.integers(0, 7),
    st.sampled_from(["edit", "redo", "speaker", "lock", "insert", "remove"]),
)
def test_other_lines_keep_id_and_key(sentences: list[str], index: int, action: str) -> None:
    script = script_of(sentences)
    line = script.lines[index % len(script.lines)]
    changed = {
        "edit": lambda: edits.edit(script, line.id, "Something quite different is said here now."),
        "redo": lambda: edits.redo(script, line.id, 99),
        "speaker": lambda: edits.say_as(script, line.id, "Anna"),
        "lock": lambda: edits.lock(script, line.id, "abc"),
        "insert": lambda: edits.insert(
            script, line.id, Passage("A line that was not there."), PLAIN
        ),
        "remove": lambda: edits.remove(script, line.id),
    }[action]()
    before, after = jobs_of(script), jobs_of(changed)
    for other in script.lines:
        if other.id != line.id:
            assert after[other.id].key == before[other.id].key
    touched = action in ("edit", "redo", "speaker", "lock")
    assert (line.id in after) == (action != "remove")
    if touched:
        assert after[line.id].key != before[line.id].key
    ids = [each.id for each in changed.lines]
    assert len(ids) == len(set(ids))
    assert changed.issued > max(ids, default=-1)


def test_an_edit_that_is_taken_back_finds_the_sound_again() -> None:
    script = script_of(SENTENCES)
    edited = edits.edit(script, 1, "Something quite different is said here now.")
    back = edits.edit(edited, 1, SENTENCES[1])
    assert back == script.model_copy(update={"issued": back.issued})
    assert [job.key for job in jobs_of(back).values()] == [j.key for j in jobs_of(script).values()]


def test_a_pause_typed_into_a_line_cuts_it_and_the_first_part_keeps_the_id() -> None:
    script = script_of(SENTENCES)
    edited = edits.edit(script, 1, "Wait a moment [pause 2s] and then go on [pause 1s]")
    assert [(line.id, line.text, line.pause) for line in edited.lines[1:3]] == [
        (1, "Wait a moment", 2.0),
        (4, "and then go on", 1.0),
    ]
    assert edits.shown(edited.lines[2]) == "and then go on [pause 1s]"
    assert edits.edit(edited, 4, edits.shown(edited.lines[2])) == edited
    assert edits.edit(edited, 4, "and then go on").line(4).pause is None


def test_a_locked_line_refuses_changes_and_keeps_its_sound() -> None:
    script = edits.lock(script_of(SENTENCES), 2, "abc")
    for change in (
        lambda: edits.edit(script, 2, "No."),
        lambda: edits.redo(script, 2, 5),
        lambda: edits.remove(script, 2),
        lambda: edits.say_as(script, 2, "Anna"),
    ):
        with pytest.raises(InvalidText, match="Unlock it"):
            change()
    assert jobs_of(script, seed=7)[2].key == "abc"
    assert jobs_of(edits.unlock(script, 2))[2].key == jobs_of(script_of(SENTENCES))[2].key


@settings(max_examples=80, deadline=None)
@given(TEXTS, TEXTS)
def test_a_text_pasted_again_keeps_the_lines_it_still_holds(old: list[str], new: list[str]) -> None:
    before = script_of(old)
    before = before.model_copy(
        update={"lines": tuple(line.having(seed=line.id) for line in before.lines)}
    )
    after = edits.revise(before, script_of(new))
    assert [line.text for line in after.lines] == new
    ids = [line.id for line in after.lines]
    assert len(ids) == len(set(ids))
    assert after.issued > max(ids)
    texts = {line.id: line.text for line in before.lines}
    kept = sum(texts.get(line.id) == line.text for line in after.lines)
    assert kept == sum(min(old.count(text), new.count(text)) for text in set(new))
    assert all(line.seed == (line.id if line.id in texts else None) for line in after.lines)


def test_a_changed_word_does_not_cost_a_line_its_identity() -> None:
    before = script_of(SENTENCES)
    after = edits.revise(before, script_of([*SENTENCES[:2], "Quite another third.", SENTENCES[3]]))
    assert [line.id for line in after.lines] == [0, 1, 2, 3]


def test_pauses_follow_what_ends() -> None:
    pauses = Pauses(sentence=0.1, turn=0.2, paragraph=0.3, chapter=0.4)
    line = Line(id=0, text="a")
    assert pauses.after(line, Line(id=1, text="b")) == 0.1
    assert pauses.after(line, Line(id=1, text="b", speaker="x", paragraph=1)) == 0.2
    assert pauses.after(line, Line(id=1, text="b", paragraph=1)) == 0.3
    assert pauses.after(line, Line(id=1, text="b", chapter=1, paragraph=1)) == 0.4
    assert pauses.after(line, None) == 0.0
    assert pauses.after(line.having(pause=5.0), None) == 5.0


def test_unknown_lines_and_empty_edits_are_refused() -> None:
    script = script_of(SENTENCES)
    with pytest.raises(InvalidText, match="no line 77"):
        edits.redo(script, 77, 1)
    with pytest.raises(InvalidText, match="needs text"):
        edits.edit(script, 0, "  ")
    with pytest.raises(InvalidText, match="Speak this line first"):
        edits.lock(script, 0, "")


CHAPTERS = (
    "It began like this.\n\n# One\n\nAnna: First of all.\nBen: And then.\n\nThey left. They came."
    "\n\n# Two [silent]\n\nAnna: And again.\n\n# Three\n\nBen: The end of it."
)


@settings(max_examples=60, deadline=None)
@given(st.lists(st.tuples(st.integers(0, 9), st.integers(-2, 12)), min_size=1, max_size=6))
def test_moved_lines_are_the_same_lines_in_the_order_of_the_text(
    moves: list[tuple[int, int]],
) -> None:
    first = script = script_of_text(CHAPTERS)
    for place, to in moves:
        line = script.lines[place % len(script.lines)]
        if script.is_title(script.place(line.id)):
            with pytest.raises(InvalidText, match="title stays"):
                move(script, line.id, to)
            continue
        script = move(script, line.id, to)
        chapters = [line.chapter for line in script.lines]
        assert chapters == sorted(chapters)
        ids = sorted(line.id for line in script.lines)
        assert ids == sorted(line.id for line in first.lines)
    written = "".join("".join(line.text.split()) for line in script_of_text(text_of(script)).lines)
    assert written == "".join("".join(line.text.split()) for line in script.lines)


def test_of_equal_lines_those_stay_that_stand_where_nothing_changed() -> None:
    script = script_of(["Yes.", SENTENCES[0], "Yes.", SENTENCES[1]])
    fewer = edits.revise(script, script_of([SENTENCES[0], "Yes.", SENTENCES[1]]))
    assert [line.id for line in fewer.lines] == [line.id for line in script.lines[1:]]
    more = edits.revise(script, script_of(["Yes.", "Yes.", SENTENCES[0], "Yes.", SENTENCES[1]]))
    assert [line.id for line in more.lines[2:]] == [line.id for line in script.lines[1:]]
