"""Ctrl-C at any moment is one line or none, and the usual exit code."""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import pytest
from typer.testing import CliRunner

import app
from studio.layout import ROOT

if sys.platform == "win32":
    pytest.skip("signals are those of POSIX", allow_module_level=True)

# Python tells of each module when it has been imported, the last with what it was imported for.
MOMENTS = [
    "studio.cli.console",
    "typer._click",
    "pydantic",
    "studio.settings",
]
LATER = ["studio.cli.say_options", "studio.cli.app_context"]  # once the command runs
TOLD = "import time:"


@pytest.fixture(autouse=True)
def heard() -> Iterator[None]:
    """Heed SIGINT: a script in the background ignores it, and so does all that it starts."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


def interrupted(at: str, out: Path) -> tuple[int, list[str]]:
    """The exit code of a `say` that was interrupted when a module was there, and what it said."""
    line = [
        sys.executable,
        "-X",
        "importtime",
        str(ROOT / "app.py"),
        "say",
        "Hello.",
        "-o",
        str(out),
    ]
    with subprocess.Popen(line, stderr=subprocess.PIPE, text=True, cwd=ROOT) as ran:
        assert ran.stderr
        words, sent = list[str](), False
        for each in ran.stderr:
            if each.startswith(TOLD):
                if each.rpartition("|")[2].strip() == at:
                    ran.send_signal(signal.SIGINT)
                    sent = True
            else:
                words.append(each.strip())
    assert sent
    return ran.returncode, words


@pytest.mark.parametrize("at", MOMENTS + LATER)
def test_an_interrupt_is_a_word_or_none(at: str, tmp_path: Path) -> None:
    out = tmp_path / "hello.wav"
    code, words = interrupted(at, out)
    assert code in (130, -signal.SIGINT)
    assert words in ([], ["Stopped."])
    assert words == ["Stopped."] or at in MOMENTS
    assert list(tmp_path.iterdir()) == []


def test_an_interrupt_that_is_ignored_stays_ignored() -> None:
    """As under nohup, or in the background of a script."""
    ran = subprocess.run(
        [
            sys.executable,
            "-c",
            "import signal\n"
            "signal.signal(signal.SIGINT, signal.SIG_IGN)\n"
            "from studio.cli.interrupts import end_at_once, raised\n"
            "end_at_once()\n"
            "with raised():\n"
            "    signal.raise_signal(signal.SIGINT)\n"
            "print('alive')",
        ],
        capture_output=True,
        text=True,
        check=False,
        cwd=ROOT,
    )
    assert (ran.returncode, ran.stdout) == (0, "alive\n")


class Stopping:
    """A training that Ctrl-C meets while it is followed."""

    def __init__(self, *_: object) -> None:
        self.waited = 0

    def start(self, training: str) -> None: ...
    def stop(self, training: str) -> None: ...

    def folder(self, training: str) -> SimpleNamespace:
        return SimpleNamespace(left_out=())

    def wait(self, training: str, seconds: float) -> bool:
        self.waited += 1
        if self.waited == 1:
            raise KeyboardInterrupt
        return self.waited > 3


def test_a_training_that_is_stopped_says_in_one_line_how_to_go_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("studio.cli.train.VoiceTraining", Stopping)
    ran = CliRunner().invoke(app.cli, ["train", "--resume", "0123abcd", "--data", str(tmp_path)])
    assert ran.exit_code == 130
    assert ran.stderr == "Stopped. Go on: python app.py train --resume 0123abcd\n"
