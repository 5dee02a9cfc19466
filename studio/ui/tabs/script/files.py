"""Exports of the Script tab, and the `/script` endpoint from text to audio file."""

from __future__ import annotations

import asyncio
import re
import secrets
import tempfile
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from engine import SAMPLE_RATE, InvalidSetting, RequestError
from studio.scripts import (
    BatchSynthesis,
    Casting,
    Delivery,
    LineAudio,
    Project,
    Timeline,
    build_timeline,
    chapter_list,
    export_file,
    export_lines,
    loudness_gains,
    plan,
    resolve_cast,
    srt,
    vtt,
)
from studio.scripts.export.audio_files import AudioFormat, Tags
from studio.scripts.export.loudness import WANTED
from studio.ui.context import Studio
from studio.ui.tabs.script.store import OpenScript, ScriptStore, title_of
from studio.ui.tabs.voice_form import told_to_programs


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


def export(
    opened: OpenScript, options: ExportOptions, folder: Path, on_progress: Callable[[float], object]
) -> list[Path]:
    """Export into a new folder under `folder`."""
    if opened.sounds is None:
        raise RequestError("There is nothing to export yet. Write a text and press Speak.")
    form = AudioFormat(options.kind, options.rate, options.bitrate)
    own = folder / secrets.token_hex(16)
    own.mkdir(parents=True)
    timeline = build_timeline(opened.script, opened.jobs, opened.sounds)
    title = opened.project.title
    name = safe_name(title)
    gains = None
    if options.loudness is not None and timeline.heard:
        gains = loudness_gains(timeline, opened.sounds, options.loudness)
    texts = _texts(timeline, name) if options.texts else {}
    tags = Tags(title, options.artist.strip()[:200])
    common: dict[str, Any] = dict(
        form=form, tags=tags, gains=gains, partial=options.partial, on_progress=on_progress
    )
    if options.by_line:
        path = own / f"{name}.zip"
        return [export_lines(path, timeline, opened.sounds, texts=texts, **common)]
    path = own / f"{name}.{form.kind}"
    return [export_file(path, timeline, opened.sounds, **common), *_written(own, texts)]


def save_project(store: ScriptStore, number: str, folder: Path) -> Path:
    """Write the project file into a new folder under `folder`."""
    own = folder / secrets.token_hex(16)
    own.mkdir(parents=True)
    return store.save_project(number, own, safe_name(store.open(number).project.title))


def safe_name(title: str) -> str:
    """A title as a file name that every system allows."""
    return "-".join(re.findall(r"\w+", title))[:60].strip("-_") or "script"


def _texts(timeline: Timeline, name: str) -> dict[str, str]:
    texts = {f"{name}.srt": srt(timeline), f"{name}.vtt": vtt(timeline)}
    if len(timeline.chapters) > 1:
        texts[f"{name}-chapters.txt"] = chapter_list(timeline)
    return texts


def _written(folder: Path, texts: dict[str, str]) -> list[Path]:
    for name, text in texts.items():
        (folder / name).write_text(text, encoding="utf-8")
    return [folder / name for name in texts]


class ScriptEndpoint:
    """`/script`: text to audio and subtitles in one call; nothing is stored."""

    def __init__(self, studio: Studio, store: ScriptStore) -> None:
        self._studio = studio
        self._store = store

    async def script(
        self, text: str, voice: str, cast: str, language: str, seed: float, format: str
    ) -> AsyncIterator[tuple[str, str]]:
        """Yield the paths; Gradio copies the files before it resumes."""
        with tempfile.TemporaryDirectory() as folder, told_to_programs(), _fitting():
            casting = read_cast(cast, voice or self._store.voices()[0][1])
            delivery = Delivery().having(language=language or "auto", seed=seed or 0)
            opened = await asyncio.to_thread(
                self._planned, text, casting, delivery, LineAudio(Path(folder))
            )
            assert opened.sounds is not None
            rendering = BatchSynthesis(
                self._studio.engine, opened.jobs, opened.sounds, listening=False
            )
            async with rendering:
                while not rendering.over:
                    await rendering.changed()
            if failure := rendering.first_error:
                raise RequestError(failure)
            options = ExportOptions(format)
            files = await asyncio.to_thread(export, opened, options, Path(folder), lambda _: None)
            yield str(files[0]), str(files[1])

    def _planned(
        self, text: str, casting: Casting, delivery: Delivery, sounds: LineAudio
    ) -> OpenScript:
        script = self._studio.imports.typed(text, speakers=tuple(casting.voices))
        cast = resolve_cast(script.speakers, casting, self._store.resolve)
        jobs = plan(script, cast, delivery)
        title = title_of(script)
        project = Project(title=title, script=script, casting=casting, delivery=delivery)
        return OpenScript("", project, jobs, sounds)


@contextmanager
def _fitting() -> Iterator[None]:
    """What fits no field of a script becomes InvalidSetting, with its reason."""
    try:
        yield
    except ValidationError as error:
        first = error.errors()[0]
        field, problem = ".".join(map(str, first["loc"])), first["msg"]
        raise InvalidSetting("{field}: {problem}.", field=field, problem=problem) from error


def read_cast(text: str, default: str) -> Casting:
    """`Anna = clara`, one a line or with commas between."""
    pairs = [entry.partition("=") for entry in re.split(r"[\n,]", text) if entry.strip()]
    wrong = next((name for name, sign, voice in pairs if not sign or not voice.strip()), None)
    if wrong is not None:
        raise InvalidSetting(
            "Write the cast as `Anna = clara`, not {wrong!r}.", wrong=wrong.strip()[:60]
        )
    voices = {name.strip(): voice.strip() for name, _, voice in pairs}
    return Casting(default=default, voices=voices)
