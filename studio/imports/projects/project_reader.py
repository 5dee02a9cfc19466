"""Reads a project from a file (studio/scripts/project_files.py) that a stranger may have made.

What is counted, is counted before it is validated; names are taken only where they are keys; audio
is checked before it is kept, and JSON is bounded before anything is built of it (json_bounds.py).
Writes sounds into a folder and returns the project, packed.
"""

from __future__ import annotations

import io
import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import IO

import soundfile
from pydantic import ValidationError

from engine import SAMPLE_RATE, InvalidText
from studio.imports.archives import DAMAGED, TOO_LARGE, Archive, open_archive
from studio.imports.cover import MOST_BYTES, as_jpeg
from studio.imports.projects.json_bounds import check_json
from studio.imports.projects.packed import packed_project, unpacked_project
from studio.scripts.line_audio import SUFFIX
from studio.scripts.line_takes import MOST_IN_PROJECT, MOST_TAKES
from studio.scripts.model import MAX_LINES, check_speakers
from studio.scripts.project_files import LONGEST_SOUND, MOST_AUDIO, MOST_PARTS, MOST_SOUND
from studio.scripts.projects import COVER, FILE, Project
from studio.scripts.text.passages import MAX_CHAPTERS, MAX_CHARACTERS
from studio.scripts.text.pronunciation import MAX_ENTRIES
from studio.scripts.titles import is_plain
from studio.storage import is_safe_id

MOST_JSON = 32 << 20  # bytes; the longest script in Chinese, with all its takes, has 25
# Lines have ten values each, takes three; brackets and commas are counted as well.
# Parts of a book that are left out have four.
MOST_VALUES = 18 * MAX_LINES + 6 * MOST_IN_PROJECT + 8 * MAX_LINES
MOST_UNPACKED = 8  # times the size of the file: audio is compressed already
LONGEST_WORD = 400  # characters of a voice's key, a language, a model
NO_PROJECT = "This .zip file holds no script of this studio."
_UNCLEAN = re.compile("[\x00-\x1f\x7f-\x9f\ud800-\udfff]")
_SOUND = re.compile(rf"sounds/([^/]+){re.escape(SUFFIX)}")


def read_project(file: IO[bytes], folder: Path) -> bytes:
    """The packed project, checked; its audio is in `folder` then. Raises InvalidText."""
    size = file.seek(0, os.SEEK_END)
    file.seek(0)
    budget = MOST_JSON + min(MOST_AUDIO, MOST_UNPACKED * size)
    with open_archive(file, MOST_PARTS, budget) as archive:
        if FILE not in archive:
            raise InvalidText(NO_PROJECT)
        data = archive.read(FILE, MOST_JSON)
        check_json(data, MOST_VALUES)
        try:
            project = _checked(Project.model_validate_json(data))
        except ValidationError as error:
            raise InvalidText(NO_PROJECT) from error
        if COVER in archive and (cover := as_jpeg(archive.read(COVER, MOST_BYTES))):
            (folder.parent / COVER).write_bytes(cover)
        for key, name in _sounds(archive):
            (folder / f"{key}{SUFFIX}").write_bytes(_flac(archive.read(name, MOST_SOUND)))
    return packed_project(project)


def project_of(packed: bytes) -> Project:
    """The project that a process has read, checked once more. Raises InvalidText."""
    return _checked(unpacked_project(packed))


def _checked(project: Project) -> Project:
    lines = project.script.lines
    ids = {line.id for line in lines}
    cues = {cue.id for cue in project.cues}
    if not lines or len(ids) != len(lines) or len(cues) != len(project.cues):
        raise InvalidText(DAMAGED)
    if not is_plain(project.title) or not all(map(_is_clean, _texts(project))):
        raise InvalidText(DAMAGED)
    _check_counts(project)
    check_speakers(project.script)
    issued = max(project.script.issued, max(ids) + 1)
    return project.having(script=project.script.having(issued=issued))


def _check_counts(project: Project) -> None:
    script, cast, takes = project.script, project.casting, project.takes
    words = [*cast.voices, *cast.voices.values(), *cast.digests, *cast.digests.values()]
    words += [project.delivery.language, project.delivery.model or ""]
    bounds = (
        (sum(len(line.text) for line in script.lines), MAX_CHARACTERS),
        (sum(map(len, script.chapters)), MAX_CHARACTERS),
        (sum(len(part.text) for part in project.left_out), MAX_CHARACTERS),
        (len(script.chapters), MAX_CHAPTERS),
        (max(len(cast.voices), len(cast.digests)), MAX_LINES),
        (len(project.delivery.spellings), MAX_ENTRIES),
        (sum(map(len, takes.values())), MOST_IN_PROJECT),
        (max(map(len, takes.values()), default=0), MOST_TAKES),
        (max(map(len, words)), LONGEST_WORD),
    )
    if any(count > most for count, most in bounds):
        raise InvalidText(TOO_LARGE)


def _texts(project: Project) -> Iterator[str]:
    """Everything that is shown or spoken but the title."""
    for line in project.script.lines:
        yield from (line.text, line.speaker, line.direction)
    yield from project.script.chapters
    for part in project.left_out:  # which had tabs until 2026-11-28
        yield from part.text.replace("\t", " ").split("\n")
    yield from (project.book.title, project.book.author, project.book.language)
    yield from (cue.name for cue in project.cues)
    yield from (take.text for takes in project.takes.values() for take in takes)
    cast, delivery = project.casting, project.delivery
    yield from (*cast.voices, *cast.voices.values(), cast.default, delivery.language)
    for entry in delivery.spellings:
        yield from (entry.written, entry.spoken.replace("\t", " "))


def _is_clean(text: str) -> bool:
    """Without control characters and halves of characters, as what is typed here always is."""
    return _UNCLEAN.search(text) is None


def _sounds(archive: Archive) -> Iterator[tuple[str, str]]:
    """Keys and names in the archive."""
    for name in archive.names:
        match = _SOUND.fullmatch(name)
        if match and is_safe_id(match[1]):
            yield match[1], name


def _flac(data: bytes) -> bytes:
    """A FLAC file such as lines have. Raises InvalidText."""
    try:
        info = soundfile.info(io.BytesIO(data))
    except (soundfile.SoundFileError, RuntimeError, TypeError) as error:
        raise InvalidText(DAMAGED) from error
    kind = (info.format, info.samplerate, info.channels)
    if kind != ("FLAC", SAMPLE_RATE, 1) or not 0 < info.frames <= LONGEST_SOUND:
        raise InvalidText(DAMAGED)
    return data
