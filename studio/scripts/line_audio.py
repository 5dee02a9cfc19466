"""The audio of a project's lines by key.

Each is a FLAC file named by its key, written atomically, so it is complete or missing. This module
knows no scripts and no engine.
"""

from __future__ import annotations

import threading
from pathlib import Path

import numpy as np

from engine import SAMPLE_RATE, InvalidAudio, Pcm, explain_write_errors, save_sound
from studio.storage import count_samples, is_safe_id, plain_files, read_sound, sweep_unfinished

SUFFIX = ".flac"


class LineAudio:
    """Audio files in a folder. Thread-safe."""

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
        """Save audio; after this returns it survives a crash."""
        save_sound(self.path(key), pcm)
        with self._lock:
            self._samples[key] = len(pcm)

    def read(self, key: str) -> Pcm:
        """Read the samples of a key. Raises InvalidAudio if they are missing or damaged."""
        try:
            return read_sound(self.path(key))
        except (OSError, RuntimeError) as error:
            self._forget(key)
            raise InvalidAudio("The sound of this line is gone. Speak the line again.") from error

    def samples(self, key: str) -> int:
        """The number of samples of a key; 0 if there is no file."""
        with self._lock:
            known = self._samples.get(key, 0)
        if known is None:
            known = self._count(key)
        return known

    def path(self, key: str) -> Path:
        if not is_safe_id(key):
            raise InvalidAudio("This is no key of a sound.")
        return self._folder / f"{key}{SUFFIX}"

    def keys(self) -> set[str]:
        with self._lock:
            return {*self._samples}

    def drop(self, key: str) -> None:
        """Delete a file."""
        self._forget(key)
        self.path(key).unlink(missing_ok=True)

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
