"""Audio output: files and the loudspeaker.

The file's extension picks the format, and files are written atomically. This module takes samples;
it knows no requests and no streams.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from queue import SimpleQueue
from typing import Any

import numpy as np

from engine.atomic import atomic_replace, explain_write_errors
from engine.audio.sound_formats import SOUND_FORMATS
from engine.errors import InvalidAudio, InvalidSetting, NoLoudspeaker
from engine.types import SAMPLE_RATE, Pcm

_PIECE = SAMPLE_RATE // 10  # samples per write: stopping takes a tenth of a second at most
_BLOCK = SAMPLE_RATE  # libsndfile's Vorbis writer overflows its stack on long buffers


class SoundWriter:
    """An audio file that is written chunk by chunk."""

    def __init__(self, file: Any, rate: int = SAMPLE_RATE) -> None:
        self._file, self._rate = file, rate
        self.samples = 0

    def write(self, pcm: Pcm) -> None:
        for start in range(0, len(pcm), _BLOCK):
            self._file.write(pcm[start : start + _BLOCK])
        self.samples += len(pcm)

    @property
    def seconds(self) -> float:
        return self.samples / self._rate


@contextmanager
def open_sound(path: str | os.PathLike[str], rate: int = SAMPLE_RATE) -> Iterator[SoundWriter]:
    """Write an audio file; it is renamed to `path` when the block ends without an exception."""
    import soundfile

    target = check_target(path)
    form = SOUND_FORMATS[_ending(target)]
    with (
        atomic_replace(target) as part,
        _Disk(part, target) as disk,
        soundfile.SoundFile(disk, "w", rate, 1, form.encoding, format=form.container) as file,
    ):
        yield SoundWriter(file, rate)


class _Disk:
    """A file for libsndfile that keeps write errors, which libsndfile drops while it closes."""

    def __init__(self, path: Path, target: Path) -> None:
        self._file, self._target = path.open("r+b", buffering=0), target
        self._error: OSError | None = None

    def write(self, data: bytes) -> int:
        rest = memoryview(data)
        try:
            while rest:
                rest = rest[self._file.write(rest) :]
        except OSError as error:
            self._error = self._error or error
        return len(data) - len(rest)

    def read(self, size: int) -> bytes:
        return self._file.read(size)

    def seek(self, offset: int, whence: int = os.SEEK_SET) -> int:
        return self._file.seek(offset, whence)

    def tell(self) -> int:
        return self._file.tell()

    def __enter__(self) -> _Disk:
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()
        with explain_write_errors(self._target):
            if self._error:
                raise self._error


def save_sound(path: str | os.PathLike[str], pcm: Pcm) -> Path:
    """Write samples to one file. Raises InvalidSetting for an unknown format."""
    with open_sound(path) as file:
        file.write(np.asarray(pcm, np.int16))
    return Path(path)


def check_target(path: str | os.PathLike[str]) -> Path:
    """A path that can be written to; checked before the work, not after it."""
    target = Path(path)
    if target.is_dir():
        raise InvalidSetting("{target} is a folder. Name a file in it.", target=target)
    if _ending(target) not in SOUND_FORMATS:
        there = ", ".join(f".{ending}" for ending in SOUND_FORMATS)
        raise InvalidSetting(
            "'{name}' names no sound format: end it in {there}.",
            name=target.name,
            there=there,
        )
    if not target.parent.is_dir():
        raise InvalidSetting("There is no folder {parent}. Make it first.", parent=target.parent)
    if not os.access(target.parent, os.W_OK):
        raise InvalidSetting("{target} cannot be written. Choose another place.", target=target)
    return target


def _ending(target: Path) -> str:
    return target.suffix.lower().removeprefix(".")


def duration(path: str | os.PathLike[str]) -> float:
    """Length of an audio file in seconds."""
    import soundfile

    try:
        return float(soundfile.info(path).duration)
    except (soundfile.SoundFileError, RuntimeError, OSError) as error:
        raise InvalidAudio(
            "Can't read {path}: it is no sound, or it is damaged.", path=path
        ) from error


class Loudspeaker:
    """The machine's audio output. `write` returns at once; a thread plays."""

    def __init__(self) -> None:
        self._stream = _open_speaker()
        self._queue: SimpleQueue[bytes | None] = SimpleQueue()
        self._hush = threading.Event()
        self._thread = threading.Thread(target=self._play, name="loudspeaker", daemon=True)

    def write(self, pcm: Pcm) -> None:
        for start in range(0, len(pcm), _PIECE):
            self._queue.put(np.ascontiguousarray(pcm[start : start + _PIECE], np.int16).tobytes())

    def __enter__(self) -> Loudspeaker:
        self._stream.start()
        self._thread.start()
        return self

    def __exit__(self, kind: object, value: object, at: object) -> None:
        """Play the rest; after an exception, or at one while playing, stop at once."""
        try:
            self._queue.put(None)
            if kind is None:
                self._thread.join()
        finally:
            self._hush.set()
            self._thread.join()
            self._stream.close()

    def _play(self) -> None:
        for data in iter(self._queue.get, None):
            if self._hush.is_set():
                break
            self._stream.write(data)
        end = self._stream.abort if self._hush.is_set() else self._stream.stop
        end()


def _open_speaker() -> Any:
    try:
        import sounddevice
    except (ImportError, OSError) as error:
        raise NoLoudspeaker(
            "The loudspeaker needs PortAudio. Install it (on Debian: apt install libportaudio2), "
            "or write a file with --out."
        ) from error
    try:
        return sounddevice.RawOutputStream(samplerate=SAMPLE_RATE, channels=1, dtype="int16")
    except sounddevice.PortAudioError as error:
        raise NoLoudspeaker("This machine has no loudspeaker. Write a file with --out.") from error
