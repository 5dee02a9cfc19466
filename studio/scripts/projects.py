"""Projects on disk: a folder each, with the script (JSON) and the audio of its lines.

    scripts/20261120-101530-3f9a2c41/project.json      replaced as a whole
                                     sounds/<key>.flac each whole or not there
                                     cover.jpg         of a book that has one
                                     superseded.json   since when sounds have been unused
                                     rendering         while it is rendered; stays after a crash

Whether a line is spoken is derived from its audio, so it survives a crash or a reload. Deleting
sets a date; `purge` deletes the folder. Damaged projects are reported and not touched. Thread-safe.
"""

from __future__ import annotations

import shutil
import threading
import time
from collections.abc import Callable, Collection, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, TypeAlias

from pydantic import Field, ValidationError
from pydantic_core import from_json

from engine import RequestError, explain_write_errors, write_atomic
from studio.scripts.books import Book, LeftOut
from studio.scripts.casting import Casting
from studio.scripts.line_audio import SUFFIX, LineAudio
from studio.scripts.line_requests import Delivery
from studio.scripts.line_takes import LineTake, LineTakes
from studio.scripts.model import MAX_LINES, Line, Record, Script
from studio.scripts.music.cue import Cues
from studio.scripts.superseded import note_superseded
from studio.storage import (
    Timestamp,
    is_plain_file,
    is_safe_id,
    is_stale,
    new_id,
    plain_files,
    sweep_unfinished,
)

FILE = "project.json"
COVER = "cover.jpg"  # of a book, checked when it came
_UNFINISHED = ".importing-"
RENDERING = "rendering"  # there while a project is being rendered; lines done when it was resumed
MAX_BYTES = 64 * 1024 * 1024
PART = 500  # lines, or lines with takes, in 3 ms; 20,000 take half a second
_LINES, _TAKES, _BETWEEN, _END = b'{"lines":[', b'{"takes":{', b']},"takes":{', b"}}"


class DamagedProject(RequestError): ...


class Project(Record):
    """A script with its cast and delivery; its audio is derived from it."""

    version: Literal[1] = 1
    title: str = Field("Untitled", max_length=200)
    script: Script = Script()
    casting: Casting
    delivery: Delivery = Delivery()
    takes: LineTakes = Field(default_factory=dict)  # earlier ones
    book: Book = Book()
    left_out: tuple[LeftOut, ...] = Field((), max_length=MAX_LINES)  # parts of the book
    cues: Cues = ()  # music under its lines
    created: Timestamp = 0.0
    changed: Timestamp = 0.0
    deleted: Timestamp | None = None


class ProjectPart(Record):
    """Lines of a project, or takes of some: as many as may be validated at once.

    Python's lock is held meanwhile, and nobody is answered.
    """

    lines: tuple[Line, ...] = Field((), max_length=PART)
    takes: LineTakes = Field(default_factory=dict, max_length=PART)


def parts_of(script: Script, takes: LineTakes) -> Iterator[ProjectPart]:
    for at in range(0, len(script.lines), PART):
        yield ProjectPart(lines=script.lines[at : at + PART])
    numbers = [*takes]
    for at in range(0, len(numbers), PART):
        yield ProjectPart(takes={number: takes[number] for number in numbers[at : at + PART]})


def dumped(project: Project) -> bytes:
    """A project as JSON, with a row of the file for each part: none is long to write or read.

    {…,"script":{…,"lines":[
    {…},{…},                 some hundred lines, as often as it takes
    {…}
    ]},"takes":{
    "7":[…],"9":[…]
    }}
    """
    head = project.model_dump_json(exclude={"script", "takes"})[:-1]
    script = project.script.model_dump_json(exclude={"lines"})[:-1]
    lines: list[bytes] = []
    takes: list[bytes] = []
    for part in parts_of(project.script, project.takes):
        name, rows = ("lines", lines) if part.lines else ("takes", takes)
        rows.append(part.model_dump_json(include={name}).encode()[len(_LINES) : -len(_END)])
    first = f'{head},"script":{script},"lines":['.encode()
    return b"\n".join((first, b",\n".join(lines), _BETWEEN, b",\n".join(takes), _END))


def parsed(data: bytes) -> Project:
    """A project from JSON, in parts. Raises ValueError for what is none."""
    head, *rows = data.split(b"\n")
    if not head.endswith(b'"lines":[') or _BETWEEN not in rows or rows[-1] != _END:
        return _parsed_whole(data)  # of another program, or an earlier version
    between = rows.index(_BETWEEN)
    lines = (_LINES + row.removesuffix(b",") + b"]}" for row in rows[:between])
    takes = (_TAKES + row.removesuffix(b",") + _END for row in rows[between + 1 : -1])
    project = Project.model_validate_json(head + b"]}}")
    return _with(project, map(ProjectPart.model_validate_json, (*lines, *takes)))


def _parsed_whole(data: bytes) -> Project:
    value = from_json(data)
    if not isinstance(value, dict) or not isinstance(value.get("script", {}), dict):
        raise ValueError("no project")
    parts = [*_raw_parts(value.get("script", {}).pop("lines", []), value.pop("takes", {}))]
    return _with(Project.model_validate(value), map(ProjectPart.model_validate, parts))


def _raw_parts(lines: Any, takes: Any) -> Iterator[dict[str, Any]]:
    if not isinstance(lines, list) or not isinstance(takes, dict):
        raise ValueError("lines are a list, takes have keys")
    for at in range(0, len(lines), PART):
        yield {"lines": lines[at : at + PART]}
    numbers = [*takes]
    for at in range(0, len(numbers), PART):
        yield {"takes": {number: takes[number] for number in numbers[at : at + PART]}}


def _with(project: Project, parts: Iterable[ProjectPart]) -> Project:
    lines, takes = joined(parts)
    script = project.script.model_copy(update={"lines": lines})
    return project.model_copy(update={"script": script, "takes": takes})


def joined(parts: Iterable[ProjectPart]) -> tuple[tuple[Line, ...], LineTakes]:
    """The lines and takes of all parts. Raises ValueError where a script has fewer lines."""
    lines: list[Line] = []
    takes: dict[int, tuple[LineTake, ...]] = {}
    for part in parts:
        lines += part.lines
        takes.update(part.takes)
        if len(lines) > MAX_LINES:
            raise ValueError("a script has fewer lines")
    return tuple(lines), takes


@dataclass(frozen=True)
class ProjectSummary:
    """A project in a list."""

    id: str
    title: str
    lines: int
    created: float
    changed: float
    voices: frozenset[str] = frozenset()  # of its cast


Stamp: TypeAlias = tuple[int, int]  # modification time and inode of a file
Card: TypeAlias = tuple[ProjectSummary, float | None]  # and the time of deletion


class Projects:
    """The projects of a folder."""

    def __init__(self, folder: Path, clock: Callable[[], float] = time.time) -> None:
        with explain_write_errors(folder):
            folder.mkdir(parents=True, exist_ok=True)
        for unfinished in folder.glob(f"{_UNFINISHED}*"):  # by a crash, or by another program now
            with suppress(OSError):
                if is_stale(unfinished):
                    shutil.rmtree(unfinished, ignore_errors=True)
        self._folder = folder
        self._clock = clock
        self._lock = threading.RLock()
        self._sounds: dict[str, LineAudio] = {}
        self._cards: dict[str, tuple[Stamp, Card]] = {}  # by id

    def create(self, project: Project, cover: bytes = b"") -> str:
        """Create a project, whole or not at all; returns its id. `cover`: a JPEG."""

        def fill(sounds: Path) -> Project:
            if cover:
                write_atomic(sounds.with_name(COVER), cover)
            return project

        return self.adopt(fill)

    def copy(self, number: str, project: Project) -> str:
        """Create a project with all audio of another, whole or not at all; returns its id."""
        cover = self.cover(number)
        there = self._path(number).with_name("sounds")

        def fill(sounds: Path) -> Project:
            if cover:
                shutil.copyfile(cover, sounds.with_name(COVER))
            for path in plain_files(there, SUFFIX):
                try:
                    (sounds / path.name).hardlink_to(path)  # audio files never change
                except OSError:
                    shutil.copyfile(path, sounds / path.name)
            return project

        return self.adopt(fill)

    def adopt(self, fill: Callable[[Path], Project]) -> str:
        """Create a project that `fill` returns, with the audio it writes into a folder.

        Whole or not at all; returns its id.
        """
        number = new_id(self._clock())
        unfinished = self._folder / f"{_UNFINISHED}{number}"
        try:
            with explain_write_errors(self._folder):
                (unfinished / "sounds").mkdir(parents=True)
                project = fill(unfinished / "sounds")
                now = self._clock()
                whole = project.having(created=now, changed=now)
                write_atomic(unfinished / FILE, dumped(whole))
                unfinished.rename(self._folder / number)
        finally:
            shutil.rmtree(unfinished, ignore_errors=True)
        return number

    def open(self, number: str) -> Project:
        """Read a project. Raises RequestError; DamagedProject where it is there."""
        try:
            return _read(self._path(number))
        except (OSError, ValueError) as error:
            raise DamagedProject("This script cannot be opened: its file is damaged.") from error

    def save(self, number: str, project: Project) -> Project:
        """Replace a project's file; after this returns it survives a crash."""
        self._path(number)
        return self._write(number, project)

    def sounds(self, number: str) -> LineAudio:
        """The audio of a project; one shared object."""
        folder = self._path(number).parent
        with self._lock:
            if number not in self._sounds:
                sweep_unfinished(folder)
                self._sounds[number] = LineAudio(folder / "sounds")
            return self._sounds[number]

    def cover(self, number: str) -> Path | None:
        """A JPEG, if the project has one."""
        path = self._path(number).with_name(COVER)
        return path if is_plain_file(path) else None

    def superseded(self, number: str, used: Collection[str], older_than: float) -> set[str]:
        """Keys of audio that was not among `used` for so many seconds, whenever this was called."""
        unused = self.sounds(number).keys().difference(used)
        now = self._clock()
        times = note_superseded(self._path(number).parent, unused, now)
        return {key for key, since in times.items() if now - since >= older_than}

    def begin_rendering(self, number: str) -> None:
        folder = self._path(number).parent
        with explain_write_errors(folder):
            (folder / RENDERING).touch()

    def resume_rendering(self, number: str, done: int) -> bool:
        """Whether to go on with a rendering that a server's end broke off, with `done` lines done.

        Only if some were done since it was resumed last: it may be what ended the server.
        """
        path = self._path(number).with_name(RENDERING)
        try:
            before = path.read_text("ascii").strip()
            if before == str(done):
                return False
            write_atomic(path, str(done).encode())
        except (OSError, ValueError):
            return False
        return True

    def end_rendering(self, number: str) -> None:
        """Note that a rendering has completed or was stopped."""
        if is_safe_id(number):
            (self._folder / number / RENDERING).unlink(missing_ok=True)

    def is_rendering(self, number: str) -> bool:
        """Whether a rendering has begun and not ended, also of a server that was killed."""
        return is_safe_id(number) and (self._folder / number / RENDERING).is_file()

    def listed(self, deleted: bool = False) -> list[ProjectSummary]:
        """Projects that can be opened, or with `deleted` restored; the latest change first."""
        listed = [card for card, gone in self._all_cards() if (gone is not None) == deleted]
        return sorted(listed, key=lambda each: each.changed, reverse=True)

    def damaged(self) -> list[Path]:
        """Files that cannot be read as a project; they are never deleted."""
        return [path for path in self._files() if not _is_readable(path)]

    def delete(self, number: str) -> None:
        """Mark a project as deleted; `restore` undoes it."""
        project = self.open(number)
        self._write(number, project.having(deleted=self._clock()), touch=False)

    def restore(self, number: str) -> None:
        self._write(number, self.open(number).having(deleted=None), touch=False)

    def purge(self, older_than: float = 0.0) -> int:
        """Delete projects that were marked so many seconds ago; returns their number."""
        latest = self._clock() - older_than
        gone = [card.id for card, when in self._all_cards() if when is not None and when <= latest]
        for number in gone:
            folder = self._path(number).parent
            (folder / FILE).unlink()  # first, so that the rest is no project
            shutil.rmtree(folder, ignore_errors=True)
            with self._lock:
                self._sounds.pop(number, None)
        return len(gone)

    def _write(self, number: str, project: Project, touch: bool = True) -> Project:
        saved = project.having(changed=self._clock()) if touch else project
        with self._lock:
            write_atomic(self._folder / number / FILE, dumped(saved))
        return saved

    def _path(self, number: str) -> Path:
        folder = self._folder / number if is_safe_id(number) else None
        if folder is None or folder.is_symlink() or not is_plain_file(folder / FILE):
            raise RequestError("There is no such script. It may have been deleted.")
        return folder / FILE

    def _files(self) -> list[Path]:
        folders = sorted(self._folder.iterdir()) if self._folder.is_dir() else []
        named = [each for each in folders if is_safe_id(each.name) and not each.is_symlink()]
        return [each / FILE for each in named if is_plain_file(each / FILE)]

    def _all_cards(self) -> list[Card]:
        """Cards of all readable projects; a file is read again only after a change."""
        found: dict[str, tuple[Stamp, Card]] = {}
        for path in self._files():
            number = path.parent.name
            try:
                stat = path.stat()
                written = (stat.st_mtime_ns, stat.st_ino)
                known = self._cards.get(number)
                found[number] = known if known and known[0] == written else (written, _card(path))
            except (OSError, ValueError):
                continue
        self._cards = found
        return [card for _, card in found.values()]


def _card(path: Path) -> Card:
    project = _read(path)
    lines = len(project.script.lines)
    voices = frozenset(project.casting.voices_of(project.script.speakers).values())
    listed = ProjectSummary(
        path.parent.name, project.title, lines, project.created, project.changed, voices
    )
    return listed, project.deleted


def _read(path: Path) -> Project:
    if path.stat().st_size > MAX_BYTES:
        raise ValueError(f"{path} is too large for a project")
    return parsed(path.read_bytes())


def _is_readable(path: Path) -> bool:
    try:
        _read(path)
    except (OSError, ValidationError, ValueError):
        return False
    return True
