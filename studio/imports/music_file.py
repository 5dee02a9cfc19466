"""Reads music from an audio file that a stranger may have made: its first ten minutes, mono.

Channels, rate and size are checked before the work that they bound, and the file is read in blocks,
so that little memory is used. Of a video only the first sound is decoded.
"""

from __future__ import annotations

import math
import os
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any, Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

from engine import (
    SAMPLE_RATE,
    InvalidText,
    Message,
    Undecodable,
    container_blocks,
    container_of,
)

SUFFIXES: Final = (".wav", ".flac", ".ogg", ".opus", ".mp3", ".m4a", ".mp4", ".webm")
MAX_BYTES: Final = 100 << 20
SHORTEST, LONGEST = 1.0, 600.0  # seconds
MOST_SAMPLES: Final = round(LONGEST * SAMPLE_RATE)  # of what is written
RATES: Final = (8_000, 192_000)
MAX_CHANNELS: Final = 8
FORMATS: Final = ("WAV", "WAVEX", "FLAC", "OGG", "MP3")
MOST_PACKETS: Final = 200_000
PATIENCE: Final = math.inf  # seconds of decoding: the process that reads it has a limit of its own
_BLOCK = 1 << 16  # frames
_READABLE = Message("Use a WAV, FLAC, OGG, MP3, M4A or WebM file.")
Block: TypeAlias = NDArray[np.float32]  # mono


def read_music(file: IO[bytes], target: Path) -> None:
    """Write its samples, 16 bits each, into a new file. Raises InvalidText."""
    _check_size(file.seek(0, os.SEEK_END))
    file.seek(0)
    container = container_of(file.read(8))
    file.seek(0)
    written = 0
    with target.open("xb") as out:
        for pcm in _resampled(_in_container(file, container) if container else _plain(file)):
            out.write(pcm[: MOST_SAMPLES - written].tobytes())
            written += len(pcm)
            if written >= MOST_SAMPLES:
                break
    if written < SHORTEST * SAMPLE_RATE:
        raise InvalidText("The music is shorter than a second. Choose a longer file.")


def _check_size(size: int) -> None:
    if size > MAX_BYTES:
        raise InvalidText(
            "The file has {size} MB; {most} MB is the most for music. Save it as MP3 or cut it.",
            size=size >> 20,
            most=MAX_BYTES >> 20,
        )


def _check_shape(rate: int, channels: int) -> None:
    if not RATES[0] <= rate <= RATES[1]:
        raise InvalidText(
            "The sample rate is {rate} Hz. Export it with 8,000 to 192,000 Hz.", rate=rate
        )
    if not 1 <= channels <= MAX_CHANNELS:
        raise InvalidText(
            "The file has {channels} channels. Export it in mono or stereo.", channels=channels
        )


def _unreadable() -> InvalidText:
    return InvalidText(
        "Can't read this file: it is no sound, or it is damaged. {advice}", advice=_READABLE
    )


def _resampled(blocks: Iterator[tuple[Block, int]]) -> Iterator[NDArray[np.int16]]:
    import soxr

    stream: Any = None
    for block, rate in blocks:
        if not np.isfinite(block).all():
            raise InvalidText("The file has samples that are no numbers. Export it again.")
        if stream is None:
            stream = soxr.ResampleStream(rate, SAMPLE_RATE, 1, dtype="float32", quality="HQ")
        yield _pcm(stream.resample_chunk(np.clip(block, -1.0, 1.0)))
    if stream is not None:
        yield _pcm(stream.resample_chunk(np.zeros(0, np.float32), last=True))


def _pcm(samples: Block) -> NDArray[np.int16]:
    pcm: NDArray[np.int16] = np.clip(np.rint(samples * 32768.0), -32768, 32767).astype("<i2")
    return pcm


def _plain(file: IO[bytes]) -> Iterator[tuple[Block, int]]:
    import soundfile

    try:
        with soundfile.SoundFile(file) as sound:
            if sound.format not in FORMATS:
                raise InvalidText(
                    "{format} files are not read. {advice}", format=sound.format, advice=_READABLE
                )
            known = 0 < sound.frames < 1 << 62
            _check_shape(sound.samplerate, sound.channels)
            count = 0
            while len(block := sound.read(_BLOCK, dtype="float32", always_2d=True)):
                yield block.mean(axis=1), sound.samplerate
                count += len(block)
            if known and count < sound.frames and sound.format != "MP3":  # whose header estimates
                raise InvalidText("The file is cut short. Copy or download it again.")
    except (soundfile.SoundFileError, RuntimeError, ValueError, TypeError) as error:
        raise _unreadable() from error


def _in_container(file: IO[bytes], container: str) -> Iterator[tuple[Block, int]]:
    try:
        for block in container_blocks(file, container, _check_shape, MOST_PACKETS, PATIENCE):
            if not block.steady:
                raise _unreadable()  # it changes on the way
            yield block.mono, block.rate
    except Undecodable as error:
        raise _unreadable() from error
