"""Recordings of phones and browsers are read, what is hostile is refused in time."""

from __future__ import annotations

import io
import time
from contextlib import suppress
from fractions import Fraction

import av
import numpy as np
import pytest

from engine import SAMPLE_RATE, InvalidAudio, load_reference_audio
from engine.audio import av_decoder
from engine.audio.sound_reader import read_sound

KINDS = (("mp4", "aac", 44_100), ("webm", "libopus", 48_000), ("mp4", "alac", 48_000))


def tone(seconds: float, rate: int) -> np.ndarray:
    moments = np.arange(int(seconds * rate)) / rate
    loud = 0.3 * np.sin(2 * np.pi * 440 * moments)
    return np.round(32767 * loud).astype(np.int16)


def written(
    container: str, codec: str, rate: int, seconds: float = 3.0, picture: bool = False
) -> bytes:
    file = io.BytesIO()
    with av.open(file, "w", format=container) as out:
        sound = out.add_stream(codec, rate=rate, layout="mono")
        if picture:
            film = out.add_stream("mpeg4", rate=10)
            film.width = film.height = 64
            for _ in range(5):
                out.mux(film.encode(av.VideoFrame(64, 64, "yuv420p")))
            out.mux(film.encode(None))
        frame = av.AudioFrame.from_ndarray(tone(seconds, rate)[None], "s16", "mono")
        frame.sample_rate, frame.time_base, frame.pts = rate, Fraction(1, rate), 0
        out.mux(sound.encode(frame))
        out.mux(sound.encode(None))
    return file.getvalue()


@pytest.mark.parametrize(("container", "codec", "rate"), KINDS)
def test_the_sound_is_the_same(container: str, codec: str, rate: int) -> None:
    wave = load_reference_audio(written(container, codec, rate)).waveform
    assert len(wave) / SAMPLE_RATE == pytest.approx(3.0, abs=0.1)
    spectrum = np.abs(np.fft.rfft(wave))
    assert np.argmax(spectrum) * SAMPLE_RATE / len(wave) == pytest.approx(440, abs=1)


def test_mp3_in_a_wav_is_not_cut_short_by_its_estimated_length() -> None:
    wave = load_reference_audio(written("wav", "libmp3lame", 24_000)).waveform
    assert len(wave) / SAMPLE_RATE == pytest.approx(3.0, abs=0.1)


def test_samples_without_a_sign_are_around_zero() -> None:
    wave, _, _ = read_sound(io.BytesIO(written("mov", "pcm_u8", 48_000)), 5.0, lambda *_: None)
    assert np.mean(wave) == pytest.approx(0.0, abs=0.01)
    assert np.abs(wave).max() == pytest.approx(0.3, abs=0.02)


def test_only_the_sound_of_a_film_is_decoded() -> None:
    wave = load_reference_audio(written("mp4", "aac", 44_100, picture=True)).waveform
    assert len(wave) / SAMPLE_RATE == pytest.approx(3.0, abs=0.1)


@pytest.mark.parametrize(("container", "codec", "rate"), KINDS[:2])
def test_a_long_one_is_refused_before_it_is_whole(container: str, codec: str, rate: int) -> None:
    data = written(container, codec, rate, seconds=150)
    assert len(read_sound(io.BytesIO(data), 60.0, lambda *_: None)[0]) < 62 * rate
    with pytest.raises(InvalidAudio, match="Cut it to 60 s"):
        load_reference_audio(data)


def test_a_rate_that_nobody_records_is_refused_before_it_is_decoded(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """It would allow as many samples as it claims."""
    data = written("mp4", "flac", 655_350)
    monkeypatch.setattr(av_decoder, "_mono", lambda *_: pytest.fail("decoded"))
    with pytest.raises(InvalidAudio, match="655350 Hz"):
        load_reference_audio(data)


@pytest.mark.parametrize(("container", "codec", "rate"), KINDS[:2])
def test_damage_is_refused_in_time(container: str, codec: str, rate: int) -> None:
    data, drawn = written(container, codec, rate, seconds=2), np.random.default_rng(7)
    for _ in range(60):
        broken = bytearray(data[: drawn.integers(8, len(data) + 1)])
        for at in drawn.integers(8, len(broken), 20):
            broken[at] = drawn.integers(256)
        began = time.process_time()
        with suppress(InvalidAudio):
            assert np.isfinite(load_reference_audio(bytes(broken)).waveform).all()
        assert time.process_time() - began < av_decoder.PATIENCE


def test_a_playlist_opens_nothing() -> None:
    for head in (b"\0\0\0\x18ftypisom", b"\x1a\x45\xdf\xa3"):
        with pytest.raises(InvalidAudio):
            load_reference_audio(head + b"#EXTM3U\nfile:///etc/passwd\n" * 9)
