"""Sound files are written whole or not at all, in the format their name says."""

from __future__ import annotations

import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import soundfile

from engine.audio.audio_io import (
    Loudspeaker,
    SoundWriter,
    check_target,
    duration,
    open_sound,
    save_sound,
)
from engine.audio.sound_formats import SOUND_FORMATS
from engine.audio.sound_reader import read_sound
from engine.errors import InvalidAudio, InvalidSetting, NoLoudspeaker
from engine.types import SAMPLE_RATE, Pcm


def tone(seconds: float) -> Pcm:
    time = np.arange(int(seconds * SAMPLE_RATE)) / SAMPLE_RATE
    return np.asarray(8000 * np.sin(2 * np.pi * 220 * time), np.int16)


@pytest.mark.parametrize("ending", [*SOUND_FORMATS, "MP3"])
def test_every_format_reads_back_as_long_as_it_was(tmp_path: Path, ending: str) -> None:
    path = save_sound(tmp_path / f"take.{ending}", tone(2.5))
    assert duration(path) == pytest.approx(2.5, abs=0.1)
    back, rate = soundfile.read(path)
    assert rate == SAMPLE_RATE
    assert np.abs(back).max() == pytest.approx(8000 / 32768, rel=0.1)
    with path.open("rb") as file:
        wave, _, _ = read_sound(file, 5.0, lambda *_: None)  # as an upload
    assert len(wave) / SAMPLE_RATE == pytest.approx(2.5, abs=0.1)


def test_a_long_mp3_is_read_whole_and_without_a_word(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """Bursts, so that frames borrow bits of those before, over several blocks."""
    path, time = tmp_path / "bursts.mp3", np.arange(20 * SAMPLE_RATE) / SAMPLE_RATE
    wave = np.random.default_rng(0).normal(0, 0.1, len(time)) * (np.sin(4 * time) > 0)
    soundfile.write(path, wave, SAMPLE_RATE, bitrate_mode="CONSTANT", compression_level=0.5)
    with path.open("rb") as file:
        read, _, _ = read_sound(file, 60.0, lambda *_: None)
    np.testing.assert_allclose(read, soundfile.read(path)[0], atol=1e-6)
    assert not capfd.readouterr().err  # libmpg123's, written past Python


@pytest.mark.parametrize("ending", [".wav", ".flac", ".aiff"])
def test_lossless_formats_keep_every_sample_whatever_the_chunks(
    tmp_path: Path, ending: str
) -> None:
    pcm = tone(1.3)
    with open_sound(tmp_path / f"take{ending}") as file:
        for start in range(0, len(pcm), 1921):
            file.write(pcm[start : start + 1921])
        assert file.seconds == pytest.approx(1.3)
    back, _ = soundfile.read(tmp_path / f"take{ending}", dtype="int16")
    np.testing.assert_array_equal(back, pcm)


def write_and_fail(file: SoundWriter) -> None:
    file.write(tone(2))
    raise KeyError


def test_a_failure_leaves_the_old_file_and_nothing_else(tmp_path: Path) -> None:
    path = save_sound(tmp_path / "take.wav", tone(1))
    before = path.read_bytes()
    with pytest.raises(KeyError), open_sound(path) as file:
        write_and_fail(file)
    assert path.read_bytes() == before
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize("name", ["take", "take.aac", "take.txt", "gone/take.wav"])
def test_a_place_that_cannot_be_written_is_refused_first(tmp_path: Path, name: str) -> None:
    with pytest.raises(InvalidSetting):
        check_target(tmp_path / name)
    assert list(tmp_path.iterdir()) == []


def test_a_folder_is_no_file(tmp_path: Path) -> None:
    with pytest.raises(InvalidSetting, match="is a folder"):
        check_target(tmp_path)


def test_the_refusal_lists_the_formats(tmp_path: Path) -> None:
    with pytest.raises(InvalidSetting, match=r"\.wav, \.mp3, \.ogg, \.flac, \.aiff\."):
        check_target(tmp_path / "take.aac")


def test_the_length_of_no_sound_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "text.wav").write_text("no sound")
    with pytest.raises(InvalidAudio):
        duration(tmp_path / "text.wav")


class FakeOutput:
    """The part of sounddevice.RawOutputStream that is used."""

    def __init__(self, **settings: Any) -> None:
        self.settings, self.heard, self.calls = settings, b"", list[str]()

    def write(self, data: bytes) -> None:
        self.heard += data

    def __getattr__(self, name: str) -> Any:
        return lambda: self.calls.append(name)


def fake_device(monkeypatch: pytest.MonkeyPatch, make: Any) -> None:
    module = SimpleNamespace(RawOutputStream=make, PortAudioError=RuntimeError)
    monkeypatch.setitem(sys.modules, "sounddevice", module)


def test_the_loudspeaker_plays_to_the_end_or_falls_silent(monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[FakeOutput] = []
    fake_device(monkeypatch, lambda **settings: made.append(FakeOutput(**settings)) or made[-1])
    with Loudspeaker() as speaker:
        speaker.write(tone(0.35))
    with pytest.raises(KeyboardInterrupt), Loudspeaker() as speaker:
        raise KeyboardInterrupt
    assert made[0].heard == tone(0.35).tobytes()
    assert made[0].settings == {"samplerate": SAMPLE_RATE, "channels": 1, "dtype": "int16"}
    assert [output.calls for output in made] == [
        ["start", "stop", "close"],
        ["start", "abort", "close"],
    ]


def test_a_machine_without_a_loudspeaker_is_told_what_to_do(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def refuse(**settings: Any) -> None:
        raise RuntimeError("no default output device")

    fake_device(monkeypatch, refuse)
    with pytest.raises(NoLoudspeaker, match="--out"):
        Loudspeaker()
    monkeypatch.setitem(sys.modules, "sounddevice", None)
    with pytest.raises(NoLoudspeaker, match="PortAudio"):
        Loudspeaker()
