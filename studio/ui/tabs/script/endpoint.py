"""The `/script` endpoint: text, with music under it, to audio and subtitles in one call; nothing is
stored."""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from pydantic import ValidationError

from engine import InvalidSetting, RequestError
from studio.context import Studio
from studio.scripts import BatchSynthesis, Delivery, LineAudio
from studio.scripts.casting import read_cast
from studio.scripts.export.script_files import ExportOptions, export
from studio.scripts.music.cue import PLAIN
from studio.ui.i18n import errors_shown


class ScriptEndpoint:
    def __init__(self, studio: Studio) -> None:
        self._engine, self._store, self._music = studio.engine, studio.scripts, studio.music

    async def script(
        self,
        text: str,
        voice: str,
        cast: str,
        language: str,
        seed: float,
        format: str,
        music: str | None = None,
        music_level: float = PLAIN.level,
        ducking: float = PLAIN.ducking,
    ) -> AsyncIterator[tuple[str, str]]:
        """Yield the paths; Gradio copies the files before it resumes."""
        with tempfile.TemporaryDirectory() as folder, errors_shown(str), _fitting():
            casting = read_cast(cast, voice or self._store.voices()[0][1])
            delivery = Delivery().having(language=language or "auto", seed=seed or 0)
            sounds = LineAudio(Path(folder))
            opened = await asyncio.to_thread(self._store.unsaved, text, casting, delivery, sounds)
            if music:
                cue = await asyncio.to_thread(self._music.cue, Path(music), sounds)
                cue = cue.having(level=music_level, ducking=ducking)
                opened = replace(opened, project=opened.project.having(cues=(cue,)))
            rendering = BatchSynthesis(self._engine, opened.jobs, sounds, listening=False)
            async with rendering:
                while not rendering.over:
                    await rendering.changed()
            if failure := rendering.first_error:
                raise RequestError(failure)
            options = ExportOptions(format)
            files = await asyncio.to_thread(export, opened, options, Path(folder), lambda *_: None)
            yield str(files[0]), str(files[1])


@contextmanager
def _fitting() -> Iterator[None]:
    """Convert a value that a script's field refuses to InvalidSetting, with the reason."""
    try:
        yield
    except ValidationError as error:
        first = error.errors()[0]
        field, problem = ".".join(map(str, first["loc"])), first["msg"]
        raise InvalidSetting("{field}: {problem}.", field=field, problem=problem) from error
