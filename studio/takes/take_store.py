"""Saved takes: audio with everything needed to generate it again.

    takes/20261120-101530-3f9a2c41.flac    the sound, written first
                                   .json   the card; a take is there when its card is

A crash between the two leaves audio without a card, never half a take. Deleting sets a date on the
card, so undo is one write; `tidy` deletes files and spares starred takes. Damaged takes are
reported and not touched. This module knows no pages and no engine. Thread-safe.
"""

from __future__ import annotations

import secrets
import threading
import time
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from operator import attrgetter
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import soundfile
from pydantic import BaseModel, ConfigDict, Field

from engine import (
    SAMPLE_RATE,
    Pcm,
    RequestError,
    explain_write_errors,
    folded,
    save_sound,
    write_atomic,
)
from studio.storage import (
    Timestamp,
    is_plain_file,
    is_safe_id,
    new_id,
    plain_files,
    read_sound,
    sweep_unfinished,
)

CARD, SOUND = ".json", ".flac"
MAX_CARD = 1024 * 1024  # bytes
DAY = 86_400.0
WAVE_PARTS = 40
SEED_DIGITS = 9  # of a random seed, short enough to dictate

Wave: TypeAlias = tuple[int, ...]


def random_seed() -> int:
    return secrets.randbelow(10**SEED_DIGITS)


class Take(BaseModel):
    """The card of a take."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)

    id: str
    text: str
    said: str = ""  # where that is not the text: without tags of moods
    voice: str  # its name at that time
    voice_key: str = ""  # finds it under another name
    seed: int
    settings: Mapping[str, Any] = Field(default_factory=dict)  # to generate it again
    seconds: float = Field(ge=0)
    created: Timestamp
    starred: bool = False
    stopped: bool = False  # stopped early: not the whole text
    owner: str = Field("", max_length=64)  # the browser that made it; "": unknown
    deleted: Timestamp | None = None


class Keeping(BaseModel):
    """The limits for `tidy`; None: no limit."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)

    most: int | None = Field(2_000, ge=0)  # takes without a star
    days: float | None = Field(None, ge=0)
    trash_days: float = Field(30.0, ge=0)  # how long a deleted take can be restored
    stars: bool = True  # spare starred takes


class Takes:
    """The takes of a folder. One object per folder."""

    def __init__(self, folder: Path, clock: Callable[[], float] = time.time) -> None:
        self._folder = folder
        self._make_folder()
        sweep_unfinished(folder)
        self._clock = clock
        self._lock = threading.RLock()
        self._damaged: list[Path] = []
        self._waves: dict[str, Wave] = {}
        self._takes = {take.id: take for take in self._read_all()}

    def add(
        self,
        pcm: Pcm,
        text: str,
        voice: str,
        seed: int,
        settings: Mapping[str, Any] | None = None,
        **about: Any,
    ) -> Take:
        """Save a take; after this returns it survives a crash. `about`: more fields of the card."""
        now = self._clock()
        self._make_folder()
        take = Take(
            id=new_id(now),
            text=text,
            voice=voice,
            seed=seed,
            settings=dict(settings or {}),
            seconds=len(pcm) / SAMPLE_RATE,
            created=now,
            **about,
        )
        sound = save_sound(self._path(take.id, SOUND), pcm)
        try:
            return self._keep(take)
        except Exception:
            sound.unlink()
            raise

    def get(self, number: str) -> Take:
        """A take that is not deleted. Raises RequestError."""
        take = self.find(number)
        if take.deleted is not None:
            raise RequestError("This take was deleted. Restore it first.")
        return take

    def find(self, number: str) -> Take:
        """A take, deleted or not. Raises RequestError."""
        with self._lock:
            take = self._takes.get(number)
        if take is None:
            raise RequestError("There is no such take. It may have been removed.")
        return take

    def sound(self, number: str) -> Path:
        """The audio file of a take (FLAC). Raises RequestError if it is missing."""
        path = self._path(self.find(number).id, SOUND)
        if not is_plain_file(path):
            raise RequestError("The sound of this take is gone from the disk. Speak it again.")
        return path

    def pcm(self, number: str) -> Pcm:
        """The samples of a take."""
        path = self.sound(number)
        try:
            return read_sound(path)
        except (OSError, RuntimeError) as error:
            raise RequestError("The sound of this take is damaged. Speak it again.") from error

    def wave(self, number: str) -> Wave:
        """How loud a take is along its length, for a small picture; empty without its audio."""
        found = self._waves.get(number)
        if found is None:
            with suppress(RequestError, OSError, RuntimeError):
                found = self._waves[number] = _wave_of(self.sound(number))
        return found or ()

    def search(
        self,
        words: str = "",
        *,
        voice: str = "",
        owner: str | None = None,
        called: Callable[[Take], str] = attrgetter("voice"),
        starred: bool = False,
        deleted: bool = False,
        limit: int | None = None,
    ) -> list[Take]:
        """Takes with every word in text or voice, the newest first.

        `called`: returns the current name of a take's voice.
        """
        wanted = folded(words).split()
        with self._lock:
            takes = list(self._takes.values())
        found = [
            take
            for take in sorted(takes, key=lambda each: (each.created, each.id), reverse=True)
            if (take.deleted is not None) == deleted
            and (take.starred or not starred)
            and owner in (None, take.owner)
            and voice.casefold() in ("", take.voice.casefold())
            and all(word in folded(f"{take.text} {called(take)}") for word in wanted)
        ]
        return found[:limit]

    def star(self, number: str, starred: bool = True) -> Take:
        self.sound(number)  # raises if the audio is missing
        return self._change(number, starred=starred)

    def adopt(self, number: str, owner: str) -> None:
        """Assign a take without an owner to this browser."""
        with self._lock:
            take = self._takes.get(number)
            if take is not None and not take.owner:
                self._keep(take.model_copy(update={"owner": owner}))

    def delete(self, number: str) -> Take:
        """Move a take to the trash; `restore` undoes it, if the audio exists."""
        with self._lock:
            take = self.find(number)
            if not is_plain_file(self._path(number, SOUND)):
                self._remove(number)
                return take.model_copy(update={"deleted": self._clock()})
        return self._change(number, deleted=self._clock())

    def restore(self, number: str) -> Take:
        self.sound(number)
        return self._change(number, deleted=None)

    def export(self, number: str, path: Path) -> Path:
        """Write a take as an audio file, by the extension of `path`."""
        return save_sound(path, self.pcm(number))

    def damaged(self) -> list[Path]:
        """Cards that cannot be read. They are never deleted."""
        return list(self._damaged)

    def tidy(self, keeping: Keeping) -> int:
        """Delete takes beyond the limits; returns their number."""
        now = self._clock()
        with self._lock:
            trash = [take for take in self._takes.values() if take.deleted is not None]
            shown = [take for take in self.search() if not (take.starred and keeping.stars)]
            old = [take for take in trash if now - (take.deleted or 0) >= keeping.trash_days * DAY]
            if keeping.days is not None:
                old += [take for take in shown if now - take.created > keeping.days * DAY]
            gone = {take.id for take in old if not (take.starred and keeping.stars)}
            if keeping.most is not None:
                gone |= {take.id for take in shown[keeping.most :]}
            for number in gone:
                self._remove(number)
        return len(gone)

    def _make_folder(self) -> None:
        """Create the folder, also if it was removed while the app runs."""
        with explain_write_errors(self._folder):
            self._folder.mkdir(parents=True, exist_ok=True)

    def _change(self, number: str, **changes: object) -> Take:
        with self._lock:
            return self._keep(self.find(number).model_copy(update=changes))

    def _keep(self, take: Take) -> Take:
        write_atomic(self._path(take.id, CARD), take.model_dump_json().encode())
        with self._lock:
            self._takes[take.id] = take
        return take

    def _remove(self, number: str) -> None:
        """Delete the card first: audio without a card is ignored, a card without audio is not."""
        for suffix in (CARD, SOUND):
            with suppress(FileNotFoundError):
                self._path(number, suffix).unlink()
        del self._takes[number]
        self._waves.pop(number, None)

    def _path(self, number: str, suffix: str) -> Path:
        if not is_safe_id(number):
            raise RequestError("There is no such take. It may have been removed.")
        return self._folder / f"{number}{suffix}"

    def _read_all(self) -> list[Take]:
        takes: list[Take] = []
        for path in plain_files(self._folder, CARD):
            try:
                takes.append(_read_card(path))
            except (OSError, ValueError):
                self._damaged.append(path)
        return takes


def wave_of(pcm: Pcm) -> Wave:
    """The loudest sample of each part, 0 to 255."""
    each = max(1, -(-len(pcm) // WAVE_PARTS))
    return _wave(pcm[start : start + each] for start in range(0, len(pcm), each))


def _wave_of(path: Path) -> Wave:
    """The waveform of a file, read part by part."""
    with soundfile.SoundFile(path) as sound:
        each = max(1, -(-sound.frames // WAVE_PARTS))
        return _wave(sound.blocks(each, dtype="int16"))


def _wave(parts: Iterable[Pcm]) -> Wave:
    return tuple(min(255, int(np.abs(part.astype(np.int32)).max()) >> 7) for part in parts)


def _read_card(path: Path) -> Take:
    if path.stat().st_size > MAX_CARD:
        raise ValueError(f"{path} is too large for a card")
    take = Take.model_validate_json(path.read_bytes())
    if take.id != path.stem or not is_plain_file(path.with_suffix(SOUND)):
        raise ValueError(f"{path} does not belong to its sound")
    return take
