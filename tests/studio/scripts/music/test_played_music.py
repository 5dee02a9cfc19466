"""What is played is what is exported as spoken, to the sample."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from engine import Pcm
from studio.context import Studio
from studio.scripts.music.bed import Bed
from studio.scripts.music.reel import Samples
from studio.scripts.rendering.playback import ScriptPlayback
from studio.scripts.rendering.script_music import ScriptMusic
from studio.ui.tabs.script.handlers import ScriptTab
from tests.studio.scripts.music.test_script_music import Reader, exported
from tests.support.script_tab_makers import spoken, whole
from tests.support.tab_makers import heard, payloads_of


@pytest.fixture
def music(studio: Studio) -> ScriptMusic:
    return ScriptMusic(studio.scripts, Reader())


def played(playback: ScriptPlayback, number: str, **start: Any) -> np.ndarray[Any, Any]:
    payloads = payloads_of(playback.speak(number, True, **start))
    return np.frombuffer(heard([each for each in payloads if each]), np.int16)


@pytest.fixture
def with_music(studio: Studio, number: str, music: ScriptMusic) -> str:
    """Two pieces: under all, and under some lines, loud enough to be limited."""
    lines = studio.scripts.open(number).script.lines
    music.add(number, Path("a.mp3"), {"level": 0.0, "fade_out": 1.0})
    values = {"over": "lines", "first": lines[1].id, "last": lines[3].id, "level": 6.0}
    music.add(number, Path("other.mp3"), values)
    return number


def test_playback_while_it_is_made_equals_the_export(
    studio: Studio, with_music: str, tmp_path: Path
) -> None:
    made = played(studio.playback, with_music)
    mixed = exported(studio.scripts.open(with_music), tmp_path, loudness=None)
    assert len(made) == len(mixed)
    assert np.array_equal(made, mixed)


def test_playback_from_the_middle_goes_on_in_the_music(
    studio: Studio, with_music: str, tab: ScriptTab, tmp_path: Path
) -> None:
    spoken(tab, with_music, aloud=False)
    opened = studio.scripts.open(with_music)
    mixed = exported(opened, tmp_path, loudness=None)
    line = opened.script.lines[3].id
    rest = played(studio.playback, with_music, start=line)
    same = mixed[len(mixed) - len(rest) :]
    after = 800  # samples, in which an export's limiter still knows what was before
    assert np.abs(rest[after:].astype(int) - same[after:]).max() <= 1


def test_missing_music_is_left_out_of_what_is_heard(
    studio: Studio, number: str, music: ScriptMusic, tab: ScriptTab
) -> None:
    opened = music.add(number, Path("a.mp3"), {})
    assert opened.sounds
    opened.sounds.drop(opened.project.cues[0].sound)
    spoken(tab, number, aloud=False)
    pcm = played(studio.playback, number)
    assert pcm.tobytes() == whole(tab, number)


def test_no_music_is_mixed_on_the_event_loop(
    studio: Studio, with_music: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Neither under lines nor while it fades out; a fade of 30 s would hold up all visitors."""
    threads, mix = [], Bed._mixed

    def watched(self: Bed, speech: Pcm) -> Samples:
        threads.append(threading.current_thread())
        return mix(self, speech)

    monkeypatch.setattr(Bed, "_mixed", watched)
    played(studio.playback, with_music)  # whose loop is this thread's
    assert threads
    assert threading.current_thread() not in threads
