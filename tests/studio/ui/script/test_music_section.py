"""The Music section, as a page presses it."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import gradio as gr
import numpy as np
import pytest

from engine import SAMPLE_RATE
from studio.context import Studio
from studio.imports.music_file import LONGEST
from studio.scripts.music.cue import lines_under
from studio.ui.tabs.script.handlers import ScriptTab
from studio.ui.tabs.script.music import Fields, MusicSection
from tests.support.script_tab_makers import spoken
from tests.support.tab_makers import heard, payloads_of, recording


@pytest.fixture
def section(studio: Studio) -> MusicSection:
    return MusicSection(studio)


def values(updates: Sequence[Any], fields: Sequence[Any]) -> Fields:
    """What is in the fields of a page that had these, after an answer."""
    pairs = zip(updates, fields, strict=True)
    return Fields(*(each.get("value", had) for each, had in pairs))


def test_a_file_is_added_placed_heard_and_removed(
    studio: Studio, section: MusicSection, tab: ScriptTab, number: str, tmp_path: Path
) -> None:
    menu, editor, known, *shown = section.add(number, str(recording(tmp_path / "Rain.wav")))
    assert menu["choices"] == [("Rain.wav", 0)]
    assert editor["visible"]
    fields = values(shown, known)
    lines = studio.scripts.open(number).script.lines
    assert fields[:4] == ("script", 0, 1, len(lines))
    wanted = Fields("lines", 0, 2, 3, -6, 9, 0.5, 1.5, False)
    _, _, known, *shown = section.change(number, 0, known, *wanted)
    [cue] = studio.scripts.open(number).project.cues
    assert (cue.first, cue.last, cue.level, cue.loop) == (lines[1].id, lines[2].id, -6, False)
    assert values(shown, wanted) == wanted == known
    assert [each["visible"] for each in shown[1:4]] == [False, True, True]
    with pytest.warns(UserWarning, match="from 1 to"):
        section.change(number, 0, known, *wanted._replace(last=3000))
    assert studio.scripts.open(number).project.cues == (cue,)
    spoken(tab, number, aloud=False)
    pcm = np.frombuffer(heard(payloads_of(section.listen(number, 0))), np.int16)
    assert pcm.any()
    menu, editor, *_ = section.remove(number, 0)
    assert menu["choices"] == []
    assert not editor["visible"]
    assert studio.scripts.undo(number).project.cues == (cue,)


def test_a_chapter_is_chosen_by_its_title(
    studio: Studio, section: MusicSection, tmp_path: Path
) -> None:
    text = "Before it all.\n\n# The Sea\n\nIt was cold.\n\n# The Land\n\nIt was warm.\n\nAnd dry."
    opened = studio.scripts.read("", text)
    number, script = opened.number, opened.script
    _, _, known, *shown = section.add(number, str(recording(tmp_path / "Rain.wav")))
    titles = dict(shown[1]["choices"])
    assert [*titles] == ["Beginning", "The Sea", "The Land"]
    wanted = values(shown, known)._replace(over="chapter", chapter=titles["The Land"])
    _, _, known, *shown = section.change(number, 0, known, *wanted)
    [cue] = studio.scripts.open(number).project.cues
    under = [script.lines[place].text for place in lines_under(cue, script)]
    assert under == ["The Land", "It was warm.", "And dry."]
    assert values(shown, wanted).first == len(script.lines) - 2
    assert [each["visible"] for each in shown[1:4]] == [True, False, False]


def test_what_undo_brought_back_is_shown_and_what_is_typed_stays(
    studio: Studio, section: MusicSection, number: str, tmp_path: Path
) -> None:
    _, _, known, *shown = section.add(number, str(recording(tmp_path / "Rain.wav")))
    fields = values(shown, known)
    louder = fields._replace(level=2)
    _, _, known, *shown = section.change(number, 0, known, *louder)
    studio.scripts.undo(number)
    typing = values(shown, louder)._replace(last=1)  # not saved yet
    _, _, known, *shown = section.show(number, 0, known)  # as the page asks, told of the change
    now = values(shown, typing)
    assert (now.level, now.last) == (fields.level, 1)
    section.change(number, 0, known, *now._replace(fade_in=7.5))
    [cue] = studio.scripts.open(number).project.cues
    assert (cue.level, cue.fade_in) == (fields.level, 7.5)


def test_a_field_that_nobody_touched_keeps_what_undo_brought_back(
    studio: Studio, section: MusicSection, number: str, tmp_path: Path
) -> None:
    """Also where the page has not yet heard of it."""
    _, _, known, *shown = section.add(number, str(recording(tmp_path / "Rain.wav")))
    louder = values(shown, known)._replace(level=2)
    _, _, known, *shown = section.change(number, 0, known, *louder)
    studio.scripts.undo(number)
    longer = values(shown, louder)._replace(fade_in=7.5)  # the page still shows a level of 2
    _, _, known, *shown = section.change(number, 0, known, *longer)
    [cue] = studio.scripts.open(number).project.cues
    assert (cue.level, cue.fade_in) == (-8.0, 7.5)
    assert values(shown, longer).level == -8.0


def test_long_music_is_cut_and_that_is_told(
    studio: Studio, section: MusicSection, number: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    infos: list[str] = []
    monkeypatch.setattr(gr, "Info", lambda message, **_: infos.append(message))
    hours = np.tile(np.arange(-8000, 8000, dtype=np.int16), 1800)[: round(LONGEST * SAMPLE_RATE)]
    monkeypatch.setattr(studio.music._reader, "music", lambda path: hours)
    section.add(number, "/tmp/A night of rain.mp3")
    assert infos == ["“A night of rain.mp3” lasts longer: its first 10 minutes are used."]
