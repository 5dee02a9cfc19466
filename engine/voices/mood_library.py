"""Saved moods: files like those of voices, in a folder of their own, with the same checks.

A mood's card says what it was learned from and for which models; its vector is the shift.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from engine.errors import InvalidVoice
from engine.folding import folded
from engine.types import Clone, Mood
from engine.voices.mood import LearnedShift
from engine.voices.voice_folder import VoiceFolder
from engine.voices.voice_format import VoiceCard
from engine.voices.voice_store import DamagedVoice, SavedVoice


@dataclass(frozen=True)
class SavedMood:
    """A mood of the library. `built_in` moods come with the program and are read-only."""

    id: str
    card: VoiceCard
    mood: Mood
    built_in: bool = False

    @property
    def name(self) -> str:
        return self.mood.name

    def called(self, name: str) -> bool:
        """Whether this is one of its names, ignoring case."""
        return folded(name.strip()) in map(folded, (self.mood.name, *self.mood.words))


class MoodLibrary:
    """The moods of a folder; `built_in` names a second folder that is only read."""

    def __init__(
        self,
        folder: Path | str | Callable[[], Path],
        built_in: Path | str | None = None,
        most: int | None = None,
    ) -> None:
        self._library = VoiceFolder(folder, built_in, most, moods=True)

    @property
    def folder(self) -> Path:
        return self._library.folder

    def save(
        self,
        name: str,
        learned: LearnedShift,
        space: str,
        model: str = "",
        words: Iterable[str] = (),
        **details: Any,
    ) -> SavedMood:
        """Save a learned mood. `details` are fields of VoiceCard: note, consent, made_from …"""
        fields = {
            "space": space,
            "words": tuple(words),
            "pairs": learned.pairs,
            "spread": learned.spread,
            "agreement": learned.agreement,
        }
        voice = Clone(learned.shift, model=model)
        return _mood(self._library.save(name, voice, kind="mood", mood=fields, **details))

    def list(self) -> tuple[SavedMood, ...]:
        """Every mood that can be read, by name."""
        return tuple(_mood(saved) for saved in self._library.list() if saved.card.mood)

    def damaged(self) -> tuple[DamagedVoice, ...]:
        return self._library.damaged()

    def find(self, name: str) -> SavedMood | None:
        """A mood by its name, its id, or else by another word for it."""
        saved = self._library.find(name) if name.strip() else None
        if saved and saved.card.mood:
            return _mood(saved)
        return next((each for each in self.list() if each.called(name)), None)

    def fitting(self, spaces: Iterable[str]) -> tuple[SavedMood, ...]:
        """The moods for models with one of these speaker spaces."""
        known = {*spaces, ""}
        return tuple(each for each in self.list() if each.mood.space in known)

    def get(self, mood_id: str) -> SavedMood:
        """A mood by its id. Raises UnknownVoice."""
        return _mood(self._library.get(mood_id))

    def change(self, mood_id: str, name: str, words: Iterable[str], note: str) -> SavedMood:
        """Change what a mood is called, and its note."""
        card = self.get(mood_id).card
        assert card.mood is not None
        fields = {**card.mood.model_dump(), "words": tuple(words)}
        return _mood(self._library.change(mood_id, name=name, note=note, mood=fields))

    def export(self, mood_id: str) -> bytes:
        return self._library.export(mood_id)

    def import_file(self, data: bytes) -> SavedMood:
        """Import an untrusted file; it is checked before anything is written."""
        return _mood(self._library.import_file(data))

    def delete(self, mood_id: str) -> str:
        """Move a mood to the trash. Returns the ticket for `restore`."""
        return self._library.delete(mood_id)

    def restore(self, ticket: str) -> SavedMood:
        return _mood(self._library.restore(ticket))

    def purge(self, older_than: float) -> int:
        return self._library.purge(older_than)


def mood_words(moods: Iterable[SavedMood]) -> Mapping[str, Mood]:
    """Moods by their names and other words, in small letters; a name goes before a word."""
    every = list(moods)
    words = {word.casefold(): each.mood for each in every for word in each.mood.words}
    return words | {each.mood.name.casefold(): each.mood for each in every}


def _mood(saved: SavedVoice) -> SavedMood:
    card, voice = saved.card, saved.voice
    if card.mood is None or not isinstance(voice, Clone):
        raise InvalidVoice("'{name}' is a voice and no mood.", name=card.name)
    mood = Mood(card.name, voice.vector, card.mood.space, card.mood.words)
    return SavedMood(saved.id, card, mood, saved.built_in)
