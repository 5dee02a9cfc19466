"""Reference audio: what is accepted, and what is refused before it costs anything."""

from __future__ import annotations

import io
import struct
import tracemalloc
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import soundfile
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from engine.audio.reference_audio import LEVEL, LONGEST, MAX_BYTES, Recording, load_reference_audio
from engine.errors import InvalidAudio
from engine.types import SAMPLE_RATE, Waveform


def speech(seconds: float = 2.0, rate: int = SAMPLE_RATE, level: float = 0.1) -> Waveform:
    """Something that rises and falls like a voice."""
    time = np.arange(int(seconds * rate)) / rate
    tone = sum(np.sin(2 * np.pi * 140 * k * time + k) / k for k in range(1, 8))
    return np.asarray(level * tone * (1.2 + np.sin(2 * np.pi * 3 * time)), np.float32)


def encoded(samples: NDArray[Any], rate: int, kind: str, subtype: str | None = None) -> bytes:
    buffer = io.BytesIO()
    soundfile.write(buffer, samples, rate, format=kind, subtype=subtype)
    return buffer.getvalue()


def as_type(wave: NDArray[np.float32], kind: np.dtype[Any]) -> NDArray[Any]:
    if kind.kind == "f":
        return wave.astype(kind)
    full = np.iinfo(kind).max
    exact = np.clip(wave.astype(np.float64), -1, 1)  # integers hold nothing louder
    scaled = exact * full if kind.kind == "i" else (exact + 1) * full / 2
    return scaled.astype(kind)


def loudness(recording: Recording) -> float:
    wave = recording.waveform
    active = wave[np.abs(wave) > 0.001]
    return float(np.sqrt(np.mean(active.astype(np.float64) ** 2)))


def check(recording: Recording, seconds: float) -> None:
    wave = recording.waveform
    assert wave.dtype == np.float32
    assert wave.ndim == 1
    assert len(wave) == round(recording.seconds * SAMPLE_RATE)
    assert recording.seconds == pytest.approx(seconds, abs=0.25)
    assert np.abs(wave).max() < 1
    assert loudness(recording) == pytest.approx(LEVEL, rel=0.25)


@pytest.mark.parametrize(
    ("kind", "subtype"),
    [("WAV", "PCM_16"), ("WAV", "PCM_U8"), ("WAV", "PCM_24"), ("WAV", "FLOAT"), ("FLAC", None),
     ("OGG", "VORBIS"), ("OGG", "OPUS"), ("MP3", None)],
)  # fmt: skip
def test_every_format_is_read(kind: str, subtype: str | None) -> None:
    check(load_reference_audio(encoded(speech(), SAMPLE_RATE, kind, subtype)), 2.0)


@settings(max_examples=12, deadline=None)
@given(
    st.sampled_from([8_000, 11_025, 16_000, 24_000, 44_100, 48_000, 192_000]),
    st.integers(1, 4),
    st.sampled_from(["<i2", "<i4", "<f4", "<f8", "u1"]),
    st.floats(0.01, 0.3),
)
def test_any_rate_channels_type_and_level_come_out_the_same(
    rate: int, channels: int, kind: str, level: float
) -> None:
    wave = speech(2.0, rate, max(level, 0.05) if kind == "u1" else level)
    samples = as_type(np.stack([wave] * channels, axis=1), np.dtype(kind))
    recording = load_reference_audio((samples, rate))
    check(recording, 2.0)
    assert (channels > 1) == any("channels" in note for note in recording.notes)
    assert (rate != SAMPLE_RATE) == any("resampled" in note for note in recording.notes)


def test_silence_at_the_ends_goes_and_pauses_stay() -> None:
    quiet = np.zeros(SAMPLE_RATE, np.float32)
    pause = np.zeros(SAMPLE_RATE // 2, np.float32)
    recording = load_reference_audio(
        (np.concatenate([quiet, speech(1.5), pause, speech(1.5), quiet]), SAMPLE_RATE)
    )
    assert recording.seconds == pytest.approx(1.5 + 0.5 + 1.5, abs=0.3)
    assert any("silence" in note for note in recording.notes)


def test_an_offset_is_taken_out_and_levelling_is_told() -> None:
    recording = load_reference_audio((speech(level=0.01) + 0.25, SAMPLE_RATE))
    assert abs(recording.waveform.mean()) < 0.01
    assert any("volume adjusted +" in note for note in recording.notes)


def test_clipping_is_told_and_too_much_of_it_refused() -> None:
    wave = speech(level=0.3)
    some = load_reference_audio((np.clip(wave, -0.7, 0.7), SAMPLE_RATE))
    assert any("clipped" in note for note in some.notes)
    assert not any(
        "clipped" in note for note in load_reference_audio((wave / 2, SAMPLE_RATE)).notes
    )
    with pytest.raises(InvalidAudio, match="clipped"):
        load_reference_audio((np.clip(wave, -0.05, 0.05), SAMPLE_RATE))


NAN = speech()
NAN[100] = np.nan
HUGE = speech().astype(np.float64) * 1e300


@pytest.mark.parametrize(
    ("source", "says"),
    [
        ((speech(0.5), SAMPLE_RATE), "at least 1 s"),
        ((speech(LONGEST + 1, 8_000), 8_000), "Cut it"),
        ((np.zeros(SAMPLE_RATE * 2), SAMPLE_RATE), "silent"),
        ((np.full(SAMPLE_RATE * 2, 0.5), SAMPLE_RATE), "clipped"),
        ((np.r_[np.zeros(40_000), speech(0.2), np.zeros(40_000)], SAMPLE_RATE), "sound in it"),
        ((NAN, SAMPLE_RATE), "no numbers"),
        ((HUGE, SAMPLE_RATE), "no numbers"),
        ((speech(), 1), "8,000 to 192,000"),
        ((speech(), 400_000), "8,000 to 192,000"),
        ((np.zeros((48_000, 0), np.float32), SAMPLE_RATE), "0 channels"),
        ((np.zeros((48_000, 9), np.float32), SAMPLE_RATE), "9 channels"),
        ((np.zeros((2, 2, 2)), SAMPLE_RATE), "samples by channels"),
        ((np.array(["a"] * 48_000), SAMPLE_RATE), "as numbers"),
        (b"", "it is no sound"),
        (b"hello, I am no sound", "it is no sound"),
        (encoded(speech(), SAMPLE_RATE, "W64"), "W64 files are not read"),
    ],
)
def test_refusals_say_what_to_do(source: Any, says: str) -> None:
    with pytest.raises(InvalidAudio, match=says):
        load_reference_audio(source)


def test_a_file_too_large_is_refused_unread(tmp_path: Path) -> None:
    path = tmp_path / "large.wav"
    with path.open("wb") as file:
        file.truncate(MAX_BYTES + 1)
    tracemalloc.start()
    with pytest.raises(InvalidAudio, match="MB"):
        load_reference_audio(path)
    assert tracemalloc.get_traced_memory()[1] < 1 << 20
    tracemalloc.stop()


def test_a_bomb_is_refused_by_its_header() -> None:
    bomb = encoded(np.zeros(SAMPLE_RATE * 3600, np.int16), SAMPLE_RATE, "FLAC")  # an hour, small
    tracemalloc.start()
    with pytest.raises(InvalidAudio, match=r"3,600 s"):
        load_reference_audio(bomb)
    assert tracemalloc.get_traced_memory()[1] < 1 << 20
    tracemalloc.stop()


def flac_claiming(frames: int) -> bytes:
    """A FLAC of two seconds whose header tells another length."""
    data = bytearray(encoded(speech(), SAMPLE_RATE, "FLAC"))
    low = struct.unpack(">Q", data[18:26])[0] >> 36 << 36 | frames  # the last 36 bits
    data[18:26] = struct.pack(">Q", low)
    return bytes(data)


def test_a_header_that_promises_too_much_is_found_out() -> None:
    check(load_reference_audio(flac_claiming(2 * SAMPLE_RATE)), 2.0)
    for frames in (0, 3 * SAMPLE_RATE, (1 << 36) - 1):
        with pytest.raises(InvalidAudio):
            load_reference_audio(flac_claiming(frames))


@pytest.mark.parametrize("length", [0xFFFFFFFF, 0x7FFFF024, 0x80000000], ids=hex)
def test_a_wav_written_to_a_pipe_is_read(length: int) -> None:
    data = bytearray(encoded(speech(), SAMPLE_RATE, "WAV"))
    at = data.index(b"data")  # ffmpeg, sox and espeak, arecord: both lengths are unknown
    data[4:8] = data[at + 4 : at + 8] = length.to_bytes(4, "little")
    check(load_reference_audio(bytes(data)), 2.0)
