"""`say` between other programs: a long text from a pipe, sound into one, an absent device."""

from __future__ import annotations

import io
import subprocess
import sys
from pathlib import Path

import pytest
import soundfile

from studio.layout import ROOT

NEWS = ("Loading", "This machine makes", "Compiling")
APP = [sys.executable, str(ROOT / "app.py")]


def say(*more: str, words: bytes = b"") -> subprocess.CompletedProcess[bytes]:
    line = [*APP, "say", *more, "--seed", "1"]
    return subprocess.run(line, input=words, capture_output=True, check=False, cwd=ROOT)


def test_a_long_text_is_read_from_a_pipe_that_is_full_before_the_model_is_loaded(
    tmp_path: Path,
) -> None:
    words = b"Seven birds sat there. " * 300  # more than one read of the pipe
    out = tmp_path / "birds.wav"
    ran = say("-", "--max-frames", "30", "--out", str(out), words=words)
    assert ran.returncode == 0, ran.stderr.decode()
    assert soundfile.info(out).duration == pytest.approx(2.4)


def test_sound_goes_to_a_pipe_and_news_to_the_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    # Before kernels are compiled the plain form speaks, whose sound is another in its last bits.
    subprocess.run([*APP, "pack"], capture_output=True, check=True, cwd=ROOT)
    ran = say("Seven birds sat there.", "--out", "-")
    assert ran.returncode == 0, ran.stderr.decode()
    assert b"seed 1" in ran.stderr
    sound, rate = soundfile.read(io.BytesIO(ran.stdout))
    assert rate == 24_000
    assert len(sound) > rate
    monkeypatch.setenv("TIMBRE_PROCESS", "shared")
    assert say("Seven birds sat there.", "--out", "-").stdout == ran.stdout, "wherever it is made"


def test_a_reader_that_leaves_ends_the_speech() -> None:
    line = [*APP, "say", "Seven birds sat there. " * 50, "--out", "-"]
    with subprocess.Popen(line, stdout=subprocess.PIPE, stderr=subprocess.PIPE, cwd=ROOT) as ran:
        assert ran.stdout
        assert ran.stderr
        assert ran.stdout.read(4) == b"RIFF"
        ran.stdout.close()
        printed = ran.stderr.read().decode()
    assert [line for line in printed.splitlines() if not line.startswith(NEWS)] == []
    assert ran.returncode == 0, "as of `voices | head -1`"


def test_a_device_that_is_absent_is_named() -> None:
    ran = say("Seven birds.", "--device", "cuda:99", "--out", "-")
    assert ran.returncode == 2
    assert b"This machine has no 'cuda:99'" in ran.stderr
    assert b"Traceback" not in ran.stderr
