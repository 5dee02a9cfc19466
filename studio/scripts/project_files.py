"""A project as one file: a .zip with `project.json` and the audio of its lines, takes and music.

    project.json
    sounds/<key>.flac
    cover.jpg

studio/imports/projects/project_reader.py reads it, since a file may come from a stranger.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from zipfile import ZIP_DEFLATED, ZIP_STORED, ZipFile

from engine import SAMPLE_RATE, atomic_replace
from studio.scripts.line_audio import SUFFIX, LineAudio
from studio.scripts.line_requests import Job
from studio.scripts.projects import COVER, FILE, Project, dumped

MOST_PARTS = 60_000
MOST_AUDIO = 1 << 30  # bytes of all audio
MOST_SOUND = 64 << 20  # bytes of a line's audio
LONGEST_SOUND = 1200 * SAMPLE_RATE  # samples


def export_project(
    path: Path, project: Project, jobs: Sequence[Job], sounds: LineAudio, cover: Path | None = None
) -> Path:
    """Everything that another server needs to go on with the project."""
    with atomic_replace(path) as part, ZipFile(part, "w", ZIP_STORED) as archive:
        archive.writestr(FILE, dumped(project), ZIP_DEFLATED)
        if cover:
            archive.write(cover, COVER)
        for key in list(_keys(project, jobs, sounds))[: MOST_PARTS - 2]:
            archive.write(sounds.path(key), f"sounds/{key}{SUFFIX}")
    return path


def _keys(project: Project, jobs: Sequence[Job], sounds: LineAudio) -> Iterator[str]:
    """Keys of audio: of the music, of all lines, then of earlier takes."""
    music = [cue.sound for cue in project.cues]
    takes = [take.key for each in project.takes.values() for take in each]
    keys = [key for job in jobs for key in (job.key, job.natural)]
    for key in dict.fromkeys([*music, *keys, *takes]):
        if key and key in sounds:
            yield key
