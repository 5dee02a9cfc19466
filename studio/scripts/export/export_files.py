"""Exports a script as one audio file, or as an archive with a file per line, atomically."""

from __future__ import annotations

import re
import tempfile
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from zipfile import ZIP_STORED, ZipFile

from engine import Pcm, atomic_replace, check_target
from studio.scripts.export.audio_files import KINDS, AudioFormat, ChapterMark, Tags, open_audio
from studio.scripts.export.captions import chapter_title, milliseconds
from studio.scripts.export.loudness import AS_SPOKEN, Gains, as_pcm, mastered
from studio.scripts.line_audio import LineAudio
from studio.scripts.music.bed import Music
from studio.scripts.timeline import Span, Timeline, blocks, check_whole

OnProgress = Callable[[float], object]  # called with the progress, 0 to 1


def _nothing(_: float) -> None: ...


def export_file(
    path: Path,
    timeline: Timeline,
    sounds: LineAudio,
    *,
    form: AudioFormat | None = None,
    tags: Tags = Tags(),  # noqa: B008 (immutable)
    gains: Gains | None = None,
    music: Music | None = None,
    partial: bool = False,
    on_progress: OnProgress = _nothing,
) -> Path:
    """One audio file with its chapters; the extension tells the kind where `form` does not.

    `gains`: for loudness; None: the audio as it is, limited only where there is music. `partial`:
    skip lines without audio.
    """
    _check(timeline, partial)
    form = form or AudioFormat(_kind_of(path))
    tags = replace(tags, chapters=chapter_marks(timeline))
    written = 0
    with open_audio(path, form, tags) as file:
        for block in _blocks(timeline, sounds, gains, music):
            file.write(block)
            written += len(block)
            on_progress(min(1.0, written / max(1, timeline.samples)))
    return path


def export_lines(
    path: Path,
    timeline: Timeline,
    sounds: LineAudio,
    *,
    form: AudioFormat = AudioFormat("wav"),  # noqa: B008 (immutable)
    tags: Tags = Tags(),  # noqa: B008 (immutable)
    gains: Gains | None = None,
    texts: Mapping[str, str] | None = None,
    partial: bool = False,
    on_progress: OnProgress = _nothing,
) -> Path:
    """A .zip with an audio file per line, and `texts` by name: subtitles, chapters. No music."""
    _check(timeline, partial)
    with tempfile.TemporaryDirectory() as folder, atomic_replace(path) as part:
        sound = Path(folder) / f"line.{form.kind}"
        with ZipFile(part, "w", ZIP_STORED) as archive:
            for number, span in enumerate(timeline.heard, 1):
                alone = Timeline((replace(span, start=0, end=span.samples, silence=0),), ())
                line_tags = Tags(span.text[:120], tags.artist or span.line.speaker, str(number))
                with open_audio(sound, form, line_tags) as file:
                    for block in _blocks(alone, sounds, gains):
                        file.write(block)
                archive.write(sound, f"{line_name(number, span)}.{form.kind}")
                on_progress(number / len(timeline.heard))
            for name, text in (texts or {}).items():
                archive.writestr(Path(name).name, text)
    return path


def line_name(number: int, span: Span) -> str:
    """`0003-anna-where-have-you-been`: sorted in playing order, and safe on every system."""
    words = "-".join(re.findall(r"\w+", f"{span.line.speaker} {span.text}".lower()))
    return f"{number:04}-{words[:48]}".rstrip("-_")


def chapter_marks(timeline: Timeline) -> list[ChapterMark]:
    return [
        ChapterMark(chapter_title(each), milliseconds(each.start), milliseconds(each.end))
        for each in timeline.chapters
        if each.end > each.start
    ]


def _blocks(
    timeline: Timeline, sounds: LineAudio, gains: Gains | None, music: Music | None = None
) -> Iterator[Pcm]:
    if gains is None and not music:
        return blocks(timeline, sounds)
    return map(as_pcm, mastered(timeline, sounds, gains or AS_SPOKEN, music))


def _kind_of(path: Path) -> str:
    kind = path.suffix[1:].lower()
    return kind if kind in KINDS else check_target(path).suffix[1:]


def _check(timeline: Timeline, partial: bool) -> None:
    if not partial or not timeline.heard:
        check_whole(timeline)
