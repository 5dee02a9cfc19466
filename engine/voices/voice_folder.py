"""Saved voices: a folder each, with a card (JSON) and, except for designs, a safetensors file.

A voice is saved, deleted to the trash and restored by one rename of its folder, so a crash leaves
it complete or absent. Names are free text, ids are safe file names, and no path leads out of the
library. Damaged folders are reported and not touched. Each folder has an index in memory
(`VoiceIndex`), so that what a save or a search costs does not grow with the number of voices.
"""

from __future__ import annotations

import os
import re
import secrets
import shutil
import time
import unicodedata
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager, nullcontext
from dataclasses import replace
from datetime import datetime, timezone
from functools import reduce
from itertools import chain, count
from pathlib import Path
from threading import RLock
from typing import Any

from pydantic import ValidationError

from engine.atomic import (
    LOCK,
    PARTIAL_SUFFIX,
    exclusive,
    explain_write_errors,
    mark_changed,
    sync,
    write_atomic,
)
from engine.errors import InvalidVoice, LibraryFull, NameTaken, NotSaved, UnknownVoice
from engine.folding import folded
from engine.messages import misfit
from engine.types import Clone, Design
from engine.voices.voice_format import (
    VoiceCard,
    pack,
    read_numbers,
    reference_key,
    unpack,
    write_card,
    write_numbers,
)
from engine.voices.voice_index import VoiceIndex, read_index, with_voice
from engine.voices.voice_store import (
    CARD,
    ID,
    NUMBERS,
    DamagedVoice,
    SavedVoice,
    Storable,
    fill_folder,
    read_folder,
)

TRASH = ".trash"
ID_MARK = "#"
REMEMBERED = 10_000  # voices of all folders, some 10 kB each
COUNTED = 20  # ids like anna-2 that are tried before one is drawn
LONGEST_NUMBERED = 74  # characters of a name before its number
STALE = 3600.0  # seconds after which an unfinished voice is deleted
SEEN = 1.0  # seconds for which what another process saves may be unknown, see `is_free`
LOOKS = 1000  # at the lock of another process that writes, in ten seconds
BESIDE = re.compile(r"[a-z]{1,20}\.[a-z]{1,8}")  # files of others than the library
NOTHING: Mapping[str, bytes] = {}
_RESERVED = re.compile(r"con|prn|aux|nul|(com|lpt)\d")  # not allowed as file names on Windows


class VoiceFolder:
    """The voices, or the moods, of a folder; `built_in` names a second folder that is only read.

    `folder` may be a function, which is called at each use: each visitor may have a folder.
    `most`: how many voices a folder may have, and its trash; None: as many as there are.
    """

    def __init__(
        self,
        folder: Path | str | Callable[[], Path],
        built_in: Path | str | None = None,
        most: int | None = None,
        moods: bool = False,
    ) -> None:
        """`moods`: it holds moods and no voices."""
        self._moods = moods
        self._place = folder if callable(folder) else Path(folder)
        self._built_in = Path(built_in) if built_in else None
        self._most = most
        self._lock = RLock()  # of writers in this process; `_writing` holds off the others
        self._depth = 0
        self._indexes: dict[Path, VoiceIndex] = {}
        self._seen: dict[Path, float] = {}  # when each was looked at last

    @property
    def folder(self) -> Path:
        return self._place() if callable(self._place) else self._place

    def save(
        self, name: str, voice: Storable, beside: Mapping[str, bytes] = NOTHING, **details: Any
    ) -> SavedVoice:
        """Save a voice. `details` are fields of VoiceCard: kind, note, colour, tags, consent …

        `beside`: files that stay with the voice, in its folder (see `file_beside`).
        """
        kind = "design" if isinstance(voice, Design) else "trained" if voice.trained else "clone"
        card = _card({"kind": kind, "created": _now(), **details}, voice, name)
        with self._writing(create=True):
            self._check_free(card.name)
            return self._store(card, voice, beside)

    def list(self) -> tuple[SavedVoice, ...]:
        """Every voice that can be read, by name."""
        card, *others = self._read()
        built_in = (saved for index in others for saved in index.ordered)
        every = reduce(with_voice, built_in, card.ordered)
        return tuple(saved for saved in every if (saved.card.kind == "mood") == self._moods)

    def damaged(self) -> tuple[DamagedVoice, ...]:
        """Folders in the library that cannot be read."""
        return tuple(chain.from_iterable(index.damaged for index in self._read()))

    def get(self, voice_id: str) -> SavedVoice:
        """One voice by its id. Raises UnknownVoice or InvalidVoice."""
        place = self._find(voice_id)
        return read_folder(place, built_in=place.parent == self._built_in)

    def file_beside(self, voice_id: str, name: str, most: int) -> bytes | None:
        """A file that was saved with a voice; None if there is none, or not of that size."""
        path = self._find(voice_id) / name
        if not BESIDE.fullmatch(name) or path.is_symlink() or not path.is_file():
            return None
        with path.open("rb") as file:
            data = file.read(most + 1)
        return data if len(data) <= most else None

    def find(self, name: str) -> SavedVoice | None:
        """A voice by name, else by id, ignoring case; the oldest if several share the name.

        `#anna` is the voice with that id, also where another one has the name.
        """
        return _called(name, self._read())

    def named(self, name: str) -> SavedVoice | None:
        """A voice by name alone, ignoring case; the oldest if several share the name."""
        return _named(name.strip(), self._read())

    def look(self) -> None:
        """Read what has changed."""
        self._read()

    def is_free(self, name: str) -> bool | None:
        """Whether `find` finds nothing, from memory alone; None: the last look is more than SEEN
        seconds ago. What this process has changed since is known."""
        since = time.monotonic() - SEEN
        folders = self._folders
        fresh = [each for each in folders if self._seen.get(each, since - 1) >= since]
        indexes = [*filter(None, map(self._indexes.get, fresh))]  # another thread may forget them
        return None if len(indexes) < len(folders) else _called(name, indexes) is None

    def rename(self, voice_id: str, name: str) -> SavedVoice:
        return self.change(voice_id, name=name)

    def change(self, voice_id: str, **details: Any) -> SavedVoice:
        """Change fields of the card; the id and the tensors stay."""
        with self._writing():
            saved = self._own(voice_id)
            card = _card({**saved.card.model_dump(), **details}, saved.voice)
            self._check_free(card.name, own=voice_id)
            index = self._index(self.folder)
            write_atomic(self.folder / voice_id / CARD, write_card(card))
            return self._added(index, SavedVoice(voice_id, card, saved.voice))

    def keep_reference(self, voice_id: str, mood: str, other: Clone | None) -> SavedVoice:
        """Keep another recording of a voice's person, in a mood; None: forget the one there is.

        Its numbers are written while no card names them, so a crash leaves the voice as it was.
        """
        with self._writing():
            saved = self._own(voice_id)
            if not isinstance(saved.voice, Clone) or saved.card.kind == "mood":
                raise InvalidVoice("'{name}' is no voice from a recording.", name=saved.name)
            rest = tuple(
                each for each in saved.voice.references if each[0].casefold() != mood.casefold()
            )
            reference = () if other is None else ((mood, replace(other, references=())),)
            voice = replace(saved.voice, references=(*rest, *reference))
            card = _card(saved.card.model_dump(), voice)
            index, place = self._index(self.folder), self.folder / voice_id
            read_numbers(card, numbers := write_numbers(voice))  # the checks of any voice
            steps = [(NUMBERS, numbers), (CARD, write_card(card))]
            for name, data in steps if other is not None else reversed(steps):
                write_atomic(place / name, data)
            return self._added(index, SavedVoice(voice_id, card, voice))

    def delete(self, voice_id: str) -> str:
        """Move a voice to the trash. Returns the ticket for `restore`."""
        with self._writing():
            self._own(voice_id)
            index, trash = self._index(self.folder), self._trash()
            self._empty(trash)
            ticket = _move(self.folder / voice_id, trash, voice_id).name
            mark_changed(self.folder)
            self._remember(index.without(voice_id))
            return ticket

    def restore(self, ticket: str) -> SavedVoice:
        """Restore a deleted voice, under another id if its own was taken since."""
        with self._writing():
            place = self._trash() / _safe(ticket)
            if not os.path.lexists(place):
                raise UnknownVoice("The trash holds no voice '{ticket}'.", ticket=ticket)
            self.check_room()
            name = read_folder(place).name
            free = self._free_name(name)
            index = self._index(self.folder)
            back = read_folder(_move(place, self.folder, ticket, self._is_built_in))
            self._added(index, back)
            return self.rename(back.id, free) if free != name else back

    def purge(self, older_than: float, now: float | None = None) -> int:
        """Delete what has been in the trash for so many seconds; returns the number of voices.

        What a crash left unfinished goes too, unless it is recent and may still be written.
        """
        latest = (time.time() if now is None else now) - older_than
        trash = self.folder / TRASH
        with self._writing():
            there = list(trash.iterdir()) if trash.is_dir() and not trash.is_symlink() else []
            gone = [place for place in there if _moved(place) <= latest]
            left = self.folder.glob(f".*{PARTIAL_SUFFIX}")
            for place in (*gone, *(each for each in left if time.time() - _moved(each) > STALE)):
                shutil.rmtree(place, ignore_errors=True)
        return len(gone)

    def export(self, voice_id: str) -> bytes:
        """A voice as one file."""
        saved = self.get(voice_id)
        return pack(saved.card, saved.voice)

    def import_file(self, data: bytes, presets: Collection[str] = ()) -> SavedVoice:
        """Import an untrusted voice file; it is checked before anything is written.

        A name that a voice or one of these presets has gets a number, so that an import neither
        replaces another voice nor is hidden by it. A cloned or trained voice without its owner's
        consent is refused.
        """
        card, voice = unpack(data)
        if (card.kind == "mood") != self._moods:
            raise InvalidVoice(
                "This file is a voice, not a mood: import it as a voice."
                if self._moods
                else "This file is a mood, not a voice: import it as a mood."
            )
        copied = card.kind in ("clone", "trained") and isinstance(voice, Clone)
        if copied and not card.consent:
            raise InvalidVoice(
                "'{name}' is a copied voice without its owner's consent. Ask for it, then export "
                "the voice again.",
                name=card.name,
            )
        with self._writing(create=True):
            title = " ".join(card.name.split())
            card = card.model_copy(update={"name": self._free_name(title, presets)})
            return self._store(card, voice)

    def check_room(self) -> None:
        """Whether one more voice may be saved. Raises LibraryFull."""
        if self._most is not None and len(self._index(self.folder).ordered) >= self._most:
            raise LibraryFull(
                "The library is full: it may have {most:,} voices. Delete one first.",
                most=self._most,
            )

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
                with nullcontext() if self._depth > 1 else exclusive(folder, LOOKS):
                    yield
            finally:
                self._depth -= 1

    def _check_free(self, name: str, own: str = "") -> None:
        """Raises NameTaken if a voice other than `own` has this name."""
        if self._is_taken(name, own):
            raise NameTaken(
                "There is a voice called '{name}' already. Choose another name.", name=name
            )

    def _free_name(self, name: str, presets: Collection[str] = ()) -> str:
        """The name, with a number if a voice or one of these presets has it."""
        numbered = (f"{name[:LONGEST_NUMBERED]} {number}" for number in count(2))
        theirs = {folded(each) for each in presets}
        return next(
            each
            for each in chain([name], numbered)
            if folded(each) not in theirs and not self._is_taken(each)
        )

    def _is_taken(self, name: str, own: str = "") -> bool:
        return any(each.id != own for index in self._read() for each in index.named(name))

    def _store(
        self, card: VoiceCard, voice: Storable, beside: Mapping[str, bytes] = NOTHING
    ) -> SavedVoice:
        """Write to a temporary folder, then rename it."""
        with explain_write_errors(self.folder / slug(card.name)):
            self.check_room()
            index = self._index(self.folder)
            aside = self.folder / f".{secrets.token_hex(6)}{PARTIAL_SUFFIX}"
            aside.mkdir()
            try:
                kept = fill_folder(aside, card, voice)
                for file, data in beside.items():
                    assert BESIDE.fullmatch(file), file
                    write_atomic(aside / file, data)

                def is_other(own_id: str) -> bool:
                    return self._is_built_in(own_id) or self._is_deleted(own_id, card.name)

                place = _move(aside, self.folder, slug(card.name), is_other)
            finally:
                shutil.rmtree(aside, ignore_errors=True)
            return self._added(index, SavedVoice(place.name, card, kept))

    def _is_built_in(self, own_id: str) -> bool:
        return self._built_in is not None and os.path.lexists(self._built_in / own_id)

    def _is_deleted(self, own_id: str, name: str) -> bool:
        """Whether a deleted voice of another name has this id: scripts still mean that one."""
        place = self.folder / TRASH / own_id
        if not os.path.lexists(place):
            return False
        try:
            return folded(read_folder(place).name) != folded(name)
        except InvalidVoice:
            return True

    def _added(self, index: VoiceIndex, saved: SavedVoice) -> SavedVoice:
        """Put a voice that was written just now into the index, as it was before."""
        mark_changed(self.folder)
        self._remember(index.having(saved))
        return saved

    def _own(self, voice_id: str) -> SavedVoice:
        saved = self.get(voice_id)
        if saved.built_in:
            raise InvalidVoice(
                "'{name}' comes with the program. Save a copy instead.", name=saved.name
            )
        return saved

    def _read(self) -> tuple[VoiceIndex, ...]:
        """The visitor's own voices, and those that come with the program."""
        return tuple(map(self._index, self._folders))

    @property
    def _folders(self) -> tuple[Path, ...]:
        return (self.folder, self._built_in) if self._built_in else (self.folder,)

    def _index(self, folder: Path) -> VoiceIndex:
        """A folder's voices; it is read again only when it has changed."""
        before, now = self._indexes.get(folder), time.monotonic()
        known = before
        if known is None or not known.current:
            known = read_index(folder, folder == self._built_in, before)
            if self._indexes.get(folder) is before:  # else a writer knows more
                self._remember(known)
        self._seen[folder] = now
        return known

    def _remember(self, index: VoiceIndex) -> None:
        others = sum(1 + len(each.found) for each in tuple(self._indexes.values()))
        if others + len(index.found) > REMEMBERED:
            self._indexes.clear()
            self._seen.clear()
        self._indexes[index.folder] = index

    def _find(self, voice_id: str) -> Path:
        for place in (folder / _safe(voice_id) for folder in self._folders):
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

    def _empty(self, trash: Path) -> None:
        """Make room for one more: the oldest go for good."""
        with os.scandir(trash) as found:
            there = list(found)
        if self._most is not None and len(there) >= max(1, self._most):
            there.sort(key=lambda entry: _moved(Path(entry.path)))
            for entry in there[: len(there) - max(1, self._most) + 1]:
                shutil.rmtree(entry.path, ignore_errors=True)


def _called(name: str, indexes: Collection[VoiceIndex]) -> SavedVoice | None:
    """A voice by name, else by id; with a mark by id, else by name."""
    wanted = name.strip().casefold()
    by_id = (index.get(wanted.removeprefix(ID_MARK)) for index in indexes)
    ways = [next(filter(None, by_id), None), _named(wanted, indexes)]
    return next(filter(None, ways if wanted.startswith(ID_MARK) else reversed(ways)), None)


def _named(name: str, indexes: Iterable[VoiceIndex]) -> SavedVoice | None:
    found = [saved for index in indexes for saved in index.named(name)]
    return min(found, key=lambda saved: saved.card.created, default=None)


def slug(name: str) -> str:
    """A safe file name for any name: `Café Noir` → `cafe-noir`, `声音` → `voice`."""
    plain = unicodedata.normalize("NFKD", name).encode("ascii", "ignore").decode().lower()
    safe = re.sub(r"[^a-z0-9]+", "-", plain).strip("-")[:48].strip("-")
    return f"voice-{safe}" if _RESERVED.fullmatch(safe) else safe or "voice"


def _safe(voice_id: str) -> str:
    if not ID.fullmatch(voice_id):
        raise UnknownVoice("'{voice_id}' is no id of a saved voice.", voice_id=voice_id[:80])
    return voice_id


def _move(
    place: Path, folder: Path, wanted: str, is_other: Callable[[str], bool] = lambda _: False
) -> Path:
    """Rename a voice's folder to the wanted id, or to one with a number or letters that is free.

    `is_other`: whether an id that is free here belongs to another voice.
    """
    base = _safe(wanted)[:52]
    for number in count(2):
        target = folder / wanted
        wanted = f"{base}-{number if number < COUNTED else secrets.token_hex(5)}"
        if os.path.lexists(target) or is_other(target.name):
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
    card_fields: dict[str, Any] = {"width": None}
    if isinstance(voice, Design):
        card_fields["instruct"] = voice.instruct
    else:
        card_fields |= {
            "width": len(voice.vector),
            "transcript": voice.transcript,
            "model": voice.model,
            "digest": voice.digest,
            "references": [
                {"mood": mood, "key": reference_key(mood), "transcript": other.transcript}
                for mood, other in voice.references
            ],
        }
    title = " ".join((name if name is not None else fields["name"]).split())
    try:
        return VoiceCard(**{**fields, **card_fields, "name": title})
    except ValidationError as error:
        first = error.errors()[0]
        raise InvalidVoice(
            "{field}: {problem}.", field=next(iter(first["loc"]), "name"), problem=misfit(first)
        ) from error


def _now() -> str:
    return datetime.now(timezone.utc).isoformat(timespec="seconds")
