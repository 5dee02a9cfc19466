"""Audio files of an export: format, sample rate, bit rate, tags and chapters.

MP3 and M4B are written by FFmpeg's encoders in PyAV, which write ID3 and MP4 tags and chapters, the
other formats by libsndfile. Files are written atomically. Knows no scripts.
"""

from __future__ import annotations

import io
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from engine import (
    SAMPLE_RATE,
    SOUND_FORMATS,
    InvalidSetting,
    Pcm,
    atomic_replace,
    check_target,
    explain_write_errors,
    open_sound,
)

RATES = (SAMPLE_RATE, 44_100, 48_000)
BITRATES = (48, 64, 96, 128, 192)  # kbit/s
DEFAULT_BITRATES = {"mp3": 96, "m4b": 64}
_CODECS = {
    # ID3 2.3: of 2.4, FFmpeg writes frames of more than 127 bytes with sizes of the wrong form, and
    # chapters are lost.
    "mp3": ("libmp3lame", "mp3", {"id3v2_version": "3"}),
    # As mp4 with its brand: FFmpeg's own form for iPods takes no pictures.
    "m4b": ("aac", "mp4", {"movflags": "+faststart", "brand": "M4B "}),
}
KINDS = tuple(SOUND_FORMATS | _CODECS)
_BLOCK = SAMPLE_RATE  # samples per write
_MILLISECOND = Fraction(1, 1000)


@dataclass(frozen=True)
class AudioFormat:
    """`bitrate` in kbit/s, of MP3 and M4B; None: the usual one for speech."""

    kind: str = "mp3"
    rate: int = SAMPLE_RATE
    bitrate: int | None = None

    def __post_init__(self) -> None:
        if self.kind not in KINDS:
            raise InvalidSetting("Choose a format: {there}.", there=", ".join(KINDS))
        if self.rate not in RATES:
            raise InvalidSetting(
                "Choose a sample rate: {there} Hz.", there=", ".join(map(str, RATES))
            )
        if self.bitrate is not None and self.bitrate not in BITRATES:
            raise InvalidSetting(
                "Choose a bit rate: {there} kbit/s.", there=", ".join(map(str, BITRATES))
            )

    @property
    def bits(self) -> int:
        """Bits a second, at most what the format can have at this sample rate."""
        wanted = self.bitrate or DEFAULT_BITRATES.get(self.kind, 0)
        low = self.rate < 32_000
        most = {"mp3": 160 if low else 320, "m4b": 6 * self.rate // 1000}.get(self.kind, wanted)
        return 1000 * min(wanted, most)


@dataclass(frozen=True)
class ChapterMark:
    """A chapter in milliseconds."""

    title: str
    start: int
    end: int


@dataclass(frozen=True)
class Tags:
    title: str = ""
    artist: str = ""
    track: str = ""
    language: str = ""  # three letters
    cover: bytes = b""  # a JPEG
    chapters: Sequence[ChapterMark] = ()


class AudioWriter(Protocol):
    def write(self, pcm: Pcm) -> None: ...


@contextmanager
def open_audio(path: Path, form: AudioFormat, tags: Tags) -> Iterator[AudioWriter]:
    """Write 24 kHz samples; the file is there when the block ends without an exception."""
    if form.kind not in _CODECS:
        with (
            open_sound(check_target(path), form.rate) as file,
            _resampled(file, form.rate) as resampled,
        ):
            yield resampled
        return
    with (
        atomic_replace(path) as part,
        explain_write_errors(path),
        _open_encoder(part, form, tags) as encoder,
        _resampled(encoder, form.rate) as resampled,
    ):
        yield resampled


@contextmanager
def _resampled(writer: AudioWriter, rate: int) -> Iterator[AudioWriter]:
    if rate == SAMPLE_RATE:
        yield writer
        return
    resampler = _Resampler(writer, rate)
    yield resampler
    resampler.finish()


class _Resampler:
    def __init__(self, writer: AudioWriter, rate: int) -> None:
        import soxr

        self._writer = writer
        self._stream = soxr.ResampleStream(SAMPLE_RATE, rate, 1, dtype="int16", quality="VHQ")

    def write(self, pcm: Pcm) -> None:
        for start in range(0, len(pcm), _BLOCK):
            self._writer.write(self._stream.resample_chunk(pcm[start : start + _BLOCK]))

    def finish(self) -> None:
        self._writer.write(self._stream.resample_chunk(np.zeros(0, np.int16), last=True))


class _Encoder:
    """An encoder of PyAV and the container that its packets go into."""

    def __init__(self, container: Any, stream: Any, rate: int, gain: float) -> None:
        self._container, self._stream, self._rate = container, stream, rate
        self._gain = np.float32(gain / 32768)
        self._samples = 0

    def write(self, pcm: Pcm) -> None:
        import av

        for start in range(0, len(pcm), _BLOCK):
            block = self._gain * pcm[start : start + _BLOCK].reshape(1, -1)  # may pass 1
            frame = av.AudioFrame.from_ndarray(block, format="fltp", layout="mono")
            frame.sample_rate, frame.pts = self._rate, self._samples
            frame.time_base = Fraction(1, self._rate)
            self._samples += block.shape[1]
            self._container.mux(self._stream.encode(frame))

    def finish(self) -> None:
        self._container.mux(self._stream.encode(None))


@contextmanager
def _open_encoder(path: Path, form: AudioFormat, tags: Tags) -> Iterator[_Encoder]:
    import av

    codec, container_format, options = _CODECS[form.kind]
    with av.open(str(path), "w", format=container_format, options=options) as container:
        container.metadata.update(_metadata(form.kind, tags))
        container.set_chapters([_chapter(place, each) for place, each in enumerate(tags.chapters)])
        stream: Any = container.add_stream(codec, rate=form.rate)
        stream.codec_context.layout = "mono"
        stream.codec_context.format = "fltp"
        stream.bit_rate = form.bits
        if tags.language:
            stream.metadata["language"] = tags.language
        if tags.cover:
            _add_cover(container, tags.cover)
        encoder = _Encoder(container, stream, form.rate, 1 / _lowered(form))
        yield encoder
        encoder.finish()


def _lowered(form: AudioFormat) -> float:
    """By how much the encoder lowers all samples: LAME does, so that peaks of the decoded sound do
    not clip, and FFmpeg has no option against it. A loudness target would be missed by 0.45 dB."""
    if form.kind != "mp3":
        return 1.0
    return 0.95 if form.bits <= 160_000 else 0.97


def _add_cover(container: Any, jpeg: bytes) -> None:
    """A picture is a stream with one packet."""
    import av

    with av.open(io.BytesIO(jpeg), format="jpeg_pipe") as drawn:
        picture = drawn.streams.video[0]
        stream = container.add_stream("mjpeg")
        stream.width, stream.height, stream.pix_fmt = picture.width, picture.height, "yuvj420p"
        stream.disposition = av.stream.Disposition.attached_pic
    packet = av.Packet(jpeg)
    packet.stream, packet.pts, packet.dts, packet.is_keyframe = stream, 0, 0, True
    container.start_encoding()
    container.mux(packet)


def _metadata(kind: str, tags: Tags) -> dict[str, str]:
    fields = {"title": tags.title, "artist": tags.artist, "track": tags.track}
    if kind == "mp3":
        fields["language"] = tags.language
    if kind == "m4b":
        fields |= {
            "album_artist": tags.artist,
            "album": tags.title,
            "genre": "Audiobook",
            "media_type": "2",
        }  # 2: an audiobook
    return {name: value for name, value in fields.items() if value}


def _chapter(place: int, chapter_mark: ChapterMark) -> Any:
    return {
        "id": place,
        "start": chapter_mark.start,
        "end": chapter_mark.end,
        "time_base": _MILLISECOND,
        "metadata": {"title": chapter_mark.title},
    }
