"""Audio encoders of the API: PCM16 pieces in, bytes out.

An encoder is fed pieces and finished once; its joined outputs are the file. `pcm`, `wav`, `mp3`,
`opus` and `aac` return bytes as they are fed. A FLAC header contains the length, so `flac` returns
everything at the end. Knows no HTTP.
"""

from __future__ import annotations

import io
import struct
from collections.abc import Callable
from typing import Any, Literal, Protocol, TypeAlias

import av
import numpy as np
import soundfile

from engine import SAMPLE_RATE, Pcm

Format: TypeAlias = Literal["mp3", "opus", "aac", "flac", "wav", "pcm"]
MEDIA_TYPES: dict[Format, str] = {
    "mp3": "audio/mpeg",
    "opus": "audio/ogg",
    "aac": "audio/aac",
    "flac": "audio/flac",
    "wav": "audio/wav",
    "pcm": "audio/pcm",
}
# Samples per second that can be asked for, by every format or by Opus.
SampleRate: TypeAlias = Literal[8000, 11025, 12000, 16000, 22050, 24000, 32000, 44100, 48000]
OPUS_RATES = (8000, 12000, 16000, 24000, 48000)
UNCOMPRESSED: tuple[Format, ...] = ("wav", "pcm")
UNKNOWN_LENGTH = 0xFFFFFFFF  # players read until the stream ends
_WAV_HEAD = 44
_PAGE_LATENCY = 0x1302  # libsndfile's SFC_SET_OGG_PAGE_LATENCY_MS
_PAGE_MS = 80.0
_BLOCK = SAMPLE_RATE  # libsndfile's Ogg writers fail for long buffers


class Encoder(Protocol):
    def feed(self, pcm: Pcm) -> bytes:
        """Bytes that are ready after this piece, possibly none."""

    def finish(self) -> bytes:
        """The remaining bytes."""


def open_encoder(
    format: Format, samples: int | None = None, sample_rate: int = SAMPLE_RATE
) -> Encoder:
    """An encoder for one response. `samples`: the total length, if known."""
    return _ENCODERS[format](samples, sample_rate)


def encode(format: Format, pcm: Pcm, sample_rate: int = SAMPLE_RATE) -> bytes:
    """Encode a complete file."""
    encoder = open_encoder(format, len(pcm), sample_rate)
    return encoder.feed(pcm) + encoder.finish()


def wav_header(samples: int | None, sample_rate: int = SAMPLE_RATE) -> bytes:
    """The 44-byte header of PCM16 mono; None for streams of unknown length."""
    size = UNKNOWN_LENGTH if samples is None else 2 * samples
    riff = UNKNOWN_LENGTH if samples is None else size + _WAV_HEAD - 8
    layout = struct.pack("<IHHIIHH", 16, 1, 1, sample_rate, 2 * sample_rate, 2, 16)
    head = b"RIFF" + struct.pack("<I", riff) + b"WAVEfmt " + layout
    return head + b"data" + struct.pack("<I", size)


class _Raw:
    """PCM16 little endian, with an optional header."""

    def __init__(self, header: bytes = b"") -> None:
        self._header = header

    def feed(self, pcm: Pcm) -> bytes:
        head, self._header = self._header, b""
        return head + pcm.astype("<i2", copy=False).tobytes()

    def finish(self) -> bytes:
        return self._header


class _Outlet(io.RawIOBase):
    """A file whose content can be taken while it is written; later seeks back are ignored."""

    def __init__(self) -> None:
        self._ready = bytearray()
        self._end = self._at = 0

    def writable(self) -> bool:
        return True

    def write(self, data: Any) -> int:
        fresh = max(0, self._at + len(data) - self._end)
        self._ready += memoryview(data)[len(data) - fresh :]
        self._at += len(data)
        self._end = max(self._end, self._at)
        return len(data)

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        self._at = offset + (0, self._at, self._end)[whence]
        return self._at

    def tell(self) -> int:
        return self._at

    def take(self) -> bytes:
        taken = bytes(self._ready)
        self._ready.clear()
        return taken


class _Streamed:
    """A format that libsndfile writes sequentially."""

    def __init__(self, sample_rate: int, **format: Any) -> None:
        self._outlet = _Outlet()
        self._file = soundfile.SoundFile(self._outlet, "w", sample_rate, 1, **format)

    def feed(self, pcm: Pcm) -> bytes:
        _write(self._file, pcm)
        return self._outlet.take()

    def finish(self) -> bytes:
        self._file.close()
        return self._outlet.take()


class _Held:
    """A format whose header is written last, so all bytes come at the end."""

    def __init__(self, sample_rate: int, **format: Any) -> None:
        self._buffer = io.BytesIO()
        self._file = soundfile.SoundFile(self._buffer, "w", sample_rate, 1, **format)

    def feed(self, pcm: Pcm) -> bytes:
        _write(self._file, pcm)
        return b""

    def finish(self) -> bytes:
        self._file.close()
        return self._buffer.getvalue()


def _write(file: soundfile.SoundFile, pcm: Pcm) -> None:
    for start in range(0, len(pcm), _BLOCK):
        file.write(pcm[start : start + _BLOCK])


def _mp3(samples: int | None, sample_rate: int) -> Encoder:
    """Constant bitrate (82 kbit/s at 24 kHz), so that players can compute times in a stream."""
    kind = _Streamed if samples is None else _Held
    return kind(sample_rate, format="MP3", bitrate_mode="CONSTANT", compression_level=0.5)


def _opus(samples: int | None, sample_rate: int) -> Encoder:
    encoder = _Streamed(sample_rate, format="OGG", subtype="OPUS")
    if samples is None:
        _set_page_latency(encoder._file)
    return encoder


def _set_page_latency(file: soundfile.SoundFile) -> None:
    """Flush a page every 80 ms; libsndfile's default of a second would delay the start."""
    value = soundfile._ffi.new("double *", _PAGE_MS)
    soundfile._snd.sf_command(file._file, _PAGE_LATENCY, value, 8)


class _Aac:
    """ADTS frames through PyAV."""

    def __init__(self, sample_rate: int) -> None:
        self._outlet, self._rate = _Outlet(), sample_rate
        self._container = av.open(self._outlet, "w", format="adts")
        self._track = self._container.add_stream("aac", rate=sample_rate, layout="mono")
        self._track.bit_rate = 96_000
        self._at = 0

    def feed(self, pcm: Pcm) -> bytes:
        frame = av.AudioFrame.from_ndarray(pcm[np.newaxis], format="s16", layout="mono")
        frame.sample_rate, frame.pts = self._rate, self._at
        self._at += len(pcm)
        self._mux(frame)
        return self._outlet.take()

    def finish(self) -> bytes:
        self._mux(None)
        self._container.close()
        return self._outlet.take()

    def _mux(self, frame: Any) -> None:
        for packet in self._track.encode(frame):
            self._container.mux(packet)


_ENCODERS: dict[Format, Callable[[int | None, int], Encoder]] = {
    "mp3": _mp3,
    "opus": _opus,
    "aac": lambda samples, rate: _Aac(rate),
    "flac": lambda samples, rate: _Held(rate, format="FLAC", subtype="PCM_16"),
    "wav": lambda samples, rate: _Raw(wav_header(samples, rate)),
    "pcm": lambda samples, rate: _Raw(),
}
