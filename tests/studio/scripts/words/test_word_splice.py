"""Words of a line in its sound, and some of them exchanged: outside of them nothing changes."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
import soundfile

from engine import InvalidText, Pcm
from studio.scripts.words.line_words import line_words, word_at
from studio.scripts.words.word_splice import FADE, NONE, splice

TEACHER = Path(__file__).parents[2] / "word_times"


@pytest.fixture(scope="module")
def sentence() -> tuple[str, Pcm]:
    read = json.loads((TEACHER / "teacher.json").read_text())[1]
    start = json.loads((TEACHER / "teacher.json").read_text())[0]["samples"]
    sound, _ = soundfile.read(TEACHER / "teacher.ogg", dtype="int16")
    return read["text"], sound[start : start + read["samples"]]


def test_words_stand_in_the_text_and_follow_each_other_in_the_sound(
    sentence: tuple[str, Pcm],
) -> None:
    text, pcm = sentence
    tagged = f"[softly] {text} [pause 1s]"
    words = line_words(tagged, pcm)
    assert [tagged[each.start : each.stop] for each in words] == text.split()
    times = [moment for each in words for moment in (each.begins, each.ends)]
    assert times == sorted(times)
    assert times[-1] <= len(pcm)
    assert line_words(text, np.zeros(24_000, np.int16)) == []
    assert [each.start for each in line_words("你好 hello", pcm)] == [0, 1, 3]
    assert word_at(words, tagged.index("lp me")) == text.split().index("help")


def test_only_the_chosen_words_are_exchanged_and_joints_are_as_loud_as_said(
    sentence: tuple[str, Pcm],
) -> None:
    text, pcm = sentence
    start, stop = text.index("help"), text.index(" with")
    found = splice(text, pcm, -pcm, start, stop)  # the same moments, and told apart by their sign
    assert found.words in text
    assert "help me" in found.words
    assert len(found.words.split()) <= 2 + 4
    changed = np.flatnonzero(found.pcm != pcm[: len(found.pcm)])
    words = line_words(text, pcm)
    first, last = word_at(words, start), word_at(words, stop - 1)
    assert words[max(0, first - 3)].begins - FADE < changed[0] < words[first].ends
    assert len(found.pcm) == len(pcm) - 2 * FADE
    inside = slice(words[first].begins + 2400, words[last].ends - 2400)
    assert np.array_equal(found.pcm[inside], -pcm[inside.start + FADE : inside.stop + FADE])
    assert found.joint < 0


def test_whole_lines_have_no_joint_and_what_has_no_words_is_refused(
    sentence: tuple[str, Pcm],
) -> None:
    text, pcm = sentence
    whole = splice(text, pcm, -pcm, 0, len(text))
    assert np.array_equal(whole.pcm, -pcm)
    assert whole.joint == NONE
    with pytest.raises(InvalidText, match="told apart"):
        splice(text, pcm, np.zeros(2400, np.int16), 0, 5)


def test_words_near_the_beginning_stay_where_a_pause_parts_them(
    sentence: tuple[str, Pcm],
) -> None:
    """Before: the line's first two words and last two were always taken along."""
    text, pcm = sentence
    words = line_words(text, pcm)
    second, before_last = words[1], words[-2]
    paused = pcm.copy()
    for place in (1, len(words) - 1):  # a quiet moment before these words
        moment = (words[place - 1].ends + words[place].begins) // 2
        paused[moment - 1200 : moment + 1200] = 0
    found = splice(text, paused, -paused, second.start, before_last.stop)
    assert found.words == text[second.start : before_last.stop]
    assert found.joint < -40
