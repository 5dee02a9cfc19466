"""Moods in lines of a script and in typed texts: tags, directions, keys, pauses."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from engine import Clone, Mood, Mooded, Preset, Voice
from studio.scripts.line_requests import Delivery, Job, plan
from studio.scripts.model import Line, Script
from studio.scripts.text.pieces import pieces_of

GLAD = Mood("glad", np.ones(4, np.float32), words=("soft",))
MOODS = {"glad": GLAD, "soft": GLAD}
VOICE = Clone(np.arange(1, 5, dtype=np.float32))


def job(
    text: str, direction: str = "", voice: Voice = VOICE, moods: dict[str, Mood] = MOODS
) -> Job:
    script = Script(lines=(Line(id=0, text=text, direction=direction),), issued=1)
    return plan(script, {"": voice}, Delivery(), moods=moods)[0]


def test_a_direction_is_the_mood_of_its_line() -> None:
    request = job("Come in!", "(gladly)").request
    assert request is not None
    assert isinstance(request.voice, Mooded)
    plain = job("Come in!", "(from the left)").request
    assert plain is not None
    assert plain.voice is VOICE


def test_tags_of_moods_stay_in_the_text_and_other_cues_do_not() -> None:
    request = job("[soft] Come in. [laughs] [glad 0.5] Sit. [/glad]").request
    assert request is not None
    assert request.text == "[soft] Come in. [glad 0.5] Sit. [/glad]"
    assert request.moods == MOODS
    without = job("[soft] Come in.", moods={}).request
    assert without is not None
    assert without.text == "Come in."


def test_a_line_s_key_depends_on_the_moods_that_it_names_and_on_no_other() -> None:
    other = {"glad": Mood("glad", 2 * GLAD.shift), "soft": GLAD}
    tagged = "One. [glad] Two. [/glad]"
    assert job(tagged).key != job(tagged, moods=other).key
    assert job("One. Two.").key == job("One. Two.", moods={}).key
    assert job("One.", "gladly").key != job("One.").key
    recorded = replace(VOICE, references=(("glad", Clone(np.ones(4, np.float32))),))
    assert job(tagged, voice=recorded).key != job(tagged).key
    assert job("One.", voice=recorded).key == job("One.").key


def test_a_preset_with_a_direction_that_is_no_mood_is_told_it_as_ever() -> None:
    request = job("[whispers] Come in.", voice=Preset("ryan")).request
    assert request is not None
    assert request.voice == Preset("ryan", "whispers")


def test_a_mood_goes_on_behind_a_pause() -> None:
    pieces = pieces_of("[glad 0.5] One. [pause 1s] Two. [/glad] [pause] Three.", moods=MOODS)
    assert [piece.text for piece in pieces] == [
        "[glad 0.5] One.", "[glad 0.5] Two. [/glad]", "Three.",
    ]  # fmt: skip
    assert [piece.text for piece in pieces_of("[glad] [pause 1s] One.", moods=MOODS)] == [
        "", "[glad] One.",
    ]  # fmt: skip
