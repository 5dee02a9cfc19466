"""all.sh waits for what is on its way, makes what is missing, and waits for nothing for ever."""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import pytest

ALL = Path(__file__).parents[2] / "training" / "all.sh"
# Writes down what is asked of it and makes its files; FAILS fails the first TIMES.
PYTHON = """#!/bin/sh
echo "$2" "$@" >> "$WORK/asked"
[ "$2" != "$FAILS" ] || [ "$(grep -c "^$2 " "$WORK/asked")" -gt "$TIMES" ] || exit 1
while [ $# -gt 1 ]; do
    case "$1" in --out | --state) touch "$2" ;; esac
    shift
done
"""
Run = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture
def work(tmp_path: Path) -> Path:
    folder = tmp_path / "work"
    (folder / "begin").mkdir(parents=True)
    (folder / "tokenizer").mkdir()
    for name in ("said.json.gz", "said-aside.json.gz", "kokoro.pt", "corpus.json"):
        (folder / name).touch()
    for name in ("codec", "speaker", "talker"):
        (folder / "begin" / f"{name}.pt").touch()
    return folder


@pytest.fixture
def run(tmp_path: Path, work: Path) -> Run:
    tools = tmp_path / "tools"
    tools.mkdir()
    for name, text in (("python", PYTHON), ("sleep", "#!/bin/sh\nexec /bin/sleep 0.02\n")):
        (tools / name).write_text(text)
        (tools / name).chmod(0o755)

    def run(seconds: int, fails: str = "", times: int = 9999, **settings: str) -> object:
        own = {
            "PATH": f"{tools}:{os.environ['PATH']}",
            "PYTHON": "python",
            "WORK": str(work),
            "FAILS": fails,
            "TIMES": str(times),
            "BY": str(int(time.time()) + seconds),
            **dict.fromkeys(("SAVING", "SPEECH", "MORE_SPEECH", "MAKERS"), "0"),
            **dict.fromkeys(("BEGIN", "GRAPHS", "COMPILE", "TILT"), ""),
        }
        return subprocess.run(
            ["sh", ALL, work], env={**own, **settings}, check=False, capture_output=True, text=True,
            cwd=ALL.parents[1], timeout=30,
        )  # fmt: skip

    return run  # type: ignore[return-value]


def asked(work: Path, module: str) -> list[str]:
    lines = (work / "asked").read_text().splitlines()
    return [line for line in lines if line.startswith(f"{module} ")]


def test_speech_to_be_judged_by_is_tried_again(work: Path, run: Run) -> None:
    ended = run(20, "training.teachers.synthesize", 2, CODES_STAY="1")
    assert ended.returncode == 0, ended.stderr
    assert len(asked(work, "training.teachers.synthesize")) == 3
    assert (work / "validation.done").exists()
    assert (work / "model").exists()


def test_speech_that_never_comes_is_not_waited_for(work: Path, run: Run) -> None:
    ended = run(1, "training.teachers.synthesize", CODES_STAY="1")
    assert ended.returncode == 1
    assert "speech to be judged by did not come in time" in ended.stderr


def test_a_codec_that_fails_ends_the_waiting_for_it(work: Path, run: Run) -> None:
    ended = run(20, "training.train_codec", CODEC="0", BEGIN="given")
    assert ended.returncode == 0, ended.stderr
    assert "the codec failed" in ended.stdout
    assert len(asked(work, "training.smooth_speaker")) == 1
    assert (work / "model").exists()


@pytest.mark.parametrize("missing", ["said.json.gz", "said-aside.json.gz"])
def test_of_two_files_of_texts_the_missing_one_is_made(work: Path, run: Run, missing: str) -> None:
    (work / missing).unlink()
    assert run(20, CODES_STAY="1").returncode == 0
    (made,) = asked(work, "training.teachers.phonemes")
    assert made.endswith((missing, f"{missing} --held-out"))
    assert ("--held-out" in made) == (missing == "said-aside.json.gz")
    assert asked(work, "training.data.text") == []
