"""Audio encoders of the API: PCM16 pieces in, bytes out.

An encoder is fed pieces and finished once; its joined outputs are the file. A file of FLAC
or AIFF begins with its length, so these two return everything at the end (`WHOLE`); all others
return bytes as they are fed. `ulaw` and `alaw` are G.711, as telephones have it. Knows no HTTP.
"""

from __future__ import annotations

import io
import struct
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal, Protocol, TypeAlias

import av
import numpy as np
import soundfile

from engine import SAMPLE_RATE, SOUND_FORMATS, Pcm

Format: TypeAlias = Literal["mp3", "opus", "aac", "flac", "aiff", "wav", "pcm", "ulaw", "alaw"]
# Samples per second that can be asked for, by every format or by Opus.
SampleRate: TypeAlias = Literal[8000, 11025, 12000, 16000, 22050, 24000, 32000, 44100, 48000]
OPUS_RATES = (8000, 12000, 16000, 24000, 48000)
TELEPHONY: tuple[Format, ...] = ("ulaw", "alaw")
TELEPHONE_RATE: SampleRate = 8000
# kbit/s of MPEG 1 and of MPEG 2 and 2.5, which have lower sample rates
_MP3_HIGH = (32, 40, 48, 56, 64, 80, 96, 112, 128, 160, 192, 224, 256, 320)
_MP3_LOW = (8, 16, 24, 32, 40, 48, 56, 64, 80, 96, 112, 128, 144, 160)
UNCOMPRESSED: tuple[Format, ...] = ("wav", "pcm")
UNKNOWN_LENGTH = 0xFFFFFFFF  # players read until the stream ends
_WAV_HEAD = 44
_PAGE_LATENCY = 0x1302  # libsndfile's SFC_SET_OGG_PAGE_LATENCY_MS
_PAGE_MS = 80.0
_BLOCK = SAMPLE_RATE  # libsndfile's Ogg writers fail for long buffers
_LOWEST_LEVEL = 0.9999  # libsndfile refuses its own lowest bit rate


class Encoder(Protocol):
    def feed(self, pcm: Pcm) -> bytes:
        """Bytes that are ready after this piece, possibly none."""

    def finish(self) -> bytes:
        """The remaining bytes."""


@dataclass(frozen=True)
class Coding:
    """A format with its rates. `bit_rate`: kbit/s; None: the format's default."""

    format: Format
    sample_rate: int = SAMPLE_RATE
    bit_rate: int | None = None


def open_encoder(coding: Coding, samples: int | None = None) -> Encoder:
    """An encoder for one response. `samples`: the total length, if known."""
    return _CODECS[coding.format].open(coding, samples)


def encode(coding: Coding, pcm: Pcm) -> bytes:
    """Encode a complete file."""
    encoder = open_encoder(coding, len(pcm))
    return encoder.feed(pcm) + encoder.finish()


def default_rate(format: Format) -> SampleRate:
    return TELEPHONE_RATE if format in TELEPHONY else 24000


def bit_rates(format: Format, sample_rate: int) -> Sequence[int]:
    """The bit rates, in kbit/s, that can be asked for; none where the format decides."""
    if format == "mp3":
        low = _MP3_LOW[:8] if sample_rate < 16000 else _MP3_LOW
        return _MP3_HIGH if sample_rate >= 32000 else low
    if format == "opus":
        return range(6, 257)
    if format == "aac":  # from 4.5 bits a sample on the encoder makes less than was asked for
        return range(16, min(192, sample_rate * 4 // 1000) + 1)
    return ()


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


class _StreamedMp3(_Streamed):
    """Without the empty frame that libsndfile begins with where a frame is long enough: it is meant
    for the lengths, which come last, and is heard as silence."""

    def __init__(self, coding: Coding, **format: Any) -> None:
        super().__init__(coding.sample_rate, format="MP3", **format)
        self._rate = coding.sample_rate
        self._first: bytes | None = b""  # what is there of the first frame; None: it is over

    def feed(self, pcm: Pcm) -> bytes:
        return self._without_empty(super().feed(pcm))

    def finish(self) -> bytes:
        return self._without_empty(super().finish()) + (self._first or b"")

    def _without_empty(self, data: bytes) -> bytes:
        if self._first is None:
            return data
        self._first += data
        if len(self._first) < 4 or len(self._first) < (
            size := _frame_bytes(self._first, self._rate)
        ):
            return b""
        begun, self._first = self._first, None
        return begun if any(begun[4:size]) else begun[size:]


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


def _frame_bytes(data: bytes, sample_rate: int) -> int:
    """The length of the MP3 frame that begins here."""
    of_mpeg_1 = data[1] >> 3 & 3 == 3
    bit_rate = (_MP3_HIGH if of_mpeg_1 else _MP3_LOW)[(data[2] >> 4) - 1]
    padding = data[2] >> 1 & 1
    return (144 if of_mpeg_1 else 72) * 1000 * bit_rate // sample_rate + padding


def _mp3(coding: Coding, samples: int | None) -> Encoder:
    """Constant bitrate (80 kbit/s at 24 kHz), so that players can compute times in a stream."""
    level = 0.5
    if coding.bit_rate:  # libsndfile counts from the highest of the table to the lowest
        table = bit_rates("mp3", coding.sample_rate)
        level = (table[-1] - coding.bit_rate) / (table[-1] - table[0])
    how = {"bitrate_mode": "CONSTANT", "compression_level": min(level, _LOWEST_LEVEL)}
    if samples is None:
        return _StreamedMp3(coding, **how)
    return _Held(coding.sample_rate, format="MP3", **how)


def _opus(coding: Coding, samples: int | None) -> Encoder:
    level = {"compression_level": (256 - coding.bit_rate) / 250} if coding.bit_rate else {}
    encoder = _Streamed(coding.sample_rate, format="OGG", subtype="OPUS", **level)
    if samples is None:
        _set_page_latency(encoder._file)
    return encoder


def _law(coding: Coding, samples: int | None) -> Encoder:
    subtype = {"ulaw": "ULAW", "alaw": "ALAW"}[coding.format]
    return _Streamed(coding.sample_rate, format="RAW", subtype=subtype)


def _set_page_latency(file: soundfile.SoundFile) -> None:
    """Flush a page every 80 ms; libsndfile's default of a second would delay the start."""
    value = soundfile._ffi.new("double *", _PAGE_MS)
    soundfile._snd.sf_command(file._file, _PAGE_LATENCY, value, 8)


class _Aac:
    """ADTS frames through PyAV."""

    def __init__(self, coding: Coding) -> None:
        self._outlet, self._rate = _Outlet(), coding.sample_rate
        self._container = av.open(self._outlet, "w", format="adts")
        self._track = self._container.add_stream("aac", rate=self._rate, layout="mono")
        self._track.bit_rate = 1000 * (coding.bit_rate or min(96, bit_rates("aac", self._rate)[-1]))
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


def _wav(coding: Coding, samples: int | None) -> Encoder:
    return _Raw(wav_header(samples, coding.sample_rate))


def _held(coding: Coding, samples: int | None) -> Encoder:
    file = SOUND_FORMATS[coding.format]
    return _Held(coding.sample_rate, format=file.container, subtype=file.encoding)


@dataclass(frozen=True)
class _Codec:
    open: Callable[[Coding, int | None], Encoder]
    media_type: str
    streams: bool = True


_CODECS: dict[Format, _Codec] = {
    "mp3": _Codec(_mp3, SOUND_FORMATS["mp3"].media_type),
    "opus": _Codec(_opus, "audio/ogg"),
    "aac": _Codec(lambda coding, samples: _Aac(coding), "audio/aac"),
    "flac": _Codec(_held, SOUND_FORMATS["flac"].media_type, streams=False),
    "aiff": _Codec(_held, SOUND_FORMATS["aiff"].media_type, streams=False),
    "wav": _Codec(_wav, SOUND_FORMATS["wav"].media_type),
    "pcm": _Codec(lambda coding, samples: _Raw(), "audio/pcm"),
    "ulaw": _Codec(_law, "audio/PCMU"),
    "alaw": _Codec(_law, "audio/PCMA"),
}
MEDIA_TYPES: dict[Format, str] = {format: codec.media_type for format, codec in _CODECS.items()}
WHOLE = frozenset(format for format, codec in _CODECS.items() if not codec.streams)
