"""Reads and writes one saved voice: a folder with a card and, except for designs, its tensors.

Links are refused, sizes are bounded, and damaged files raise InvalidVoice.
"""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

from engine.atomic import write_atomic
from engine.errors import InvalidVoice
from engine.types import Clone, Design
from engine.voices.voice_format import (
    MAX_BYTES,
    MAX_CARD_BYTES,
    VoiceCard,
    design,
    read_card,
    read_numbers,
    write_card,
    write_numbers,
)

Storable: TypeAlias = Clone | Design
Stamp: TypeAlias = tuple[tuple[int, int, int] | None, ...]

CARD, NUMBERS = "voice.json", "voice.safetensors"
ID = re.compile(r"[a-z0-9][a-z0-9-]{0,63}")


@dataclass(frozen=True)
class SavedVoice:
    """A voice of the library. `built_in` voices come with the program and are read-only."""

    id: str
    card: VoiceCard
    voice: Storable
    built_in: bool = False

    @property
    def name(self) -> str:
        return self.card.name


@dataclass(frozen=True)
class DamagedVoice:
    """A folder that cannot be read as a voice, and why. It is never deleted."""

    path: Path
    reason: str


def fill_folder(place: Path, card: VoiceCard, voice: Storable) -> Storable:
    """Write a voice's files. Returns the voice as it will be read back."""
    write_atomic(place / CARD, write_card(card))
    if isinstance(voice, Design):
        return design(card)
    numbers = write_numbers(voice)
    kept = read_numbers(card, numbers)
    write_atomic(place / NUMBERS, numbers)
    return kept


def read_folder(place: Path, built_in: bool = False) -> SavedVoice:
    if not ID.fullmatch(place.name) or place.is_symlink() or not place.is_dir():
        raise InvalidVoice("It is no folder that the library made.")
    card = read_card(_bytes(place / CARD, MAX_CARD_BYTES))
    if card.described:
        return SavedVoice(place.name, card, design(card), built_in)
    voice = read_numbers(card, _bytes(place / NUMBERS, MAX_BYTES))
    return SavedVoice(place.name, card, voice, built_in)


def look_into(place: Path, built_in: bool) -> SavedVoice | DamagedVoice:
    try:
        return read_folder(place, built_in)
    except InvalidVoice as error:
        return DamagedVoice(place, error.message)


def stamp_of(place: Path) -> Stamp:
    """A value that changes whenever the voice's files do."""
    return tuple(_stat(path) for path in (place, place / CARD, place / NUMBERS))


def _stat(path: Path) -> tuple[int, int, int] | None:
    try:
        found = os.lstat(path)
    except OSError:
        return None
    return found.st_ino, found.st_mtime_ns, found.st_size


def _bytes(path: Path, limit: int) -> bytes:
    """A regular file's bytes; links are refused."""
    if path.is_symlink() or not path.is_file():
        raise InvalidVoice("{name} is missing, or it is no plain file.", name=path.name)
    try:
        with path.open("rb") as file:
            data = file.read(limit + 1)
    except OSError as error:
        raise InvalidVoice(
            "{name} cannot be read: {reason}.", name=path.name, reason=error.strerror
        ) from error
    if len(data) > limit:
        raise InvalidVoice("{name} has more than {limit:,} bytes.", name=path.name, limit=limit)
    return data
