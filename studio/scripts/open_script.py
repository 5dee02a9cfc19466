"""A script as it is open: the project with its planned jobs and their audio. Changes nothing."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from studio.scripts import Job, Line, LineAudio, Project, Script
from studio.scripts.line_takes import LineTake, take_of
from studio.scripts.music.bed import Bed, Music
from studio.scripts.timeline import build_timeline
from studio.scripts.tracks import spoken_key


@dataclass(frozen=True, eq=False)
class OpenScript:
    """A script with its planned jobs. `number` and `sounds` are empty for a new one."""

    number: str
    project: Project
    jobs: tuple[Job, ...]
    sounds: LineAudio | None
    able: frozenset[str] = frozenset()  # speakers whose voices follow instructions
    cover: Path | None = None  # of its book, a JPEG
    moods: Mapping[str, str] = field(default_factory=dict)  # of the library, by all their names

    @property
    def script(self) -> Script:
        return self.project.script

    @property
    def music(self) -> Music | None:
        """None where there is no cue."""
        if not self.project.cues or self.sounds is None:
            return None
        return Music(self.project.cues, self.script, self.sounds)

    def bed(self, line: int) -> Bed | None:
        """The music from a line on, as far into it as what is spoken before has taken."""
        music = self.music
        if music is None or self.sounds is None:
            return None
        timeline = build_timeline(self.script, self.jobs, self.sounds)
        return music.bed(timeline, self.script.place(line))

    def job(self, line: int) -> Job:
        """Raises InvalidText when there is no such line."""
        return self.jobs[self.script.place(line)]

    def take(self, line: int) -> str:
        """The key of a line's audio; empty if it has none."""
        key = self.job(line).key
        return key if self.sounds and key in self.sounds else ""

    def takes(self, line: Line, job: Job | None = None) -> list[LineTake]:
        """A line's takes that have audio, including the current one."""
        assert self.sounds is not None
        takes = [*self.project.takes.get(line.id, ())]
        job = job or self.job(line.id)
        now = spoken_key(job, self.sounds)
        if now and all(each.key not in (now, job.key) for each in takes):
            takes.append(take_of(line, now, self.project.casting))
        return [each for each in takes if each.key in self.sounds]
