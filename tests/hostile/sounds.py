"""Sound files as an attacker would write them, generated in code."""

from __future__ import annotations

import io
import struct
from collections.abc import Callable, Iterator

import numpy as np
import soundfile

RATE = 8_000
KINDS = {"WAV": "PCM_16", "MP3": None, "FLAC": None, "OGG": "VORBIS"}
FLOOD = 10 << 20  # bytes of one kind of nonsense


def tone(seconds: float = 1.2) -> np.ndarray:
    at = np.arange(int(RATE * seconds))
    return (0.3 * np.sin(at * 0.3) * (1 + 0.2 * np.sin(at * 0.01))).astype(np.float32)


def encoded(kind: str, wave: np.ndarray | None = None, rate: int = RATE) -> bytes:
    """A whole file. In blocks: libsndfile's Vorbis writer overflows its stack on long ones."""
    wave = tone() if wave is None else wave
    channels = 1 if wave.ndim == 1 else wave.shape[1]
    file = io.BytesIO()
    with soundfile.SoundFile(file, "w", rate, channels, KINDS[kind], format=kind) as writer:
        for start in range(0, len(wave), rate):
            writer.write(wave[start : start + rate])
    return file.getvalue()


def wav(
    *, tag: int = 1, channels: int = 1, rate: int = RATE, bits: int = 16, claimed: int | None = None
) -> bytes:
    """A WAV whose header says what it likes; `claimed` bytes of samples."""
    samples = (tone() * 32767).astype("<i2").tobytes()
    size = len(samples) if claimed is None else claimed
    width = max(1, channels) * bits // 8
    form = struct.pack(
        "<HHIIHH", tag, channels, rate, (rate * width) & 0xFFFFFFFF, width & 0xFFFF, bits
    )
    body = b"WAVEfmt " + struct.pack("<I", 16) + form + b"data" + struct.pack("<I", size) + samples
    return b"RIFF" + struct.pack("<I", (len(body) - len(samples) + size) & 0xFFFFFFFF) + body


def float_wav(sample: float) -> bytes:
    samples = np.full(RATE * 2, sample, "<f4").tobytes()
    form = struct.pack("<HHIIHH", 3, 1, RATE, RATE * 4, 4, 32)
    body = b"WAVEfmt " + struct.pack("<I", 16) + form + b"data"
    body += struct.pack("<I", len(samples)) + samples
    return b"RIFF" + struct.pack("<I", len(body)) + body


def minutes(kind: str) -> bytes:
    """Ten minutes of nothing, which packs well: a bomb."""
    return encoded(kind, np.zeros(RATE * 600, np.float32))


def endless_flac() -> bytes:
    """Minutes whose header does not say how long it is."""
    data = bytearray(minutes("FLAC"))
    data[21] &= 0xF0  # the length: 36 bits of STREAMINFO
    data[22:26] = bytes(4)
    return bytes(data)


def loudest_minute() -> bytes:
    """The most samples of one file: 60 s, 8 channels, 192 kHz."""
    return encoded("FLAC", np.zeros((192_000 * 59, 8), np.float32), 192_000)


HEADERS: dict[str, Callable[[], bytes]] = {
    "zero channels": lambda: wav(channels=0),
    "channels 65535": lambda: wav(channels=65_535),
    "1 Hz": lambda: wav(rate=1),
    "0 Hz": lambda: wav(rate=0),
    "4 GHz": lambda: wav(rate=0xFFFFFFFF),
    "0 bits": lambda: wav(bits=0),
    "65535 bits": lambda: wav(bits=65_535),
    "10 hours": lambda: wav(claimed=RATE * 2 * 36_000),
    "4 GB": lambda: wav(claimed=0xFFFFFF00),
    "unknown tag": lambda: wav(tag=0x7777),
    "mp3 tag": lambda: wav(tag=0x55),
    "NaN": lambda: float_wav(float("nan")),
    "infinity": lambda: float_wav(float("inf")),
    "largest float": lambda: float_wav(3.4e38),
    "smallest float": lambda: float_wav(1e-45),
}
BOMBS: dict[str, Callable[[], bytes]] = {
    "minutes of flac": lambda: minutes("FLAC"),
    "minutes of mp3": lambda: minutes("MP3"),
    "minutes of ogg": lambda: minutes("OGG"),
    "endless flac": endless_flac,
}
FLOODS: dict[str, Callable[[], bytes]] = {
    "tiny chunks": lambda: wav()[:12] + b"abcd\0\0\0\0" * (FLOOD >> 3) + wav()[12:],
    "mpeg sync": lambda: b"\xff\xfb\x90\x00" * (FLOOD >> 2),
    "0xff": lambda: b"\xff" * FLOOD,
    "id3 tag": lambda: b"ID3\x04\0\0\x7f\x7f\x7f\x7f" + bytes(FLOOD),
    "ogg pages": lambda: (b"OggS" + bytes(23)) * (FLOOD // 27),
    "flac metadata": lambda: b"fLaC" + b"\x01\0\0\0" * (FLOOD >> 2),
    "flac frames": lambda: encoded("FLAC")[:60] + b"\xff\xf8" * (FLOOD >> 1),
    "zeros": lambda: bytes(FLOOD),
    "text": lambda: b"just text, no sound. " * (FLOOD // 21),
    "zip": lambda: b"PK\x03\x04" + bytes(FLOOD),
}


def cuts(data: bytes, every: int) -> Iterator[bytes]:
    """The file cut after each of its first bytes, then after every so many, and near its end."""
    for stop in range(len(data)):
        if stop < 64 or stop % every == 0 or stop > len(data) - 8:
            yield data[:stop]
