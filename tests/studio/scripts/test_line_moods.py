"""Moods in lines of a script and in typed texts: tags, directions, keys, pauses."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np

from engine import Clone, Mood, Mooded, Preset, Voice, mood_runs
from studio.scripts.export.captions import captions, srt, vtt
from studio.scripts.export.export_files import line_name
from studio.scripts.line_audio import LineAudio
from studio.scripts.line_requests import Delivery, Job, plan
from studio.scripts.model import Line, Script
from studio.scripts.text.pieces import pieces_of
from studio.scripts.text.typed import script_of_text
from studio.scripts.timeline import build_timeline
from studio.scripts.titles import title_of

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


def jobs(text: str, moods: dict[str, Mood] = MOODS) -> list[Job]:
    script = script_of_text(text, moods=moods)
    voices = dict.fromkeys(script.speakers, VOICE)
    return list(plan(script, voices, Delivery(), moods=moods))


def test_a_mood_holds_in_the_later_lines_of_a_turn_and_not_in_the_next() -> None:
    spoken = (
        "[glad 0.5] The first sentence of it all. The second sentence of it all. "
        "[/glad] The third sentence of it all.\n\nThe first sentence of the next."
    )
    texts = [job.request.text for job in jobs(spoken) if job.request]
    assert len(texts) == 4
    assert [job.held.strip() for job in jobs(spoken)] == ["", "[glad 0.5]", "", ""]
    assert [mood_runs(text, MOODS)[0].spoken.mood for text in texts] == ["glad", "glad", "", ""]
    directed = "(gladly) The first sentence of it all. The second sentence of it all."
    texts = [job.request.text for job in jobs(directed) if job.request]
    assert [mood_runs(text, MOODS)[0].spoken.mood for text in texts] == ["glad", "glad"]


def test_a_line_that_closes_a_mood_before_its_first_word_does_not_say_that_it_holds() -> None:
    moods = {"glad": GLAD, "lower": GLAD}
    text = "[glad][lower] The first sentence of it all. The second sentence of it all."
    script = script_of_text(text, moods=moods)
    first, second = script.lines
    closed = second.model_copy(update={"text": f"[/lower] {second.text}"})
    edited = script.model_copy(update={"lines": (first, closed)})
    last = plan(edited, {"": VOICE}, Delivery(), moods=moods)[1]
    assert last.held == "[glad]"
    assert last.request is not None
    assert mood_runs(last.request.text, moods)[0].spoken.mood == "glad"


def test_a_tag_alone_is_no_line() -> None:
    (line,) = script_of_text("[glad][softly] Come in.", moods=MOODS).lines
    assert line.text == "[glad][softly] Come in."


def test_a_mood_makes_the_later_lines_that_it_holds_in_another_sound_and_no_others() -> None:
    one, two = "The first sentence of it all.", "The second sentence of it all."
    plain, moody = jobs(f"{one} {two}\n\n{one}"), jobs(f"[glad] {one} {two}\n\n{one}")
    same = [a.key == b.key for a, b in zip(plain, moody, strict=True)]
    assert same == [False, False, True]


def test_a_mood_in_brackets_is_no_speaker() -> None:
    text = "[glad] Come in at once!\n[glad 0.5] And sit down here."
    assert script_of_text(text, moods=MOODS).speakers == ("",)
    assert script_of_text(text).speakers == ("glad", "glad 0.5")


def test_a_tag_that_is_closed_in_a_later_line_and_names_no_mood_is_in_neither() -> None:
    text = "[blue] The first sentence of it all. The second one of it all. [/blue]"
    assert [job.said for job in jobs(text)] == [
        "The first sentence of it all.", "The second one of it all.",
    ]  # fmt: skip
    texts = [job.request.text for job in jobs(text) if job.request]
    assert "blue" not in " ".join(texts)


def test_what_is_said_of_a_line_has_no_tags() -> None:
    planned = job("[soft] Come in. [laughs] [glad 0.5] Sit (gladly) down [1]. [/glad]")
    assert planned.said == "Come in. Sit down [1]."
    assert job("[glad] [/glad]").request is None


def test_no_tag_is_in_captions_names_and_titles(tmp_path: Path) -> None:
    script = script_of_text("[glad] Come in at once! [/glad] And sit down here.", moods=MOODS)
    planned = plan(script, {"": VOICE}, Delivery(), moods=MOODS)
    sounds = LineAudio(tmp_path)
    for each in planned:
        sounds.keep(each.key, np.ones(4800, np.int16))
    timeline = build_timeline(script, planned, sounds)
    captioned = captions(timeline)
    shown = " ".join([srt(captioned), vtt(captioned), *map(line_name, (1, 2), timeline.heard)])
    assert "Come in at once!" in shown
    assert "glad" not in shown
    assert title_of(script, MOODS).startswith("Come in at once!")


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
