"""Saved voices: a folder each, with a card (JSON) and, except for designs, a safetensors file.

A voice is saved, deleted to the trash and restored by one rename of its folder, so a crash leaves
it complete or absent. Names are free text, ids are safe file names, and no path leads out of the
library. Damaged folders are reported and not touched.
"""

from __future__ import annotations

import os
import re
import secrets
import shutil
import time
import unicodedata
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from datetime import datetime, timezone
from functools import partial
from itertools import chain, count
from pathlib import Path
from threading import RLock
from typing import Any, TypeVar

from pydantic import ValidationError

from engine.atomic import LOCK, PARTIAL_SUFFIX, exclusive, explain_write_errors, sync, write_atomic
from engine.errors import InvalidVoice, NameTaken, NotSaved, UnknownVoice
from engine.messages import misfit
from engine.types import Clone, Design
from engine.voices.voice_format import VoiceCard, pack, unpack, write_card
from engine.voices.voice_store import (
    CARD,
    ID,
    DamagedVoice,
    SavedVoice,
    Stamp,
    Storable,
    fill_folder,
    look_into,
    read_folder,
    stamp_of,
)

TRASH = ".trash"
ID_MARK = "#"
REMEMBERED = 10_000  # voices, some 10 kB each
LONGEST_NUMBERED = 74  # characters of a name before its number
STALE = 3600.0  # seconds after which an unfinished voice is deleted
_RESERVED = re.compile(r"con|prn|aux|nul|(com|lpt)\d")  # not allowed as file names on Windows


_Found = TypeVar("_Found", SavedVoice, DamagedVoice)


class Library:
    """The voices of a folder; `built_in` names a second folder that is only read.

    `folder` may be a function, which is called at each use: each visitor may have a folder.
    `most`: how many voices a folder may have; None: as many as there are.
    """

    def __init__(
        self,
        folder: Path | str | Callable[[], Path],
        built_in: Path | str | None = None,
        most: int | None = None,
    ) -> None:
        self._place = folder if callable(folder) else partial(Path, folder)
        self._built_in = Path(built_in) if built_in else None
        self._most = most
        self._lock = RLock()  # of writers in this process; `_writing` holds off the others
        self._depth = 0
        self._known: dict[Path, tuple[Stamp, SavedVoice | DamagedVoice]] = {}

    @property
    def folder(self) -> Path:
        return self._place()

    def save(self, name: str, voice: Storable, **details: Any) -> SavedVoice:
        """Save a voice. `details` are fields of VoiceCard: note, colour, tags, consent …"""
        kind = "design" if isinstance(voice, Design) else "clone"
        card = _card({"kind": kind, "created": _now(), **details}, voice, name)
        with self._writing(create=True):
            self._check_free(card.name)
            return self._store(card, voice)

    def list(self) -> tuple[SavedVoice, ...]:
        """Every voice that can be read, by name."""
        return tuple(sorted(self._scan(SavedVoice), key=lambda own: (own.name.casefold(), own.id)))

    def damaged(self) -> tuple[DamagedVoice, ...]:
        """Folders in the library that cannot be read."""
        return tuple(self._scan(DamagedVoice))

    def get(self, voice_id: str) -> SavedVoice:
        """One voice by its id. Raises UnknownVoice or InvalidVoice."""
        place = self._find(voice_id)
        return read_folder(place, built_in=place.parent == self._built_in)

    def find(self, name: str) -> SavedVoice | None:
        """A voice by id or by name, ignoring case; the oldest if several share the name.

        `#anna` is the voice with that id, also where another one has the name.
        """
        wanted = name.strip().casefold()
        voices = sorted(self._scan(SavedVoice), key=lambda saved: saved.card.created)
        by_id = (saved for saved in voices if saved.id == wanted.removeprefix(ID_MARK))
        by_name = (saved for saved in voices if saved.name.casefold() == wanted)
        return next(by_id, None) or next(by_name, None)

    def rename(self, voice_id: str, name: str) -> SavedVoice:
        return self.change(voice_id, name=name)

    def change(self, voice_id: str, **details: Any) -> SavedVoice:
        """Change fields of the card; the id and the tensors stay."""
        with self._writing():
            saved = self._own(voice_id)
            card = _card({**saved.card.model_dump(), **details}, saved.voice)
            self._check_free(card.name, own=voice_id)
            write_atomic(self.folder / voice_id / CARD, write_card(card))
            return SavedVoice(voice_id, card, saved.voice)

    def delete(self, voice_id: str) -> str:
        """Move a voice to the trash. Returns the ticket for `restore`."""
        with self._writing():
            self._own(voice_id)
            self._known.pop(self.folder / voice_id, None)
            return _move(self.folder / voice_id, self._trash(), voice_id).name

    def restore(self, ticket: str) -> SavedVoice:
        """Restore a deleted voice, under another id if its own was taken since."""
        with self._writing():
            place = self._trash() / _safe(ticket)
            if not os.path.lexists(place):
                raise UnknownVoice("The trash holds no voice '{ticket}'.", ticket=ticket)
            self._check_room()
            name = read_folder(place).name
            free = self._free_name(name)
            back = _move(place, self.folder, ticket, self._built_in)
            return self.rename(back.name, free) if free != name else read_folder(back)

    def purge(self, older_than: float, now: float | None = None) -> int:
        """Delete what has been in the trash for so many seconds; returns the number of voices."""
        latest = (time.time() if now is None else now) - older_than
        trash = self.folder / TRASH
        with self._writing():
            there = list(trash.iterdir()) if trash.is_dir() and not trash.is_symlink() else []
            gone = [place for place in there if _moved(place) <= latest]
            for place in gone:
                shutil.rmtree(place, ignore_errors=True)
        return len(gone)

    def export(self, voice_id: str) -> bytes:
        """A voice as one file."""
        saved = self.get(voice_id)
        return pack(saved.card, saved.voice)

    def import_file(self, data: bytes) -> SavedVoice:
        """Import an untrusted voice file; it is checked before anything is written.

        A name that is taken gets a number, so that an import never replaces another voice. A
        cloned voice without its owner's consent is refused.
        """
        card, voice = unpack(data)
        if card.kind == "clone" and isinstance(voice, Clone) and not card.consent:
            raise InvalidVoice(
                "'{name}' is a copied voice without its owner's consent. Ask for it, then export "
                "the voice again.",
                name=card.name,
            )
        with self._writing(create=True):
            card = card.model_copy(update={"name": self._free_name(card.name)})
            return self._store(card, voice)

    @contextmanager
    def _writing(self, create: bool = False) -> Iterator[None]:
        """One writer at a time, of this process and of others. May be nested."""
        with self._lock:
            folder = self.folder
            if create:
                with explain_write_errors(folder / LOCK):
                    folder.mkdir(parents=True, exist_ok=True)
            self._depth += 1
            try:
                with nullcontext() if self._depth > 1 else exclusive(folder):
                    yield
            finally:
                self._depth -= 1

    def _check_free(self, name: str, own: str = "") -> None:
        """Raises NameTaken if a voice other than `own` has this name."""
        if name.casefold() in self._names(own):
            raise NameTaken(
                "There is a voice called '{name}' already. Choose another name.", name=name
            )

    def _check_room(self) -> None:
        own = sum(not saved.built_in for saved in self._scan(SavedVoice))
        if self._most is not None and own >= self._most:
            raise InvalidVoice("The library is full. Delete a voice first.")

    def _free_name(self, name: str) -> str:
        """The name, with a number if it is taken."""
        taken = self._names()
        numbered = (f"{name[:LONGEST_NUMBERED]} {number}" for number in count(2))
        return next(each for each in chain([name], numbered) if each.casefold() not in taken)

    def _names(self, but: str = "") -> set[str]:
        return {saved.name.casefold() for saved in self._scan(SavedVoice) if saved.id != but}

    def _store(self, card: VoiceCard, voice: Storable) -> SavedVoice:
        """Write to a temporary folder, then rename it."""
        with explain_write_errors(self.folder / slug(card.name)):
            self._check_room()
            self._sweep()
            aside = self.folder / f".{secrets.token_hex(6)}{PARTIAL_SUFFIX}"
            aside.mkdir()
            try:
                kept = fill_folder(aside, card, voice)
                place = _move(aside, self.folder, slug(card.name), self._built_in)
            finally:
                shutil.rmtree(aside, ignore_errors=True)
            return SavedVoice(place.name, card, kept)

    def _sweep(self) -> None:
        """Delete folders that a crash left unfinished; recent ones may still be written."""
        for aside in self.folder.glob(f".*{PARTIAL_SUFFIX}"):
            if time.time() - aside.lstat().st_mtime > STALE:
                shutil.rmtree(aside, ignore_errors=True)

    def _own(self, voice_id: str) -> SavedVoice:
        saved = self.get(voice_id)
        if saved.built_in:
            raise InvalidVoice(
                "'{name}' comes with the program. Save a copy instead.", name=saved.name
            )
        return saved

    def _scan(self, wanted: type[_Found]) -> Iterator[_Found]:
        for place in self._places():
            found = self._look(place)
            if isinstance(found, wanted):
                yield found

    def _look(self, place: Path) -> SavedVoice | DamagedVoice:
        """The voice in a folder, read again only when it has changed."""
        stamp, known = stamp_of(place), self._known.get(place)
        if known is None or known[0] != stamp:
            if len(self._known) >= REMEMBERED:
                self._known.clear()
            known = stamp, look_into(place, built_in=place.parent == self._built_in)
            self._known[place] = known
        return known[1]

    def _places(self) -> Iterator[Path]:
        for folder in self._folders():
            yield from sorted(place for place in folder.iterdir() if place.name[0] != ".")

    def _folders(self) -> tuple[Path, ...]:
        both = (self.folder, self._built_in)
        return tuple(folder for folder in both if folder is not None and folder.is_dir())

    def _find(self, voice_id: str) -> Path:
        places = [folder / _safe(voice_id) for folder in self._folders()]
        for place in places:
            if os.path.lexists(place):
                return place
        raise UnknownVoice("No saved voice has the id '{voice_id}'.", voice_id=voice_id)

    def _trash(self) -> Path:
        trash = self.folder / TRASH
        if trash.is_symlink():
            raise InvalidVoice("{trash} is a link. Remove it.", trash=trash)
        with explain_write_errors(trash):
            trash.mkdir(parents=True, exist_ok=True)
        return trash


def slug(name: str) -> str:
    """A safe file name for any name: `Café Noir` → `cafe-noir`, `声音` → `voice`."""
    plain = unicodedata.normalize("NFKD", name).encode("ascii", "ignore").decode().lower()
    safe = re.sub(r"[^a-z0-9]+", "-", plain).strip("-")[:48].strip("-")
    return f"voice-{safe}" if _RESERVED.fullmatch(safe) else safe or "voice"


def _safe(voice_id: str) -> str:
    if not ID.fullmatch(voice_id):
        raise UnknownVoice("'{voice_id}' is no id of a saved voice.", voice_id=voice_id[:80])
    return voice_id


def _move(place: Path, folder: Path, wanted: str, avoid: Path | None = None) -> Path:
    """Rename a voice's folder to the wanted id, or to the first free numbered one."""
    base = _safe(wanted)[:56]
    for number in count(2):
        target = folder / wanted
        wanted = f"{base}-{number}"
        if os.path.lexists(target) or (avoid and os.path.lexists(avoid / target.name)):
            continue
        try:
            with explain_write_errors(target):
                place.rename(target)
                sync(folder)
        except NotSaved:
            if os.path.lexists(place) and os.path.lexists(target):  # another process took the name
                continue
            raise
        return target
    raise AssertionError("numbers do not end")


def _moved(place: Path) -> float:
    """When a folder was renamed last, as its file system says."""
    found = place.lstat()
    return max(found.st_mtime, found.st_ctime)


def _card(fields: dict[str, Any], voice: Storable, name: str | None = None) -> VoiceCard:
    """A card whose fields match the voice."""
    own: dict[str, Any] = {"width": None}
    if isinstance(voice, Design):
        own["instruct"] = voice.instruct
    else:
        own |= {
            "width": len(voice.vector),
            "transcript": voice.transcript,
            "model": voice.model,
        }
    title = " ".join((name if name is not None else fields["name"]).split())
    try:
        return VoiceCard(**{**fields, **own, "name": title})
    except ValidationError as error:
        first = error.errors()[0]
        raise InvalidVoice(
            "{field}: {problem}.", field=first["loc"][0], problem=misfit(first)
        ) from error


def _now() -> str:
    return datetime.now(timezone.utc).isoformat(timespec="seconds")
