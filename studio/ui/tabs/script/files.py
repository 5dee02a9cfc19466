"""A spoken script as files for a person, and the whole way from a text to a file for a program."""

from __future__ import annotations

import asyncio
import re
import secrets
import tempfile
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass
from pathlib import Path

from engine import InvalidSetting, RequestError
from studio.context import Studio
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
    script_of_text,
    srt,
    vtt,
)
from studio.scripts.casting import Resolve
from studio.scripts.loudness import WANTED
from studio.takes.downloads import KINDS
from studio.ui.tabs.script.store import Opened, ScriptStore, title_of
from studio.ui.tabs.voice_form import told_to_programs


@dataclass(frozen=True)
class Wish:
    """What somebody wants to take along."""

    kind: str = "mp3"
    by_line: bool = False
    texts: bool = True  # subtitles and chapters
    loudness: float | None = WANTED  # LUFS that every voice is brought to; None: as spoken
    partial: bool = False  # leave out what is not spoken


def export(opened: Opened, wish: Wish, folder: Path, tell: Callable[[float], object]) -> list[Path]:
    """The files, in a folder of their own under `folder`."""
    if opened.sounds is None:
        raise RequestError("There is nothing to export yet. Write a text and press Speak.")
    if wish.kind not in KINDS:
        raise InvalidSetting("Choose a format: {there}.", there=", ".join(KINDS))
    own = folder / secrets.token_hex(16)
    own.mkdir(parents=True)
    timeline = build_timeline(opened.script, opened.jobs, opened.sounds)
    name = safe_name(opened.project.title)
    gains = None
    if wish.loudness is not None and timeline.heard:
        gains = loudness_gains(timeline, opened.sounds, wish.loudness)
    texts = _texts(timeline, name) if wish.texts else {}
    if wish.by_line:
        suffix, target = f".{wish.kind}", own / f"{name}.zip"
        return [
            export_lines(
                target, timeline, opened.sounds, suffix, gains=gains, texts=texts,
                partial=wish.partial, tell=tell,
            )
        ]  # fmt: skip
    target = own / f"{name}.{wish.kind}"
    sound = export_file(
        target, timeline, opened.sounds, gains=gains, partial=wish.partial, tell=tell
    )
    return [sound, *_written(own, texts)]


def safe_name(title: str) -> str:
    """A title as the name of a file on every system."""
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


class Programs:
    """`/script`: from a text to its sound and subtitles in one call; nothing is kept."""

    def __init__(self, studio: Studio, store: ScriptStore) -> None:
        self._studio = studio
        self._store = store

    async def script(
        self, text: str, voice: str, cast: str, language: str, seed: float, format: str
    ) -> AsyncIterator[tuple[str, str]]:
        """The sound and its subtitles. Gradio takes a copy before it goes on."""
        with tempfile.TemporaryDirectory() as folder, told_to_programs():
            casting = read_cast(cast, voice or self._store.voices()[0][1])
            delivery = Delivery().having(language=language or "auto", seed=int(seed or 0))
            opened = await asyncio.to_thread(
                _planned, text, casting, delivery, LineAudio(Path(folder)), self._store.resolve
            )
            assert opened.sounds is not None
            rendering = BatchSynthesis(
                self._studio.engine, opened.jobs, opened.sounds, listening=False
            )
            async with rendering:
                while not rendering.over:
                    await rendering.news()
            if failure := rendering.first_error:
                raise RequestError(failure)
            wish = Wish(format)
            files = await asyncio.to_thread(export, opened, wish, Path(folder), lambda _: None)
            yield str(files[0]), str(files[1])


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


def _planned(
    text: str, casting: Casting, delivery: Delivery, sounds: LineAudio, resolve: Resolve
) -> Opened:
    script = script_of_text(text, speakers=tuple(casting.voices))
    jobs = plan(script, resolve_cast(script.speakers, casting, resolve), delivery)
    project = Project(title=title_of(script), script=script, casting=casting, delivery=delivery)
    return Opened("", project, jobs, sounds)
