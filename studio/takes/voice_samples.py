"""A short sample of each voice, spoken once and kept, for a page that plays what is pointed at.

Nobody waits because of one: a sample is a file, which the scheduler serves last; it is begun while
no live listener is in a hurry, one at a time, and left and begun anew later where somebody comes
meanwhile. What is no longer wanted by the time its turn comes is not spoken. A sample does not know
whether its voice was deleted since, so it goes by age (studio/retention.py). Knows no page.
"""

from __future__ import annotations

import asyncio
import contextvars
import tempfile
import time
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Final

import numpy as np

from engine import (
    Pcm,
    SpeechEngine,
    SpeechRequest,
    TimbreError,
    Voice,
    atomic_replace,
    save_sound,
)
from studio.storage import is_plain_file, plain_files, sweep_unfinished
from studio.takes.take_store import DAY
from studio.voices.voice_digest import digest_of, voice_digest

TEXT: Final = "Hello. This is how I sound."
FOLDER: Final = "samples"  # of the data folder
SUFFIX: Final = ".flac"
MOST_KEPT: Final = 1000  # files of some 60 kB; the ones that were made first go
MOST_WAITING: Final = 4  # that were asked for last
PATIENCE: Final = 60.0  # seconds that a sample may take, with its waiting for live listeners
PAUSE: Final = 0.2  # seconds between two looks at them


def remove_older(folder: Path, days: float) -> None:
    """Delete the samples that were made before so many days."""
    before = time.time() - days * DAY
    for path in plain_files(folder, SUFFIX):
        with suppress(OSError):
            if path.stat().st_mtime < before:
                path.unlink()


class VoiceSamples:
    """The samples of a folder. `named`: a voice by its name or key."""

    def __init__(self, engine: SpeechEngine, folder: Path, named: Callable[[str], Voice]) -> None:
        self._engine, self._folder, self._named = engine, folder, named
        self._one = asyncio.Lock()
        self._wanted: deque[str] = deque(maxlen=MOST_WAITING)
        self._making: dict[str, asyncio.Task[bytes | None]] = {}

    async def sound(self, name: str) -> bytes | None:
        """The sample as a FLAC file; None: it cannot be spoken, or not now."""
        try:
            voice, digest = await asyncio.to_thread(self._found, name)
        except TimbreError:
            return None
        if kept := await asyncio.to_thread(self._read, digest):
            return kept
        if digest in self._wanted:
            self._wanted.remove(digest)
        self._wanted.append(digest)
        if digest not in self._making:
            # In a fresh context: it is no visitor's request, and counts for none.
            make = partial(asyncio.create_task, self._made(voice, digest))
            task = self._making[digest] = contextvars.Context().run(make)
            task.add_done_callback(lambda _: self._making.pop(digest, None))
        return await asyncio.shield(self._making[digest])

    def _found(self, name: str) -> tuple[Voice, str]:
        """The voice, and a digest of all that its sample depends on."""
        voice = self._named(name)
        model = self._engine.resolve(voice).checkpoint
        able = self._engine.capabilities()[model]
        return voice, digest_of([TEXT, able.name, able.digest, voice_digest(voice)])

    async def _made(self, voice: Voice, digest: str) -> bytes | None:
        async with self._one:
            if digest not in self._wanted:
                return None
            try:
                pcm = await asyncio.wait_for(self._spoken(voice), PATIENCE)
                return await asyncio.to_thread(self._keep, digest, pcm) if len(pcm) else None
            except (TimbreError, asyncio.TimeoutError):
                return None
            finally:
                with suppress(ValueError):
                    self._wanted.remove(digest)

    async def _spoken(self, voice: Voice) -> Pcm:
        """Whole, or nothing where it did not end by itself."""
        while True:
            while self._engine.hurried():
                await asyncio.sleep(PAUSE)
            request = SpeechRequest(TEXT, voice, seed=0, live=False)
            parts: list[Pcm] = []
            async with await asyncio.to_thread(self._engine.submit, request) as stream:
                async for chunk in stream:
                    parts.append(chunk.pcm)
                    if self._engine.hurried((stream.id,)):
                        break  # leaving the block gives its place back
                else:
                    ended = stream.end is not None and stream.end.reason == "finished"
                    return np.concatenate(parts) if parts and ended else np.zeros(0, np.int16)

    def _read(self, digest: str) -> bytes | None:
        path = self._folder / f"{digest}{SUFFIX}"
        return path.read_bytes() if is_plain_file(path) else None

    def _keep(self, digest: str, pcm: Pcm) -> bytes:
        with tempfile.TemporaryDirectory() as folder:
            sound = save_sound(Path(folder) / f"sample{SUFFIX}", pcm).read_bytes()
        with suppress(OSError, TimbreError):  # heard all the same, and spoken again next time
            self._folder.mkdir(parents=True, exist_ok=True)
            with atomic_replace(self._folder / f"{digest}{SUFFIX}") as part:
                part.write_bytes(sound)
            self._tidy()
        return sound

    def _tidy(self) -> None:
        sweep_unfinished(self._folder)
        kept = sorted(plain_files(self._folder, SUFFIX), key=lambda path: path.stat().st_mtime)
        for path in kept[:-MOST_KEPT]:
            path.unlink(missing_ok=True)
