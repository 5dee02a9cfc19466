"""Music in a store's scripts: kept, copied, carried, undone; in exports, as loud as wanted."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import soundfile

from engine import SAMPLE_RATE, InvalidSetting, InvalidText, Pcm, TimbreError, Waveform
from studio.context import Studio
from studio.scripts import Projects
from studio.scripts.export.limiter import CEILING, true_peaks
from studio.scripts.export.script_files import ExportOptions, check_export, export
from studio.scripts.music.cue import MOST_CUES, Cue, lines_under
from studio.scripts.open_script import OpenScript
from studio.scripts.rendering.script_music import ScriptMusic, preview
from studio.ui.tabs.script.handlers import ScriptTab
from tests.support.script_tab_makers import act, spoken, whole

SECOND = SAMPLE_RATE


class Reader:
    """Noise for any file, other noise for another."""

    def music(self, path: Path) -> Pcm:
        random = np.random.default_rng(len(path.name))
        return (random.normal(0, 3000, 4 * SECOND)).astype(np.int16)


@pytest.fixture
def music(studio: Studio) -> ScriptMusic:
    return ScriptMusic(studio.scripts, Reader())


def loudness_of(sound: Waveform) -> float:
    import pyloudnorm  # which loads half of scipy

    return float(pyloudnorm.Meter(SAMPLE_RATE).integrated_loudness(sound))


def cues(studio: Studio, number: str) -> tuple[Cue, ...]:
    return studio.scripts.open(number).project.cues


def exported(opened: OpenScript, folder: Path, **options: Any) -> Pcm:
    chosen = ExportOptions("wav", **options)
    check_export(opened, chosen)
    path = export(opened, chosen, folder, lambda *_: None)[0]
    return soundfile.read(path, dtype="int16")[0]


def test_it_is_added_changed_removed_and_each_is_undone_by_name(
    studio: Studio, number: str, music: ScriptMusic
) -> None:
    store = studio.scripts
    before = store.open(number).project
    opened = music.add(number, Path("Rain in may.mp3"), {"level": -3.0})
    [cue] = opened.project.cues
    assert (cue.name, cue.level, cue.over) == ("Rain in may.mp3", -3.0, "script")
    assert opened.sounds
    assert opened.sounds.samples(cue.sound) == 4 * SECOND
    assert str(store.undone_next(number)) == "the music “Rain in may.mp3”"
    lines = opened.script.lines
    values = {"over": "lines", "first": lines[1].id, "last": lines[2].id, "fade_in": 4.0}
    [moved] = music.change(number, cue.id, values).project.cues
    assert lines_under(moved, opened.script) == range(1, 3)
    assert (moved.level, moved.fade_in, moved.sound) == (-3.0, 4.0, cue.sound)
    assert music.remove(number, cue.id).project.cues == ()
    assert store.undo(number).project.cues == (moved,)
    assert store.undo(number).project.cues == (cue,)
    again = store.undo(number).project
    assert (again.cues, again.script) == ((), before.script)


def test_what_cannot_be_is_refused(studio: Studio, number: str, music: ScriptMusic) -> None:
    with pytest.raises(InvalidText, match="Write a text first"):
        music.add("", Path("a.mp3"), {})
    [cue] = music.add(number, Path("a.mp3"), {}).project.cues
    for values in ({"level": 40.0}, {"fade_in": -1.0}, {"over": "lines"}, {"over": "nothing"}):
        with pytest.raises(InvalidSetting):
            music.change(number, cue.id, values)
    with pytest.raises(InvalidText, match="gone"):
        music.remove(number, 99)
    for _ in range(MOST_CUES - 1):
        music.add(number, Path("a.mp3"), {})
    with pytest.raises(InvalidText, match=str(MOST_CUES)):
        music.add(number, Path("a.mp3"), {})
    assert [each.id for each in cues(studio, number)] == [*range(MOST_CUES)]
    sounds = studio.scripts.open(number).sounds
    assert sounds
    assert len(sounds.keys()) == 1  # one file, however often it is used


def test_it_stays_with_its_lines(
    studio: Studio, number: str, music: ScriptMusic, tab: ScriptTab
) -> None:
    lines = studio.scripts.open(number).script.lines
    values = {"over": "lines", "first": lines[2].id, "last": lines[4].id}
    music.add(number, Path("a.mp3"), values)
    act(tab, number, do="remove", line=lines[2].id)
    act(tab, number, do="remove", line=lines[0].id)
    [cue] = cues(studio, number)
    assert (cue.first, cue.last) == (lines[3].id, lines[4].id)
    studio.scripts.undo(number)
    studio.scripts.undo(number)
    assert (cues(studio, number)[0].first, cues(studio, number)[0].last) == (
        lines[2].id,
        lines[4].id,
    )


def test_a_copy_and_a_project_file_carry_it(
    studio: Studio, number: str, music: ScriptMusic, tmp_path: Path
) -> None:
    store = studio.scripts
    opened = music.add(number, Path("a.mp3"), {})
    [cue] = opened.project.cues
    copied = store.fork(number, "Anna: Other words.")
    assert copied.project.cues == (cue,)
    assert copied.music
    assert not copied.music.missing
    file = store.save_project(number, tmp_path, "own")
    back = store.receive(file)
    assert back.project.cues == (cue,)
    assert back.music
    assert opened.sounds
    assert np.array_equal(back.music.sounds.read(cue.sound), opened.sounds.read(cue.sound))


def test_what_is_missing_is_told_by_an_export(
    studio: Studio, number: str, music: ScriptMusic, tab: ScriptTab, tmp_path: Path
) -> None:
    spoken(tab, number, aloud=False)
    opened = music.add(number, Path("Rain.mp3"), {})
    [cue] = opened.project.cues
    assert opened.sounds
    opened.sounds.drop(cue.sound)
    with pytest.raises(TimbreError, match=r"Rain\.mp3"):
        check_export(studio.scripts.open(number), ExportOptions("wav"))
    check_export(studio.scripts.open(number), ExportOptions("wav", by_line=True))
    with pytest.raises(TimbreError, match=r"Rain\.mp3"):
        preview(studio.scripts.open(number), cue)
    exported(music.remove(number, cue.id), tmp_path)


def test_it_is_deleted_once_it_is_unused(
    studio: Studio, number: str, music: ScriptMusic, tmp_path: Path
) -> None:
    [cue] = music.add(number, Path("a.mp3"), {}).project.cues
    sounds = studio.scripts.open(number).sounds
    assert sounds
    studio.scripts.tidy(superseded_days=0)
    assert cue.sound in sounds
    music.remove(number, cue.id)
    studio.scripts.tidy(superseded_days=0)
    assert cue.sound in sounds  # Undo brings it back
    projects = Projects(tmp_path / "scripts")
    assert projects.superseded(number, set(), 0) == {cue.sound}


def voiced(studio: Studio, number: str) -> OpenScript:
    """The script with noise in syllables for all lines, which has a loudness."""
    opened = studio.scripts.open(number)
    assert opened.sounds
    random = np.random.default_rng(3)
    for job in opened.jobs:
        time = np.arange(3 * SECOND) / SECOND
        noise = random.normal(0, 1, len(time)) * np.maximum(0, np.sin(2 * np.pi * 3 * time)) ** 2
        if job.key:
            opened.sounds.keep(job.key, np.rint(noise * 1500).astype(np.int16))
    return opened


@pytest.mark.parametrize("wanted", [-16.0, -23.0])
@pytest.mark.parametrize("level", [-8.0, 6.0])
def test_the_whole_is_as_loud_as_wanted_and_below_the_ceiling(
    studio: Studio, number: str, music: ScriptMusic, tmp_path: Path, wanted: float, level: float
) -> None:
    voiced(studio, number)
    opened = music.add(number, Path("a.mp3"), {"level": level, "ducking": 3.0})
    pcm = exported(opened, tmp_path, loudness=wanted, texts=False)
    loudness = loudness_of(pcm / 32768.0)
    assert loudness == pytest.approx(wanted, abs=0.5)
    assert true_peaks(pcm / 32768.0).max() <= 10 ** ((CEILING + 0.1) / 20)


def test_speech_stays_as_far_above_the_music_as_the_level_says(
    studio: Studio, number: str, music: ScriptMusic, tmp_path: Path
) -> None:
    """As loud as the target asks, whatever the speech was: in a pause and after the end."""
    voiced(studio, number)
    values = {"level": -12.0, "ducking": 0.0, "fade_out": 6.0, "fade_in": 0.0}
    opened = music.add(number, Path("a.mp3"), values)
    pcm = exported(opened, tmp_path, loudness=-19.0, texts=False) / 32768.0
    length = len(whole(ScriptTab(studio), number)) // 2
    assert len(pcm) > length  # its tail
    under = loudness_of(pcm[length - 2 * SECOND // 10 : length + 4 * SECOND // 10])
    assert under == pytest.approx(-31.0, abs=1.5)


def test_without_music_nothing_changes(
    studio: Studio, number: str, music: ScriptMusic, tab: ScriptTab, tmp_path: Path
) -> None:
    spoken(tab, number, aloud=False)
    plain = exported(studio.scripts.open(number), tmp_path, loudness=None)
    assert plain.tobytes() == whole(tab, number)
    [cue] = music.add(number, Path("a.mp3"), {"fade_out": 2.0}).project.cues
    mixed = exported(studio.scripts.open(number), tmp_path, loudness=None)
    assert len(mixed) > len(plain)
    music.remove(number, cue.id)
    again = exported(studio.scripts.open(number), tmp_path, loudness=None)
    assert np.array_equal(again, plain)


def test_a_preview_is_the_beginning_of_the_mix(
    studio: Studio, number: str, music: ScriptMusic, tab: ScriptTab, tmp_path: Path
) -> None:
    opened = music.add(number, Path("a.mp3"), {})
    [cue] = opened.project.cues
    alone = preview(opened, cue)
    assert len(alone) == 10 * SECOND
    assert alone.any()
    spoken(tab, number, aloud=False)
    opened = studio.scripts.open(number)
    mixed = exported(opened, tmp_path, loudness=None)
    heard = preview(opened, cue)
    assert 0 < len(heard) <= 10 * SECOND
    same = len(heard) - SECOND  # its limiter looks no further than it plays
    assert np.abs(heard[:same].astype(int) - mixed[:same]).max() <= 1


def test_a_preview_under_lines_that_are_not_spoken_is_the_music_alone(
    studio: Studio, number: str, music: ScriptMusic, tab: ScriptTab
) -> None:
    spoken(tab, number, aloud=False)
    opened = studio.scripts.open(number)
    assert opened.sounds
    _, second, third, *_ = (line.id for line in opened.script.lines)
    for line in (second, third):
        opened.sounds.drop(opened.job(line).key)
    values = {"over": "lines", "first": second, "last": third, "fade_out": 0.0}
    opened = music.add(number, Path("a.mp3"), values)
    [cue] = opened.project.cues
    heard = preview(opened, cue)
    assert len(heard) == 10 * SECOND
    assert np.abs(heard[5 * SECOND :].astype(int)).mean() > 100
