"""Reads sound files that strangers may have made, in blocks: the one list of what is read, and how.

The content tells the format, never the file's name. Of a container or a video the first sound is
read (av_decoder.py), everything else by libsndfile. A caller checks the shape before anything is
decoded, and stops where the sound is long enough. Every error is an InvalidAudio.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Generator
from contextlib import closing
from typing import IO, Any, Final, TypeAlias

import numpy as np

from engine.audio.av_decoder import (
    MOST_PACKETS,
    PATIENCE,
    Block,
    Undecodable,
    container_blocks,
    container_of,
)
from engine.errors import InvalidAudio
from engine.messages import Message
from engine.types import Waveform

FORMATS: Final = ("WAV", "WAVEX", "AIFF", "FLAC", "OGG", "MP3")  # as libsndfile calls them
READABLE: Final = Message("Use a WAV, AIFF, FLAC, OGG, MP3, M4A or WebM file.")
RATES: Final = (8_000, 192_000)
MAX_CHANNELS: Final = 8
_BLOCK = 1 << 16  # frames read at once
_RIFF_SLACK = 64  # bytes by which headers of common encoders are wrong
# Lengths in headers of what was written to a pipe: sox, espeak and arecord write about 2 GB.
_PIPED = range(0x7FFFF000, 0x80001000)
Check: TypeAlias = Callable[[int, int, int | None], None]  # rate, channels, frames if known


def check_shape(rate: int, channels: int, frames: int | None = None) -> None:
    """Raises InvalidAudio for a rate or a number of channels that is not read."""
    if not RATES[0] <= rate <= RATES[1]:
        raise InvalidAudio(
            "The sample rate is {rate} Hz. Export it with 8,000 to 192,000 Hz.", rate=rate
        )
    if not 1 <= channels <= MAX_CHANNELS:
        raise InvalidAudio(
            "The recording has {channels} channels. Export it in mono or stereo.", channels=channels
        )


def sound_blocks(
    file: IO[bytes],
    check: Check = check_shape,
    most_packets: int = MOST_PACKETS,
    patience: float = PATIENCE,
) -> Generator[Block, None, None]:
    """The sound of an open file. `check` is called before anything is decoded, as the shape bounds
    the work; the last two are bounds on the decoding of containers. Raises InvalidAudio."""
    size = file.seek(0, os.SEEK_END)
    file.seek(0)
    head = file.read(8)
    file.seek(0)
    container = container_of(head)
    if not container:
        _check_riff(head, size)
        yield from _plain_blocks(file, check)
        return

    def checked(rate: int, channels: int) -> None:
        check(rate, channels, None)

    try:
        yield from container_blocks(file, container, checked, most_packets, patience)
    except Undecodable as error:
        raise unreadable() from error


def read_sound(file: IO[bytes], seconds: float, check: Check) -> tuple[Waveform, int, int]:
    """Mono samples, up to `seconds` and a little more, their rate, and the channels of the file."""
    parts: list[Waveform] = []
    rate, channels, samples = 0, 0, 0
    with closing(sound_blocks(file, check)) as blocks:
        for block in blocks:
            parts.append(block.mono)
            rate, channels = block.rate, block.channels
            samples += len(block.mono)
            if samples > seconds * rate:
                break
    if not parts:
        raise unreadable()
    return np.concatenate(parts), rate, channels


def unreadable() -> InvalidAudio:
    return InvalidAudio(
        "Can't read this file: it is no sound, or it is damaged. {advice}", advice=READABLE
    )


def _plain_blocks(file: IO[bytes], check: Check) -> Generator[Block, None, None]:
    import soundfile

    try:
        with soundfile.SoundFile(file) as sound:
            if sound.format not in FORMATS:
                raise InvalidAudio(
                    "{format} files are not read. {advice}", format=sound.format, advice=READABLE
                )
            if "MPEG" in sound.subtype:  # soundfile seeks after each block to where it is: in an
                sound._info.seekable = 0  # MP3 amid a frame's bits, and libmpg123 logs errors
            frames, count = _promised(sound), 0
            check(sound.samplerate, sound.channels, frames)
            while len(block := sound.read(_BLOCK, dtype="float32", always_2d=True)):
                yield Block(block.mean(axis=1), sound.samplerate, sound.channels, True)
                count += len(block)
            if "MPEG" not in sound.subtype and count < (frames or 0):  # an MP3 estimates its length
                raise _cut_short()
    except (soundfile.SoundFileError, RuntimeError, ValueError, TypeError) as error:
        raise unreadable() from error


def _promised(sound: Any) -> int | None:
    """The number of frames in the header; None where it is not given."""
    return int(sound.frames) if 0 < sound.frames < 1 << 62 else None


def _check_riff(head: bytes, size: int) -> None:
    """libsndfile accepts a truncated WAV; its header has the true length."""
    promised = int.from_bytes(head[4:8], "little")
    unknown = promised in (0, 0xFFFFFFFF) or promised in _PIPED
    if head[:4] == b"RIFF" and not unknown and promised + 8 > size + _RIFF_SLACK:
        raise _cut_short()


def _cut_short() -> InvalidAudio:
    return InvalidAudio("The recording is cut short. Copy or download the file again.")
