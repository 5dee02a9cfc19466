"""Deletes the data of guests after some days, starred or not, empties trash, runs work regularly.

It looks at folders and their age, and at takes.
"""

from __future__ import annotations

import logging
import shutil
import threading
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Final

from engine import Library
from studio.settings import StudioSettings
from studio.takes.take_store import DAY, Keeping, Takes
from studio.ui.context import Studio

HOUR: Final = 3600.0
TRASH_DAYS: Final = 30  # for which a deleted voice or take can be restored
FOLDERS: Final = ("visitors", "scripts")  # of the guests; each has one folder per visitor

log = logging.getLogger(__name__)


def tidy(guests: Path, takes: Takes, days: float) -> int:
    """Delete older data; returns the number of folders and takes."""
    gone = takes.tidy(Keeping(most=None, days=days, trash_days=days, stars=False))
    before = time.time() - days * DAY
    for folder in _folders(guests):
        if _changed(folder) < before:
            shutil.rmtree(folder, ignore_errors=True)
            gone += 1
    return gone


def start_upkeep(studio: Studio, settings: StudioSettings) -> None:
    """Run daily what the tabs want deleted regularly."""
    for work in studio.upkeep:
        every(DAY, partial(work, settings))


def empty_trash(library: Library, settings: StudioSettings) -> None:
    """Remove voices that were deleted long ago, every hour; guests' go with their folders."""
    if not settings.guests:
        every(HOUR, partial(library.purge, TRASH_DAYS * DAY))


def every(seconds: float, work: Callable[[], object]) -> threading.Thread:
    """Run work now and then regularly, in a thread."""

    def run() -> None:
        while True:
            try:
                work()
            except Exception:
                log.exception("old data could not be removed")
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
    """The latest modification time in a folder."""
    times = [folder.stat().st_mtime]
    for path in folder.rglob("*"):
        try:
            times.append(path.lstat().st_mtime)
        except FileNotFoundError:
            continue
    return max(times)
