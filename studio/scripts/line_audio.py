"""The sounds of a project's lines, by key. A sound is whole or not there.

One FLAC file a sound, named by its key, appears with a rename when all of it is on the disk:
what a crash interrupts never takes the name. This module knows no scripts and no engine.
"""

from __future__ import annotations

import threading
from collections.abc import Collection
from contextlib import suppress
from pathlib import Path

import numpy as np

from engine import SAMPLE_RATE, InvalidAudio, Pcm, explain_write_errors, save_sound
from studio.storage import count_samples, is_safe_id, plain_files, read_sound, sweep_unfinished

SUFFIX = ".flac"


class LineAudio:
    """Sounds in a folder. Any thread."""

    def __init__(self, folder: Path) -> None:
        with explain_write_errors(folder):
            folder.mkdir(parents=True, exist_ok=True)
        sweep_unfinished(folder)
        self._folder = folder
        self._lock = threading.Lock()
        found = (path.name[: -len(SUFFIX)] for path in plain_files(folder, SUFFIX))
        self._samples: dict[str, int | None] = dict.fromkeys(found)  # None: not counted yet

    def __contains__(self, key: object) -> bool:
        with self._lock:
            return key in self._samples

    def keep(self, key: str, pcm: Pcm) -> None:
        """Write a sound; when this returns it survives a crash."""
        save_sound(self.path(key), pcm)
        with self._lock:
            self._samples[key] = len(pcm)

    def read(self, key: str) -> Pcm:
        """The samples under a key. Raises InvalidAudio when they are gone or damaged."""
        try:
            return read_sound(self.path(key))
        except (OSError, RuntimeError) as error:
            self._forget(key)
            raise InvalidAudio("The sound of this line is gone. Speak the line again.") from error

    def samples(self, key: str) -> int:
        """How long a kept sound is; 0 when there is none."""
        with self._lock:
            known = self._samples.get(key, 0)
        if known is None:
            known = self._count(key)
        return known

    def path(self, key: str) -> Path:
        if not is_safe_id(key):
            raise InvalidAudio("This is no key of a sound.")
        return self._folder / f"{key}{SUFFIX}"

    def drop_all_but(self, keys: Collection[str]) -> int:
        """Delete the sounds that nothing refers to any more; how many."""
        with self._lock:
            unused = [key for key in self._samples if key not in keys]
        for key in unused:
            self._forget(key)
            with suppress(OSError):
                self.path(key).unlink()
        return len(unused)

    def _count(self, key: str) -> int:
        try:
            counted = count_samples(self.path(key))
        except (OSError, RuntimeError):
            self._forget(key)
            return 0
        with self._lock:
            if key in self._samples:
                self._samples[key] = counted
        return counted

    def _forget(self, key: str) -> None:
        with self._lock:
            self._samples.pop(key, None)


def silence(seconds: float) -> Pcm:
    return np.zeros(round(seconds * SAMPLE_RATE), np.int16)
