"""The Music section, as a page presses it."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from studio.context import Studio
from studio.ui.tabs.script.handlers import ScriptTab
from studio.ui.tabs.script.music import MusicSection
from tests.support.script_tab_makers import spoken
from tests.support.tab_makers import heard, recording, told


@pytest.fixture
def section(studio: Studio) -> MusicSection:
    return MusicSection(studio)


def test_a_file_is_added_placed_heard_and_removed(
    studio: Studio, section: MusicSection, tab: ScriptTab, number: str, tmp_path: Path
) -> None:
    menu, editor, known, *fields = section.add(number, str(recording(tmp_path / "Rain.wav")))
    assert menu["choices"] == [("Rain.wav", 0)]
    assert editor["visible"]
    lines = studio.scripts.open(number).script.lines
    assert fields[:3] == ["script", 1, len(lines)]
    section.change(number, 0, known, "lines", 2, 3, -6, 9, 0.5, 1.5, False)
    [cue] = studio.scripts.open(number).project.cues
    assert (cue.first, cue.last, cue.level, cue.loop) == (lines[1].id, lines[2].id, -6, False)
    assert list(section.show(number, 0)[3:6]) == ["lines", 2, 3]
    with pytest.warns(UserWarning, match="from 1 to"):
        section.change(number, 0, known, "lines", 2, 3000, -6, 9, 0.5, 1.5, False)
    assert studio.scripts.open(number).project.cues == (cue,)
    spoken(tab, number, aloud=False)
    pcm = np.frombuffer(heard(told(section.listen(number, 0))), np.int16)
    assert pcm.any()
    menu, editor, *_ = section.remove(number, 0)
    assert menu["choices"] == []
    assert not editor["visible"]
    assert studio.scripts.undo(number).project.cues == (cue,)


def test_a_field_that_nobody_touched_keeps_what_undo_brought_back(
    studio: Studio, section: MusicSection, number: str, tmp_path: Path
) -> None:
    added = section.add(number, str(recording(tmp_path / "Rain.wav")))
    _, _, known, *fields = added
    louder = [*fields]
    louder[3] = 2
    _, _, known, *fields = section.change(number, 0, known, *louder)
    studio.scripts.undo(number)
    longer = [*fields]
    longer[5] = 7.5  # the page still shows a level of 2
    section.change(number, 0, known, *longer)
    [cue] = studio.scripts.open(number).project.cues
    assert (cue.level, cue.fade_in) == (-8.0, 7.5)
