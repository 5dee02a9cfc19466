"""Decodes audio from the containers that phones and browsers record: MP4 (.m4a) and WebM.

Files are untrusted: only the first audio stream is decoded, never video, within limits on packets
and decoding time, and on samples where whoever takes the frames stops.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Generator
from typing import IO, Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

MOST_PACKETS: Final = 50_000
PATIENCE: Final = 10.0  # seconds of decoding
# FFmpeg opens no other file and no address.
OPTIONS: Final = {"protocol_whitelist": "", "enable_drefs": "0", "use_absolute_path": "0"}


class Block(NamedTuple):
    """A part of a sound."""

    mono: NDArray[np.float32]
    rate: int  # as the file tells it
    channels: int  # likewise
    steady: bool  # this part is as the file tells


class Undecodable(Exception):
    """The data is no such container, or it cannot be read to its end."""


def container_of(data: bytes) -> str:
    """FFmpeg's name of the container; empty for other data."""
    if data[4:8] == b"ftyp":
        return "mp4"
    return "matroska" if data[:4] == b"\x1a\x45\xdf\xa3" else ""


def container_blocks(
    file: IO[bytes],
    container: str,
    check: Callable[[int, int], None],
    most_packets: int = MOST_PACKETS,
    patience: float = PATIENCE,
) -> Generator[Block, None, None]:
    """The first sound, in blocks. `check` gets rate and channels before anything is decoded. Raises
    Undecodable."""
    import av

    try:
        with av.open(file, "r", format=container, options=dict(OPTIONS)) as opened:
            if not opened.streams.audio:
                raise Undecodable("there is no sound in it")
            sound: Any = opened.streams.audio[0]
            if sound.codec_context is None:
                raise Undecodable("its sound is of no known kind")
            rate, channels = int(sound.rate or 0), int(sound.channels or 0)
            check(rate, channels)
            until = time.monotonic() + patience
            for count, packet in enumerate(opened.demux(sound)):
                if count > most_packets or time.monotonic() > until:
                    raise Undecodable("it takes too long to read")
                for frame in packet.decode():
                    steady = (frame.sample_rate, len(frame.layout.channels)) == (rate, channels)
                    yield Block(_mono(frame), rate, channels, steady)
    except (av.error.FFmpegError, ValueError, MemoryError) as error:
        raise Undecodable(str(error)) from error


def _mono(frame: Any) -> NDArray[np.float32]:
    samples = frame.to_ndarray()  # [channels, frames], or all in one row
    if not frame.format.is_planar:
        samples = samples.reshape(-1, len(frame.layout.channels)).T
    whole = np.issubdtype(samples.dtype, np.integer)
    scale = float(np.iinfo(samples.dtype).max) if whole else 1.0
    mono: NDArray[np.float32] = (samples.astype(np.float32) / scale).mean(axis=0)
    return 2 * mono - 1 if samples.dtype == np.uint8 else mono  # bytes have no sign
