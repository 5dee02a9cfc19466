"""Reads music from an audio file that a stranger may have made: its first ten minutes, mono.

The size is checked before the work that it bounds, and the file is read in blocks, so that little
memory is used.
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
    InvalidAudio,
    sound_blocks,
    unreadable,
)

SUFFIXES: Final = (
    ".wav",
    ".aiff",
    ".aif",
    ".flac",
    ".ogg",
    ".opus",
    ".mp3",
    ".m4a",
    ".mp4",
    ".webm",
)
MAX_BYTES: Final = 100 << 20
SHORTEST, LONGEST = 1.0, 600.0  # seconds
MOST_SAMPLES: Final = round(LONGEST * SAMPLE_RATE)  # of what is written
MOST_PACKETS: Final = 200_000
PATIENCE: Final = math.inf  # seconds of decoding: the process that reads it has a limit of its own
Block: TypeAlias = NDArray[np.float32]  # mono


def read_music(file: IO[bytes], target: Path) -> None:
    """Write its samples, 16 bits each, into a new file. Raises InvalidAudio."""
    _check_size(file.seek(0, os.SEEK_END))
    file.seek(0)
    written = 0
    with target.open("xb") as out:
        for pcm in _resampled(_steady(file)):
            out.write(pcm[: MOST_SAMPLES - written].tobytes())
            written += len(pcm)
            if written >= MOST_SAMPLES:
                break
    if written < SHORTEST * SAMPLE_RATE:
        raise InvalidAudio("The music is shorter than a second. Choose a longer file.")


def _check_size(size: int) -> None:
    if size > MAX_BYTES:
        raise InvalidAudio(
            "The file has {size} MB; {most} MB is the most for music. Save it as MP3 or cut it.",
            size=size >> 20,
            most=MAX_BYTES >> 20,
        )


def _resampled(blocks: Iterator[tuple[Block, int]]) -> Iterator[NDArray[np.int16]]:
    import soxr

    stream: Any = None
    for block, rate in blocks:
        if not np.isfinite(block).all():
            raise InvalidAudio("The file has samples that are no numbers. Export it again.")
        if stream is None:
            stream = soxr.ResampleStream(rate, SAMPLE_RATE, 1, dtype="float32", quality="HQ")
        yield _pcm(stream.resample_chunk(np.clip(block, -1.0, 1.0)))
    if stream is not None:
        yield _pcm(stream.resample_chunk(np.zeros(0, np.float32), last=True))


def _steady(file: IO[bytes]) -> Iterator[tuple[Block, int]]:
    for block in sound_blocks(file, most_packets=MOST_PACKETS, patience=PATIENCE):
        if not block.steady:
            raise unreadable()  # it changes on the way
        yield block.mono, block.rate


def _pcm(samples: Block) -> NDArray[np.int16]:
    pcm: NDArray[np.int16] = np.clip(np.rint(samples * 32768.0), -32768, 32767).astype("<i2")
    return pcm
