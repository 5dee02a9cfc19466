"""The library: saved voices (voice_folder.py), and beside them the moods (mood_library.py)."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from pathlib import Path

from engine.voices.mood_library import MoodLibrary
from engine.voices.voice_folder import VoiceFolder

MOODS = ".moods"


class Library(VoiceFolder):
    """`built_in_moods`: a folder of moods that is only read."""

    def __init__(
        self,
        folder: Path | str | Callable[[], Path],
        built_in: Path | str | None = None,
        most: int | None = None,
        built_in_moods: Path | None = None,
    ) -> None:
        super().__init__(folder, built_in, most)
        self._built_in_moods = built_in_moods

    @cached_property
    def moods(self) -> MoodLibrary:
        """The moods kept beside these voices."""
        return MoodLibrary(lambda: self.folder / MOODS, self._built_in_moods, self._most)

    def purge(self, older_than: float, now: float | None = None) -> int:
        kept = (self.folder / MOODS).is_dir()
        moods = self.moods.purge(older_than) if kept else 0
        return super().purge(older_than, now) + moods
