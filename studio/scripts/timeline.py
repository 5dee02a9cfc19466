"""The position of every line in the whole, exact to the sample.

Audio files, subtitles and chapters are made from the same timeline, so they agree. This module
reads lengths and audio by key and knows no formats.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from engine import SAMPLE_RATE, InvalidSetting, Pcm
from studio.scripts.line_audio import LineAudio
from studio.scripts.line_requests import Job
from studio.scripts.model import Line, Script

_BLOCK = 10 * SAMPLE_RATE  # samples of silence per block


@dataclass(frozen=True)
class Span:
    """A line on the timeline: audio from `start` to `end`, then silence, in samples."""

    line: Line
    text: str  # what is heard of the line
    key: str
    start: int
    end: int
    silence: int

    @property
    def samples(self) -> int:
        return self.end - self.start


@dataclass(frozen=True)
class Chapter:
    """A chapter on the timeline, in samples."""

    title: str
    start: int
    end: int


@dataclass(frozen=True)
class Timeline:
    """All spans in order."""

    spans: tuple[Span, ...]
    titles: tuple[str, ...]

    @property
    def samples(self) -> int:
        last = self.spans[-1] if self.spans else None
        return last.end + last.silence if last else 0

    @property
    def heard(self) -> tuple[Span, ...]:
        """The spans with audio."""
        return tuple(span for span in self.spans if span.samples)

    @property
    def chapters(self) -> tuple[Chapter, ...]:
        """Chapters with lines; lines before the first heading are a chapter without a title."""
        starts: dict[int, int] = {}
        for span in self.spans:
            starts.setdefault(span.line.chapter, span.start)
        ends = [*starts.values(), self.samples][1:]
        return tuple(
            Chapter(self.titles[number] if number < len(self.titles) else "", start, end)
            for (number, start), end in zip(starts.items(), ends, strict=True)
        )


def build_timeline(script: Script, jobs: Sequence[Job], sounds: LineAudio) -> Timeline:
    """Build the timeline; a line without audio takes no time and no pause."""
    spans: list[Span] = []
    start = 0
    for line, job in zip(script.lines, jobs, strict=True):
        samples = sounds.samples(job.key) if job.key else 0
        spoken = samples > 0 or not job.key
        silence = round(job.pause * SAMPLE_RATE) if spoken else 0
        spans.append(Span(line, job.said, job.key, start, start + samples, silence))
        start += samples + silence
    return Timeline(tuple(spans), script.chapters)


def missing(timeline: Timeline) -> tuple[Line, ...]:
    """Lines with text and without audio."""
    return tuple(span.line for span in timeline.spans if span.key and not span.samples)


def check_whole(timeline: Timeline) -> None:
    """Raises InvalidSetting if lines are missing."""
    lines = missing(timeline)
    if lines:
        raise InvalidSetting(
            "Lines that are not rendered yet: {count} of {total}. Press Speak, or tick “Skip "
            "unrendered lines”.",
            count=len(lines),
            total=len(timeline.spans),
        )
    if not timeline.heard:
        raise InvalidSetting("There is nothing to export yet. Press Speak first.")


def sound_of(span: Span, sounds: LineAudio) -> Pcm:
    """A line's audio, with the length in the timeline."""
    return sounds.read(span.key)[: span.samples] if span.samples else np.zeros(0, np.int16)


def silence_of(span: Span) -> Iterator[Pcm]:
    """The silence after a line, in blocks."""
    for start in range(0, span.silence, _BLOCK):
        yield np.zeros(min(_BLOCK, span.silence - start), np.int16)


def blocks(timeline: Timeline, sounds: LineAudio) -> Iterator[Pcm]:
    """The whole as blocks of samples, including silences."""
    for span in timeline.spans:
        yield sound_of(span, sounds)
        yield from silence_of(span)
