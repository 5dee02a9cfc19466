"""`mood …` and `say --mood` on an engine without a model."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from engine import SAMPLE_RATE, Clone, Library, Mooded, SpeechRequest, SpeechStream, save_sound
from engine.testing import FakeEngine
from tests.studio.cli.test_cli import opened, refused, run

__all__ = ["opened"]

pytestmark = pytest.mark.usefixtures("opened")
TEXT = "The train leaves at seven. [glad] It is a fine day. [/glad]"


@pytest.fixture
def data(tmp_path: Path) -> Path:
    Library(tmp_path / "voices").save("anna", Clone(np.ones(16, np.float32)), consent=True)
    return tmp_path


def sound(folder: Path, seed: int) -> Path:
    path = folder / f"take-{seed}.wav"
    pcm = np.random.default_rng(seed).integers(-9, 9, 3 * SAMPLE_RATE) * 1000
    save_sound(path, pcm.astype(np.int16))
    return path


def names(data: Path) -> list[str]:
    return [line.split("\t")[0] for line in run("mood", "list", data=data).stdout.splitlines()]


def test_a_mood_is_learned_listed_exported_imported_and_deleted(data: Path) -> None:
    result = run("mood", "learn", "glad", "ryan", "vivian", "--words", "happy merry", data=data)
    assert result.exit_code == 0, result.output
    assert result.stdout.startswith("glad\t")
    assert result.stdout.rstrip().endswith("happy merry")
    file = data / "glad.safetensors"
    assert run("mood", "export", "merry", file, data=data).exit_code == 0
    assert run("mood", "delete", "glad", data=data).exit_code == 0
    assert names(data) == []
    assert run("mood", "import", file, data=data).exit_code == 0
    assert names(data) == ["glad"]
    for arguments in (["export", "sad", file], ["delete", "sad"]):
        refused(run("mood", *arguments, data=data), "No mood is called 'sad'")
    refused(run("mood", "learn", "sad", "ryan", data=data), "then pairs")
    refused(run("mood", "import", data / "gone.safetensors", data=data), "no file")


def test_recordings_are_learned_from_only_with_consent(data: Path) -> None:
    pair = [sound(data, 1), sound(data, 2)]
    refused(run("mood", "learn", "glad", *pair, data=data), "--consent")
    assert names(data) == []
    assert run("mood", "learn", "glad", *pair, "--consent", data=data).exit_code == 0
    assert names(data) == ["glad"]


def test_a_recording_in_a_mood_is_kept_with_its_voice(data: Path) -> None:
    refused(run("mood", "record", "anna", "glad", sound(data, 1), data=data), "--consent")
    heard = ["--transcript", "What I said.", "--consent"]
    result = run("mood", "record", "anna", "glad", sound(data, 1), *heard, data=data)
    assert result.stdout == "anna: glad\n"
    spoken = run("say", TEXT, "--voice", "anna", "--out", data / "a.wav", data=data)
    assert "glad (its own recording)" in spoken.output


def test_speech_in_a_mood_is_spoken_by_the_voice_in_it(
    data: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert run("mood", "learn", "glad", "ryan", "vivian", data=data).exit_code == 0
    requests, submit = list[SpeechRequest](), FakeEngine.submit

    def kept(engine: FakeEngine, request: SpeechRequest) -> SpeechStream:
        requests.append(request)
        return submit(engine, request)

    monkeypatch.setattr(FakeEngine, "submit", kept)

    def doses(*words: str) -> list[tuple[str, float]]:
        result = run("say", "Good morning.", *words, "--out", data / "a.wav", data=data)
        assert result.exit_code == 0, result.output
        voice = requests.pop().voice
        return (
            [(mood.name, dose) for mood, dose in voice.moods] if isinstance(voice, Mooded) else []
        )

    assert doses("--voice", "anna") == []
    assert doses("--voice", "anna", "--mood", "glad") == [("glad", 1.0)]
    assert doses("--voice", "anna", "--mood", "gladly:0.5") == [("glad", 0.5)]
    assert doses("--voice", "anna+glad:0.5") == [("glad", 0.5)]
    ran = run("say", TEXT, "--voice", "anna", "--out", data / "t.wav", data=data)
    assert "glad (learned)" in ran.output


@pytest.mark.parametrize("mood", ["sad", "glad:2", "glad:x"])
def test_a_mood_that_is_none_is_refused(data: Path, mood: str) -> None:
    run("mood", "learn", "glad", "ryan", "vivian", data=data)
    refused(run("say", "Hello.", "--mood", mood, data=data), "mood")
