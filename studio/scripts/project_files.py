"""A project as one file: a .zip with `project.json` and the audio of its lines and takes.

    project.json
    sounds/<key>.flac

A file may come from a stranger: parts are bounded in number and bytes, names are taken only where
they are keys, audio is checked before it is kept, and a project appears whole or not at all.
"""

from __future__ import annotations

import io
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import IO
from zipfile import ZIP_DEFLATED, ZIP_STORED, ZipFile

import soundfile
from pydantic import ValidationError

from engine import SAMPLE_RATE, InvalidText, atomic_replace
from studio.scripts.importers.archives import DAMAGED, Archive, open_archive
from studio.scripts.importers.passages import MAX_CHAPTERS, MAX_CHARACTERS
from studio.scripts.line_audio import SUFFIX, LineAudio
from studio.scripts.line_requests import Job
from studio.scripts.model import MAX_LINES, check_speakers
from studio.scripts.projects import FILE, MAX_BYTES, Project, Projects
from studio.storage import is_safe_id

MOST_PARTS = 60_000
MOST_AUDIO = 1 << 30  # bytes of all audio
MOST_SOUND = 64 << 20  # bytes of a line's audio
LONGEST_SOUND = 1200 * SAMPLE_RATE  # samples
NO_PROJECT = "This .zip file holds no script of this studio."
_SOUND = re.compile(rf"sounds/([^/]+){re.escape(SUFFIX)}")


def export_project(path: Path, project: Project, jobs: Sequence[Job], sounds: LineAudio) -> Path:
    """Everything that another server needs to go on with the project."""
    with atomic_replace(path) as part, ZipFile(part, "w", ZIP_STORED) as archive:
        archive.writestr(FILE, project.model_dump_json(), ZIP_DEFLATED)
        for key in list(_keys(project, jobs, sounds))[: MOST_PARTS - 1]:
            archive.write(sounds.path(key), f"sounds/{key}{SUFFIX}")
    return path


def import_project(projects: Projects, file: IO[bytes], title: str = "") -> str:
    """A new project from a file, under `title` if there is one; its id. Raises InvalidText."""
    with open_archive(file, MOST_PARTS, MAX_BYTES + MOST_AUDIO) as archive:
        project = _project_of(archive)
        sounds = {match[1]: name for name in archive.names if (match := _SOUND.fullmatch(name))}

        def fill(folder: Path) -> None:
            for key, name in sounds.items():
                if is_safe_id(key):
                    sound = _checked(archive.read(name, MOST_SOUND))
                    (folder / f"{key}{SUFFIX}").write_bytes(sound)

        return projects.adopt(project.having(title=title or project.title, deleted=None), fill)


def title_in(file: IO[bytes]) -> str:
    """The title of the project in a file. Raises InvalidText."""
    with open_archive(file, MOST_PARTS, MAX_BYTES) as archive:
        return _project_of(archive).title


def _keys(project: Project, jobs: Sequence[Job], sounds: LineAudio) -> Iterator[str]:
    """Keys of audio: of all lines, then of earlier takes."""
    takes = [take.key for own in project.takes.values() for take in own]
    own = [key for job in jobs for key in (job.key, job.natural)]
    for key in dict.fromkeys([*own, *takes]):
        if key and key in sounds:
            yield key


def _project_of(archive: Archive) -> Project:
    if FILE not in archive:
        raise InvalidText(NO_PROJECT)
    try:
        project = Project.model_validate_json(archive.read(FILE, MAX_BYTES))
    except ValidationError as error:
        raise InvalidText(NO_PROJECT) from error
    lines = project.script.lines
    ids = {line.id for line in lines}
    characters = sum(len(line.text) for line in lines)
    if not lines or len(ids) != len(lines) or min(ids) < 0 or characters > MAX_CHARACTERS:
        raise InvalidText(DAMAGED)
    cast, delivery = project.casting, project.delivery
    if (
        len(project.script.chapters) > MAX_CHAPTERS
        or max(len(cast.voices), len(cast.digests), len(delivery.spellings)) > MAX_LINES
    ):
        raise InvalidText(DAMAGED)
    check_speakers(project.script)
    issued = max(project.script.issued, max(ids) + 1)
    return project.having(script=project.script.having(issued=issued))


def _checked(data: bytes) -> bytes:
    """A FLAC file such as lines have. Raises InvalidText."""
    try:
        info = soundfile.info(io.BytesIO(data))
    except (soundfile.SoundFileError, RuntimeError, TypeError) as error:
        raise InvalidText(DAMAGED) from error
    own = (info.format, info.samplerate, info.channels)
    if own != ("FLAC", SAMPLE_RATE, 1) or not 0 < info.frames <= LONGEST_SOUND:
        raise InvalidText(DAMAGED)
    return data
