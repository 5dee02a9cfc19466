"""The voices of one folder in memory, found by id and by name without reading the folder again.

An index is never changed: a writer makes the next one. It is current while the folder has the
stamp that it was read with; `mark_changed` gives a folder another one. What is changed by other
means, like a card in an editor, is seen after FRESH seconds. Knows no locks and no rules of names.
"""

from __future__ import annotations

import os
import time
from bisect import bisect_left
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TypeAlias

from engine.folding import folded
from engine.voices.voice_store import DamagedVoice, SavedVoice, Stamp, look_into, stamp_of

FRESH = 10.0  # seconds after which every voice's files are looked at again

Found: TypeAlias = "SavedVoice | DamagedVoice"


@dataclass(frozen=True)
class VoiceIndex:
    """What is in `folder`, as it was when it had `stamp`."""

    folder: Path
    stamp: tuple[int, int] | None = None  # None: there is no such folder
    looked: float = 0.0  # when every voice was looked at last
    found: Mapping[str, tuple[Stamp, Found]] = field(default_factory=dict)  # by id
    names: Mapping[str, tuple[str, ...]] = field(default_factory=dict)  # as in `folded`: ids
    ordered: tuple[SavedVoice, ...] = ()  # by name

    @property
    def current(self) -> bool:
        fresh = time.monotonic() - self.looked < FRESH
        return fresh and self.stamp == stamp_of_folder(self.folder)

    def get(self, voice_id: str) -> SavedVoice | None:
        found = self.found.get(voice_id, (None, None))[1]
        return found if isinstance(found, SavedVoice) else None

    def named(self, name: str) -> list[SavedVoice]:
        """The voices with this name, ignoring case."""
        ids = self.names.get(folded(name), ())
        return [voice for voice in map(self.get, ids) if voice]

    @cached_property
    def damaged(self) -> tuple[DamagedVoice, ...]:
        return tuple(each for _, each in self.found.values() if isinstance(each, DamagedVoice))

    def having(self, saved: SavedVoice) -> VoiceIndex:
        """The index with a voice that was just written; the folder's stamp is read again."""
        rest = self.without(saved.id)
        name = folded(saved.name)
        return VoiceIndex(
            self.folder,
            stamp_of_folder(self.folder),
            self.looked,
            {**rest.found, saved.id: (stamp_of(self.folder / saved.id), saved)},
            {**rest.names, name: (*rest.names.get(name, ()), saved.id)},
            with_voice(rest.ordered, saved),
        )

    def without(self, voice_id: str) -> VoiceIndex:
        """Without a voice that was moved away just now; the folder's stamp is taken anew."""
        found, names, ordered = dict(self.found), dict(self.names), self.ordered
        found.pop(voice_id, None)
        if saved := self.get(voice_id):
            name, at = folded(saved.name), bisect_left(ordered, order(saved), key=order)
            left = tuple(each for each in names.pop(name) if each != voice_id)
            names |= {name: left} if left else {}
            ordered = ordered[:at] + ordered[at + 1 :]
        stamp = stamp_of_folder(self.folder)
        return VoiceIndex(self.folder, stamp, self.looked, found, names, ordered)


def read_index(folder: Path, built_in: bool, before: VoiceIndex | None = None) -> VoiceIndex:
    """The index of a folder; voices whose files are as they were `before` are not read again."""
    stamp, looked = stamp_of_folder(folder), time.monotonic()
    known = before.found if before else {}
    found: dict[str, tuple[Stamp, Found]] = {}
    for name in sorted(_names(folder)):
        now = stamp_of(folder / name)
        same = name in known and known[name][0] == now
        found[name] = known[name] if same else (now, look_into(folder / name, built_in))
    voices = [each for _, each in found.values() if isinstance(each, SavedVoice)]
    names: dict[str, tuple[str, ...]] = {}
    for voice in voices:
        name = folded(voice.name)
        names[name] = (*names.get(name, ()), voice.id)
    return VoiceIndex(folder, stamp, looked, found, names, tuple(sorted(voices, key=order)))


def stamp_of_folder(folder: Path) -> tuple[int, int] | None:
    try:
        found = os.stat(folder)
    except OSError:
        return None
    return found.st_ino, found.st_mtime_ns


def with_voice(voices: tuple[SavedVoice, ...], saved: SavedVoice) -> tuple[SavedVoice, ...]:
    """Voices in their order, and one more."""
    at = bisect_left(voices, order(saved), key=order)
    return (*voices[:at], saved, *voices[at:])


def order(saved: SavedVoice) -> tuple[str, str]:
    return saved.name.casefold(), saved.id


def _names(folder: Path) -> Iterable[str]:
    try:
        return [name for name in os.listdir(folder) if name[0] != "."]
    except OSError:
        return []
