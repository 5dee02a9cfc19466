"""The script as a table with one row per line and its status."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from engine import SAMPLE_RATE
from studio.scripts.batch_synthesis import BatchSynthesis
from studio.scripts.edits import shown
from studio.scripts.line_audio import LineAudio
from studio.scripts.line_requests import Job
from studio.scripts.model import Script
from studio.scripts.tracks import Status, status_of


@dataclass(frozen=True)
class Row:
    """A line with its status."""

    line: int  # its id
    chapter: str
    speaker: str
    text: str  # for editing, with its pause as a tag
    status: Status
    error: str  # why it failed and what to do
    seconds: float  # of its audio; 0.0 without audio
    key: str  # of its audio; "" for a line without text
    seed: int | None  # its own; None: the script's


def sheet(
    script: Script, jobs: Sequence[Job], sounds: LineAudio, rendering: BatchSynthesis | None = None
) -> list[Row]:
    """A row for every line. `jobs` as `plan` made them of this very script."""
    return [
        Row(
            line=line.id,
            chapter=script.chapters[line.chapter] if line.chapter < len(script.chapters) else "",
            speaker=line.speaker,
            text=shown(line),
            status=rendering.status(line.id) if rendering else status_of(job, sounds),
            error=rendering.error(line.id) if rendering else "",
            seconds=sounds.samples(job.key) / SAMPLE_RATE if job.key else 0.0,
            key=job.key,
            seed=line.seed,
        )
        for line, job in zip(script.lines, jobs, strict=True)
    ]
