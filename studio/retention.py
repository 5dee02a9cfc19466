"""What is deleted, and when: by age, from the stores of a data folder.

The server starts it, whatever it serves. What was deleted stays in the trash for TRASH_DAYS; what
guests have made is deleted after some days, starred or not. Samples of voices, which may have been
deleted, go by their age, recordings whose training was never made after a day. Knows stores and no
page.
"""

from __future__ import annotations

import logging
import shutil
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from engine import Library
from studio.scripts.projects import Projects
from studio.scripts.store import ScriptStore
from studio.settings import StudioSettings
from studio.takes import voice_samples
from studio.takes.take_store import DAY, Keeping, Takes
from studio.voices import reading, voice_training

HOUR: Final = 3600.0
TRASH_DAYS: Final = 30  # for which a deleted voice, take or script can be restored
VISITORS: Final = "visitors"  # of the guests' folder; one folder of voices per visitor
FOLDERS: Final = (VISITORS, "scripts")  # older servers stored scripts in the same way

log = logging.getLogger("timbre")


def guests_folder(data: Path) -> Path:
    """The folder of all guests' data."""
    return data / "guests"


def open_takes(settings: StudioSettings) -> Takes:
    """The take store; with guests a separate one, whose takes are deleted after some days."""
    place = guests_folder(settings.data) if settings.guests else settings.data
    return Takes(place / "takes")


@dataclass(frozen=True)
class Retention:
    """The rules of one data folder. `takes`, `scripts`: the stores that the server has open."""

    settings: StudioSettings
    library: Library  # the operator's; guests have folders
    takes: Takes | None = None
    scripts: ScriptStore | None = None

    def start(self) -> None:
        """Tidy now and every hour, in threads; the audio of scripts once a day."""
        self.settings.data.mkdir(parents=True, exist_ok=True)
        for work in (
            self.tidy_voices,
            self.tidy_samples,
            self.tidy_trainings,
            self.tidy_takes,
            self.tidy_scripts,
            self.tidy_guests,
        ):
            every(HOUR, work)
        every(DAY, self.tidy_script_audio)

    def tidy_voices(self) -> None:
        """Remove voices that were deleted long ago."""
        self.library.purge(TRASH_DAYS * DAY)

    def tidy_samples(self) -> None:
        """Remove samples of voices as early as a voice deleted when they were made is removed."""
        days = min(TRASH_DAYS, self.settings.guest_days) if self.settings.guests else TRASH_DAYS
        voice_samples.remove_older(self.settings.data / voice_samples.FOLDER, days)

    def tidy_trainings(self) -> None:
        """Remove recordings that a killed process left half prepared, and what was read on the page
        and not trained for as long as something deleted is kept."""
        voice_training.remove_unfinished(self.settings.data, DAY)
        reading.remove_abandoned(self.settings.data, TRASH_DAYS * DAY)

    def tidy_takes(self) -> None:
        """Remove takes that were deleted long ago, also where no page has them open."""
        folder = self.settings.data / "takes"
        if self.takes and not self.settings.guests:
            self.takes.tidy(Keeping(most=None, trash_days=TRASH_DAYS))
        elif folder.is_dir():
            Takes(folder).tidy(Keeping(most=None, trash_days=TRASH_DAYS))

    def tidy_scripts(self) -> None:
        """Remove scripts that were deleted long ago."""
        folder = self.settings.data / "scripts"
        if folder.is_dir():
            Projects(folder).purge(TRASH_DAYS * DAY)

    def tidy_script_audio(self) -> None:
        """Remove audio of scripts that nothing has used for long; it needs the voices."""
        if self.scripts:
            self.scripts.tidy(self.settings.superseded_days)

    def tidy_guests(self) -> None:
        """Remove what guests made before their days, also where none are served any more."""
        folder = guests_folder(self.settings.data)
        if folder.is_dir():
            takes = self.takes if self.takes and self.settings.guests else Takes(folder / "takes")
            tidy(folder, takes, self.settings.guest_days)


def tidy(guests: Path, takes: Takes, days: float) -> int:
    """Delete older data of guests; returns the number of folders, voices and takes."""
    gone = takes.tidy(Keeping(most=None, days=days, trash_days=days, stars=False))
    before = time.time() - days * DAY
    for folder in _folders(guests):
        if _changed(folder) < before:
            shutil.rmtree(folder, ignore_errors=True)
            gone += 1
        elif folder.parent.name == VISITORS:  # a returning guest's trash
            gone += Library(folder).purge(days * DAY)
    return gone


def every(seconds: float, work: Callable[[], object]) -> threading.Thread:
    """Run work now and then regularly, in a thread."""

    def run() -> None:
        while True:
            try:
                work()
            except Exception:
                log.exception("Old data could not be removed.")
            time.sleep(seconds)

    thread = threading.Thread(target=run, name="timbre-tidy", daemon=True)
    thread.start()
    return thread


def _folders(guests: Path) -> Iterator[Path]:
    for name in FOLDERS:
        for folder in (guests / name).glob("*"):
            if folder.is_dir() and not folder.is_symlink():
                yield folder


def _changed(folder: Path) -> float:
    """The latest modification time in a folder; now, if it is gone."""
    times = []
    for path in (folder, *folder.rglob("*")):
        try:
            times.append(path.lstat().st_mtime)
        except FileNotFoundError:
            continue
    return max(times, default=time.time())
