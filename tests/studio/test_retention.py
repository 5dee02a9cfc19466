"""What was deleted long ago leaves the disk, whatever the server serves."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from engine import Clone, Library
from studio import retention
from studio.retention import Retention, guests_folder, open_takes, tidy
from studio.scripts import Casting, Project, Projects, script_of_text
from studio.scripts.store import ScriptStore
from studio.settings import StudioSettings
from studio.takes.take_store import DAY, Keeping, Takes
from studio.voices import voice_training
from tests.support.serving import wait_until
from tests.support.tab_makers import make_studio

VOICE = Clone(np.ones(8, np.float32))
LONG_AGO = time.time() - 90 * DAY


def age(folder: Path, days: float) -> None:
    before = time.time() - days * DAY
    for path in (*folder.rglob("*"), folder):
        os.utime(path, (before, before))


@pytest.fixture
def settings(tmp_path: Path) -> StudioSettings:
    return StudioSettings(data=tmp_path, guests=True, page=False)


def guest(settings: StudioSettings, name: str) -> Library:
    return Library(guests_folder(settings.data) / "visitors" / name)


def test_what_guests_saved_goes_where_the_page_is_off(settings: StudioSettings) -> None:
    old, fresh = guest(settings, "old"), guest(settings, "fresh")
    for each in (old, fresh):
        each.save("Anna", VOICE, consent=True)
    age(old.folder, 90)
    Retention(settings, Library(settings.data / "voices")).start()
    wait_until(lambda: not old.folder.exists())
    assert [each.name for each in fresh.list()] == ["Anna"]


@pytest.mark.parametrize(("guests", "gone"), [(False, {"old"}), (True, {"old", "week"})])
def test_samples_of_voices_go_as_early_as_a_deleted_voice(
    tmp_path: Path, guests: bool, gone: set[str]
) -> None:
    folder = tmp_path / "samples"
    folder.mkdir()
    for name, days in (("old", 31), ("week", 8), ("new", 1)):
        (folder / f"{name}.flac").touch()
        before = time.time() - days * DAY
        os.utime(folder / f"{name}.flac", (before, before))
    settings = StudioSettings(data=tmp_path, guests=guests, guest_days=7, page=False)
    Retention(settings, Library(tmp_path / "voices")).tidy_samples()
    assert {path.stem for path in folder.glob("*")} == {"old", "week", "new"} - gone


def test_recordings_of_a_training_that_was_never_made_go(settings: StudioSettings) -> None:
    place = settings.data / voice_training.FOLDER
    killed, young, made, copied = (place / name for name in ("a" * 12, "b" * 12, "c" * 12, "mine"))
    for folder in (killed, young, made, copied):
        (folder / "segments").mkdir(parents=True)
        (folder / "segments" / "0000.wav").write_bytes(b"a person's")
    (made / "job.json").write_bytes(b"{}")
    for folder in (killed, made, copied):
        age(folder, 2)
    Retention(settings, Library(settings.data / "voices")).tidy_trainings()
    assert sorted(place.iterdir()) == [young, made, copied]


def test_the_trash_of_a_guest_who_keeps_coming_back_is_emptied(
    settings: StudioSettings, monkeypatch: pytest.MonkeyPatch
) -> None:
    mine, emptied = guest(settings, "mine"), dict[Path, float]()
    mine.save("New", VOICE, consent=True)
    monkeypatch.setattr(
        Library, "purge", lambda self, older: emptied.update({self.folder: older}) or 1
    )
    takes = Takes(guests_folder(settings.data) / "takes")
    assert tidy(guests_folder(settings.data), takes, days=7) == 1
    assert emptied == {mine.folder: 7 * DAY}


@pytest.mark.parametrize("guests", [False, True])
def test_what_was_deleted_leaves_the_disk(
    tmp_path: Path, guests: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also what was made before the server served guests, or without the page."""
    monkeypatch.setattr(retention, "TRASH_DAYS", 0)  # a voice's time is the file system's
    settings = StudioSettings(data=tmp_path, guests=guests, page=False)
    library = Library(tmp_path / "voices")
    library.delete(library.save("Anna", VOICE, consent=True).id)
    takes = Takes(tmp_path / "takes", clock=lambda: LONG_AGO)
    takes.delete(takes.add(np.zeros(10, np.int16), "old", "ryan", 1).id)
    scripts = Projects(tmp_path / "scripts", clock=lambda: LONG_AGO)
    scripts.delete(
        scripts.create(Project(script=script_of_text("Hello."), casting=Casting(default="ryan")))
    )
    kept = Retention(settings, library)
    for work in (kept.tidy_voices, kept.tidy_takes, kept.tidy_scripts, kept.tidy_guests):
        work()
    assert [*tmp_path.rglob("*.safetensors"), *tmp_path.rglob("*.flac")] == []
    assert [*tmp_path.rglob("project.json")] == []


def test_the_store_that_the_page_has_open_is_tidied_itself(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = StudioSettings(data=tmp_path)
    takes = open_takes(settings)
    tidied: list[Keeping] = []
    monkeypatch.setattr(takes, "tidy", tidied.append)
    kept = Retention(settings, Library(tmp_path / "voices"), takes)
    kept.tidy_takes()
    kept.tidy_guests()
    assert [each.days for each in tidied] == [None]


def test_unused_audio_of_scripts_is_removed_once_a_day(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    done: list[tuple[float, Any]] = []
    monkeypatch.setattr(retention, "every", lambda seconds, work: done.append((seconds, work)))
    settings = StudioSettings(data=tmp_path, superseded_days=3)
    studio = make_studio(tmp_path)
    tidied: list[float] = []
    monkeypatch.setattr(ScriptStore, "tidy", lambda self, days: tidied.append(days))
    Retention(settings, studio.library, studio.takes, studio.scripts).start()
    for seconds, work in done:
        if seconds == DAY:
            work()
    assert tidied == [3]
