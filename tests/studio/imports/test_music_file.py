"""Music out of strangers' files: read as it is, or refused in words, soon and in little memory."""

from __future__ import annotations

import io
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import av
import numpy as np
import pytest
import soundfile

from engine import SAMPLE_RATE, InvalidAudio, InvalidText, Pcm
from studio.imports import music_file
from studio.imports.import_process import Imports
from studio.imports.music_file import LONGEST, read_music
from tests.hostile.sounds import BOMBS, FLOODS, HEADERS, encoded, float_wav, wav

HOSTILE = {**HEADERS, **BOMBS, **FLOODS}


@pytest.fixture
def imports() -> Iterator[Imports]:
    pool = Imports(lambda: "10.0.0.1")
    yield pool
    pool.close()


def tone(seconds: float, rate: int) -> np.ndarray:
    return 0.3 * np.sin(np.arange(round(seconds * rate)) * 2 * np.pi * 440 / rate)


def written(path: Path, seconds: float = 3.0, rate: int = 44_100) -> Path:
    """A stereo file, the same on both sides."""
    both = np.stack([tone(seconds, rate)] * 2, axis=1)
    soundfile.write(path, both, rate)
    return path


def in_container(path: Path, codec: str, seconds: float = 3.0) -> Path:
    with av.open(str(path), "w") as container:
        stream = container.add_stream(codec, rate=48_000, layout="mono")
        samples = tone(seconds, 48_000).astype(np.float32).reshape(1, -1)
        frame = av.AudioFrame.from_ndarray(samples, format="fltp", layout="mono")
        frame.sample_rate = 48_000
        for part in (*stream.encode(frame), *stream.encode(None)):
            container.mux(part)
    return path


def read(path: Path) -> Pcm:
    """Read music in this process."""
    target = path.with_name("samples")
    with path.open("rb") as file:
        read_music(file, target)
    return np.fromfile(target, "<i2")


@pytest.mark.parametrize("name", ["a.wav", "b.flac", "c.ogg", "d.mp3", "e.m4a", "f.webm"])
def test_each_format_is_read_as_it_sounds(tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    if path.suffix in (".m4a", ".webm"):
        in_container(path, "aac" if path.suffix == ".m4a" else "libopus")
    else:
        written(path)
    pcm = read(path)
    assert len(pcm) / SAMPLE_RATE == pytest.approx(3.0, abs=0.1)  # encoders add some
    middle = pcm[SAMPLE_RATE : 2 * SAMPLE_RATE] / 32768.0
    spectrum = np.abs(np.fft.rfft(middle))
    assert spectrum.argmax() == 440
    assert np.abs(middle).max() == pytest.approx(0.3, abs=0.03)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: wav(channels=9), "9 channels"),
        (lambda: wav(rate=1), "sample rate is 1 Hz"),
        (lambda: encoded("WAV", np.zeros(400, np.float32)), "shorter than a second"),
        (lambda: float_wav(float("nan")), "no numbers"),
        (lambda: b"These are words. " * 100, "no sound, or it is damaged"),
        (lambda: b"\x00\x00\x00\x20ftypM4A " + bytes(200), "no sound, or it is damaged"),
        (lambda: b"\x1a\x45\xdf\xa3" + bytes(200), "no sound, or it is damaged"),
    ],
)
def test_a_refusal_says_what_to_do(tmp_path: Path, make: Callable[[], bytes], message: str) -> None:
    path = tmp_path / "music.mp3"
    path.write_bytes(make())
    with pytest.raises(InvalidAudio, match=message) as raised:
        read(path)
    assert str(raised.value).endswith(".")


@pytest.mark.parametrize("kind", ["FLAC", "MP3"])
def test_of_long_music_the_beginning_is_taken(tmp_path: Path, kind: str) -> None:
    path = tmp_path / "music"
    loud = np.full(8_000 * 602, 0.25, np.float32)
    loud[8_000 * 300 :] = 0.0
    path.write_bytes(encoded(kind, loud))
    pcm = read(path)
    assert len(pcm) == LONGEST * SAMPLE_RATE
    assert not pcm[SAMPLE_RATE * 301 :: 100].any()


@pytest.mark.parametrize("rate", [8_000, 22_050, 96_000])
def test_any_usual_rate_is_read_at_its_speed(tmp_path: Path, rate: int) -> None:
    path = tmp_path / "mono.wav"
    soundfile.write(path, tone(2.0, rate), rate)
    pcm = read(path)
    assert len(pcm) == 2 * SAMPLE_RATE
    assert np.abs(np.fft.rfft(pcm[:SAMPLE_RATE] / 32768.0)).argmax() == 440


def test_a_process_reads_it(imports: Imports, tmp_path: Path) -> None:
    path = written(tmp_path / "a.flac")
    assert np.array_equal(imports.music(path), read(path))


def test_a_large_file_is_refused_before_it_is_read(imports: Imports, tmp_path: Path) -> None:
    path = tmp_path / "music.wav"
    with path.open("wb") as file:
        file.truncate((100 << 20) + (1 << 20))
    with pytest.raises(InvalidText, match="101 MB; 100 MB is the most"):
        imports.music(path)


@pytest.mark.parametrize("name", HOSTILE)
def test_an_attack_writes_no_more_than_it_may(name: str, tmp_path: Path) -> None:
    """Read in this process: the bounds hold before those of a process of its own."""
    target = tmp_path / "samples"
    with suppress(InvalidAudio):
        read_music(io.BytesIO(HOSTILE[name]()), target)
    if target.exists():
        assert target.stat().st_size <= 2 * music_file.MOST_SAMPLES


@pytest.mark.slow
def test_the_longest_music_is_read_in_the_memory_of_an_import(
    imports: Imports, tmp_path: Path
) -> None:
    path = tmp_path / "long.flac"
    silent = np.zeros((44_100, 2), np.int16)
    silent[::100] = 3000
    with soundfile.SoundFile(path, "w", 44_100, 2) as file:
        for _ in range(round(LONGEST)):
            file.write(silent)
    pcm = imports.music(path)
    assert pcm.dtype == np.int16
    assert len(pcm) == pytest.approx(LONGEST * SAMPLE_RATE, abs=100)
