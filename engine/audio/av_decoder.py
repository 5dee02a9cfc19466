"""Decodes audio from the containers that phones and browsers record: MP4 (.m4a) and WebM.

Files are untrusted: only the first audio stream is decoded, never video, within limits on samples,
packets and decoding time.
"""

from __future__ import annotations

import io
import time
from collections.abc import Callable, Iterator
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

MOST_PACKETS: Final = 50_000
PATIENCE: Final = 10.0  # seconds of decoding
# FFmpeg opens no other file and no address.
OPTIONS: Final = {"protocol_whitelist": "", "enable_drefs": "0", "use_absolute_path": "0"}


class Undecodable(Exception):
    """The data is no such container, or it cannot be read to its end."""


def container_of(data: bytes) -> str:
    """FFmpeg's name of the container; empty for other data."""
    if data[4:8] == b"ftyp":
        return "mp4"
    return "matroska" if data[:4] == b"\x1a\x45\xdf\xa3" else ""


def decode(
    data: bytes, seconds: float, check: Callable[[int, int], None]
) -> tuple[NDArray[np.float32], int, int]:
    """Mono samples, up to `seconds` and a little more, their rate, and the channels of the file.

    `check` gets rate and channels before anything is decoded, since they bound the work.
    """
    import av

    blocks: list[NDArray[np.float32]] = []
    try:
        with av.open(
            io.BytesIO(data), "r", format=container_of(data), options=dict(OPTIONS)
        ) as file:
            if not file.streams.audio:
                raise Undecodable("there is no sound in it")
            sound = file.streams.audio[0]
            if sound.codec_context is None:
                raise Undecodable("its sound is of no known kind")
            rate, channels = int(sound.rate or 0), int(sound.channels or 0)
            check(rate, channels)
            wanted = seconds * rate
            for block in _blocks(file, sound):
                blocks.append(block)
                wanted -= len(block)
                if wanted < 0:
                    break
    except (av.error.FFmpegError, ValueError, MemoryError) as error:
        raise Undecodable(str(error)) from error
    if not blocks:
        raise Undecodable("there is no sound in it")
    return np.concatenate(blocks), rate, channels


def _blocks(file: Any, sound: Any) -> Iterator[NDArray[np.float32]]:
    until = time.monotonic() + PATIENCE
    for count, packet in enumerate(file.demux(sound)):
        if count > MOST_PACKETS or time.monotonic() > until:
            raise Undecodable("it takes too long to read")
        for frame in packet.decode():
            yield _mono(frame)


def _mono(frame: Any) -> NDArray[np.float32]:
    samples = frame.to_ndarray()
    if not frame.format.is_planar:
        samples = samples.reshape(-1, len(frame.layout.channels)).T
    whole = np.issubdtype(samples.dtype, np.integer)
    scale = float(np.iinfo(samples.dtype).max) if whole else 1.0
    mono: NDArray[np.float32] = (samples.astype(np.float32) / scale).mean(axis=0)
    return mono
