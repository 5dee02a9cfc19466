"""Exports of an open script: one file or one per line, with subtitles and chapters; projects."""

from __future__ import annotations

import re
import secrets
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Literal, TypeAlias

from engine import SAMPLE_RATE, RequestError
from studio.scripts.books import LANGUAGES
from studio.scripts.export.audio_files import AudioFormat, Tags
from studio.scripts.export.captions import captions, chapter_list, srt, vtt
from studio.scripts.export.export_files import export_file, export_lines
from studio.scripts.export.loudness import WANTED, loudness_gains
from studio.scripts.line_audio import LineAudio
from studio.scripts.open_script import OpenScript
from studio.scripts.projects import Project
from studio.scripts.store import ScriptStore
from studio.scripts.timeline import Timeline, build_timeline, check_whole

Step: TypeAlias = Literal["loudness", "subtitles", "audio"]  # of an export, in this order
OnStep: TypeAlias = Callable[[Step, float], object]  # called with the progress of a step, 0 to 1

# Of Windows, or nothing.
_DEVICE = re.compile(r"|con|prn|aux|nul|(?:com|lpt)[\d¹²³]", re.IGNORECASE)

_THREE_LETTERS = {
    "zh": "zho", "en": "eng", "ja": "jpn", "ko": "kor", "de": "deu", "fr": "fra", "ru": "rus",
    "pt": "por", "es": "spa", "it": "ita", "nl": "nld", "sv": "swe", "pl": "pol", "ar": "ara",
    "tr": "tur", "he": "heb", "cs": "ces", "da": "dan", "fi": "fin", "el": "ell", "uk": "ukr",
}  # fmt: skip


@dataclass(frozen=True)
class ExportOptions:
    """How a script is exported."""

    kind: str = "mp3"
    by_line: bool = False
    texts: bool = True  # subtitles and chapters
    loudness: float | None = WANTED  # LUFS that every voice is brought to; None: as spoken
    partial: bool = False  # leave out what is not rendered
    rate: int = SAMPLE_RATE
    bitrate: int | None = None  # kbit/s
    artist: str = ""

    @property
    def form(self) -> AudioFormat:
        """Raises InvalidSetting."""
        return AudioFormat(self.kind, self.rate, self.bitrate)

    @property
    def steps(self) -> tuple[Step, ...]:
        """The steps of an export with these options, in order."""
        loudness: tuple[Step, ...] = () if self.loudness is None else ("loudness",)
        return (*loudness, *(("subtitles",) if self.texts else ()), "audio")


def check_export(opened: OpenScript, options: ExportOptions) -> None:
    """Raises RequestError where `export` would refuse."""
    options.form  # noqa: B018 (raises)
    _timeline(opened, options)
    if opened.music and not options.by_line:
        opened.music.check()


def export(opened: OpenScript, options: ExportOptions, folder: Path, on_step: OnStep) -> list[Path]:
    """Export into a new folder under `folder`; what `on_step` raises ends it."""
    form, timeline = options.form, _timeline(opened, options)
    target = folder / secrets.token_hex(16)
    target.mkdir(parents=True)
    try:
        return _exported(opened, options, timeline, form, target, on_step)
    except BaseException:
        shutil.rmtree(target, ignore_errors=True)
        raise


def _exported(
    opened: OpenScript,
    options: ExportOptions,
    timeline: Timeline,
    form: AudioFormat,
    target: Path,
    on_step: OnStep,
) -> list[Path]:
    assert opened.sounds is not None
    title = opened.project.title
    name = safe_name(title)
    gains = None
    if options.loudness is not None:
        measured = partial(on_step, "loudness")
        music = None if options.by_line else opened.music
        gains = loudness_gains(timeline, opened.sounds, options.loudness, measured, music)
    texts: dict[str, str] = {}
    if options.texts:
        texts = _texts(timeline, name, opened.sounds, partial(on_step, "subtitles"))
    artist = options.artist.strip()[:200] or opened.project.book.author
    tags = Tags(
        title,
        artist,
        language=_language(opened.project),
        cover=opened.cover.read_bytes() if opened.cover else b"",
    )
    common: dict[str, Any] = dict(
        form=form,
        tags=tags,
        gains=gains,
        partial=options.partial,
        on_progress=partial(on_step, "audio"),
    )
    if options.by_line:
        path = target / f"{name}.zip"
        return [export_lines(path, timeline, opened.sounds, texts=texts, **common)]
    path = target / f"{name}.{form.kind}"
    whole = export_file(path, timeline, opened.sounds, music=opened.music, **common)
    return [whole, *_written(target, texts)]


def save_project(store: ScriptStore, number: str, folder: Path) -> Path:
    """Write the project file into a new folder under `folder`."""
    target = folder / secrets.token_hex(16)
    target.mkdir(parents=True)
    return store.save_project(number, target, safe_name(store.open(number).project.title))


def safe_name(title: str) -> str:
    """A title as a file name that every system allows."""
    name = "-".join(re.findall(r"\w+", title))[:60].strip("-_")
    return f"script-{name}".rstrip("-") if _DEVICE.fullmatch(name) else name


def _language(project: Project) -> str:
    """The language in three letters, as audio files have it; empty where it is unknown."""
    tag = project.book.language.lower()[:2]
    name = project.delivery.language
    named = next((code for code, each in LANGUAGES.items() if each == name), tag)
    return _THREE_LETTERS.get(named, "")


def _timeline(opened: OpenScript, options: ExportOptions) -> Timeline:
    """Raises RequestError where nothing, or not all that is wanted, can be heard."""
    if opened.sounds is None:
        raise RequestError("There is nothing to export yet. Write a text and press Speak.")
    timeline = build_timeline(opened.script, opened.jobs, opened.sounds)
    if not options.partial or not timeline.heard:
        check_whole(timeline)
    return timeline


def _texts(
    timeline: Timeline, name: str, sounds: LineAudio, on_progress: Callable[[float], object]
) -> dict[str, str]:
    shown = captions(timeline, sounds, on_progress)  # aligned once
    texts = {f"{name}.srt": srt(shown), f"{name}.vtt": vtt(shown)}
    if len(timeline.chapters) > 1:
        texts[f"{name}-chapters.txt"] = chapter_list(timeline)
    return texts


def _written(folder: Path, texts: dict[str, str]) -> list[Path]:
    for name, text in texts.items():
        (folder / name).write_text(text, encoding="utf-8")
    return [folder / name for name in texts]
