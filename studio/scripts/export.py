"""Exports a script as one audio file, or as an archive with a file per line, atomically."""

from __future__ import annotations

import re
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path
from zipfile import ZIP_STORED, ZipFile

from engine import atomic_replace, check_target, open_sound, save_sound
from studio.scripts.line_audio import LineAudio
from studio.scripts.timeline import Span, Timeline, blocks, check_whole, sound_of

Tell = Callable[[float], object]  # called with the progress, 0 to 1


def _nothing(_: float) -> None: ...


def export_file(
    path: Path,
    timeline: Timeline,
    sounds: LineAudio,
    *,
    gains: Mapping[str, float] | None = None,
    partial: bool = False,
    tell: Tell = _nothing,
) -> Path:
    """One audio file, by its extension. `partial`: skip lines without audio."""
    target = _checked(path, timeline, partial)
    written = 0
    with open_sound(target) as file:
        for block in blocks(timeline, sounds, gains):
            file.write(block)
            written += len(block)
            tell(written / max(1, timeline.samples))
    return target


def export_lines(
    path: Path,
    timeline: Timeline,
    sounds: LineAudio,
    suffix: str = ".wav",
    *,
    gains: Mapping[str, float] | None = None,
    texts: Mapping[str, str] | None = None,
    partial: bool = False,
    tell: Tell = _nothing,
) -> Path:
    """A .zip with an audio file per line, and `texts` by name: subtitles, chapters."""
    with tempfile.TemporaryDirectory() as folder:
        sound = _checked(Path(folder) / f"line{suffix}", timeline, partial)
        with atomic_replace(path) as part, ZipFile(part, "w", ZIP_STORED) as archive:
            for number, span in enumerate(timeline.heard, 1):
                save_sound(sound, sound_of(span, sounds, gains))
                archive.write(sound, line_name(number, span) + suffix)
                tell(number / len(timeline.heard))
            for name, text in (texts or {}).items():
                archive.writestr(Path(name).name, text)
    return path


def line_name(number: int, span: Span) -> str:
    """`0003-anna-where-have-you-been`: sorted in playing order, and safe on every system."""
    said = "-".join(re.findall(r"\w+", f"{span.line.speaker} {span.line.text}".lower()))
    return f"{number:04}-{said[:48]}".rstrip("-_")


def _checked(path: Path, timeline: Timeline, partial: bool) -> Path:
    if not partial or not timeline.heard:
        check_whole(timeline)
    return check_target(path)
