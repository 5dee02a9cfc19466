"""Trainings in a terminal: listed and deleted, as on the page."""

from __future__ import annotations

from pathlib import Path

import pytest
from typer.testing import CliRunner

import app
from studio.voices.voice_training import WAITING, VoiceTraining
from tests.studio.ui.training.test_own_voice import noisy
from tests.training.voice.test_preparation import spoken, voiced, written
from training.voice.job import Job, JobFolder, Status, take_lock
from training.voice.texts import ENGLISH

ONE, DAMAGED = "0123456789ab", "ba9876543210"


def run(data: Path, *words: str) -> tuple[int, str]:
    done = CliRunner().invoke(app.cli, ["train", *words, "--data", str(data)])
    return done.exit_code, done.output


@pytest.fixture
def data(tmp_path: Path) -> Path:
    folder = JobFolder(tmp_path / "training" / ONE)
    folder.write(Job(name="Ann", model="mini", consent="Ann Lee, my own voice"))
    folder.tell(Status(phase="stopped", text="Stopped."))
    folder.segments.mkdir()
    (folder.segments / "0000.wav").write_bytes(b"a recording")
    (tmp_path / "training" / DAMAGED).mkdir()
    (tmp_path / "training" / DAMAGED / "job.json").write_bytes(b"{")
    return tmp_path


def test_each_is_listed_with_its_id_also_one_that_is_damaged(data: Path) -> None:
    code, printed = run(data, "--list")
    lines = sorted(printed.splitlines())
    assert (code, lines) == (
        0,
        [f"{ONE}  Ann  stopped  Stopped.", f"{DAMAGED}  ?  waiting  {WAITING}"],
    )


def test_deleting_one_removes_its_recordings_and_no_other(data: Path) -> None:
    assert run(data, "--delete", ONE)[0] == 0
    assert [path.name for path in (data / "training").iterdir()] == [DAMAGED]
    assert run(data, "--delete", DAMAGED)[0] == 0
    code, printed = run(data, "--delete", "../training")
    assert code != 0
    assert "There is no training" in printed


def test_a_model_that_is_kept_goes_with_its_training_and_that_is_said(data: Path) -> None:
    kept = JobFolder(data / "training" / ONE).kept / "Ann"
    kept.mkdir(parents=True)
    (kept / "config.json").write_text("{}")
    code, printed = run(data, "--delete", ONE)
    assert code == 0
    assert "Its voice too." in printed
    assert "until it is stopped" in printed
    assert not kept.exists()


def test_one_that_learns_is_asked_to_stop_first(data: Path) -> None:
    folder = JobFolder(data / "training" / ONE)
    with folder.lock():
        code, printed = run(data, "--delete", ONE)
    assert code != 0
    assert "will stop" in printed
    assert folder.stopping
    assert (folder.segments / "0000.wav").exists()


def test_one_that_has_to_wait_is_told_with_its_command(data: Path) -> None:
    with take_lock(data / "training" / "lock") as turn:  # another program starts one
        assert turn
        code, printed = run(data, "--resume", ONE)
    assert code != 0
    assert "Another voice is being trained" in printed
    assert f"train --resume {ONE}" in printed


def test_what_only_its_sound_keeps_out_is_taken_with_an_option(
    data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(VoiceTraining, "start", lambda self, training: None)
    recordings = spoken(tmp_path / "in")
    written(recordings / "fan.wav", noisy(4.5), ENGLISH[8])
    asked = ["--name", "Ben", "--consent", "Ben Lee, my own voice", "--language", "english"]
    _, printed = run(data, str(recordings), *asked)
    assert "fan.wav: too noisy" in printed
    assert "keeps out: --anyway fan.wav. Noise, echo" in " ".join(printed.split())
    _, printed = run(data, str(recordings), *asked, "--anyway", "fan.wav")
    assert "9 lines; 0 set aside" in printed
    first = next(each for each in VoiceTraining(data).list()[1:] if each not in (ONE, DAMAGED))
    run(data, "--resume", first, "--anyway", "fan.wav")
    assert not VoiceTraining(data).folder(first).left_out
    code, printed = run(data, "--resume", first, "--anyway", "line0.wav")
    assert code != 0
    assert "Nothing of line0.wav is left out" in printed
    code, printed = run(data, str(recordings / "fan.wav"), *asked)
    assert code != 0
    assert "--anyway NAME" in printed
    written(recordings / "mute.wav", voiced(4.5) * 0, ENGLISH[9])
    code, printed = run(data, str(recordings / "mute.wav"), *asked, "--anyway", "mute.wav")
    assert code != 0
    assert "silent" in printed
