"""recipe.sh does its steps once and in order, and goes on where it was broken off."""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
TRAINING = ROOT / "training"
# Writes down what is asked of it and makes its files; calls with FAILS in them fail.
PYTHON = """#!/bin/sh
echo "$2" "$@" >> "$WORK/asked"
[ -z "$FAILS" ] || case "$*" in *"$FAILS"*) exit 1 ;; esac
module=$2 last=
while [ $# -gt 0 ]; do
    case "$1" in
    --out) case "$2" in *.*) touch "$2" ;; *) mkdir -p "$2" ;; esac ;;
    --state) touch "$2" ;;
    esac
    last=$1
    shift
done
case "$module" in
training.teachers.kokoro_weights) touch "$last" ;;
training.resume)
    mkdir -p "$last/tokenizer"
    for name in codec speaker talker; do touch "$last/$name.pt"; done
    ;;
training.state) touch "$last" 2> /dev/null || true ;;
esac
"""
STEPS = [
    "data.text",
    "teachers.phonemes",
    "teachers.phonemes",
    "teachers.kokoro_weights",
    "resume",
    "teachers.synthesize",
    "teachers.synthesize",
    "train_codec",
    "smooth_speaker",
    "train_decoder",
    "train_talker",
    "equalize",
    "export",
]
# Options of other modules that a module takes too.
BORROWED = {"training.train_decoder": "train_codec", "training.smooth_speaker": "train_speaker"}
Run = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.fixture
def work(tmp_path: Path) -> Path:
    folder = tmp_path / "work"
    folder.mkdir()
    return folder


@pytest.fixture
def run(tmp_path: Path, work: Path) -> Run:
    tools = tmp_path / "tools"
    tools.mkdir()
    (tools / "python").write_text(PYTHON)
    (tools / "python").chmod(0o755)

    def run(
        script: str = "recipe.sh", *more: str, fails: str = "", **settings: str
    ) -> subprocess.CompletedProcess[str]:
        variables = {
            "PATH": f"{tools}:{os.environ['PATH']}",
            "PYTHON": "python",
            "WORK": str(work),
            "FAILS": fails,
            "GPUS": "1",
        }
        return subprocess.run(
            ["sh", TRAINING / script, work, *more], env={**variables, **settings}, check=False,
            capture_output=True, text=True, cwd=ROOT, timeout=60,
        )  # fmt: skip

    return run


def steps_of(work: Path, module: str = "") -> list[str]:
    lines = (work / "asked").read_text().splitlines()
    return [line for line in lines if line.startswith(f"training.{module}")]


def modules(work: Path) -> list[str]:
    return [line.split()[0].removeprefix("training.") for line in steps_of(work)]


def test_each_step_is_done_once_and_in_order(work: Path, run: Run) -> None:
    for _ in range(2):
        ended = run()
        assert ended.returncode == 0, ended.stdout + ended.stderr
    assert modules(work) == STEPS
    assert (work / "model").is_dir()


def test_a_step_that_fails_ends_the_recipe_and_is_gone_on_from(work: Path, run: Run) -> None:
    assert run(fails="training.train_decoder").returncode != 0
    assert "train_talker" not in modules(work)
    assert run().returncode == 0
    assert len(steps_of(work, "train_codec ")) == 1
    first, *_, last = steps_of(work, "train_decoder ")
    assert "--restart" in first
    assert "--restart" not in last  # a schedule goes on where it was broken off


def test_gpus_that_cannot_train_together_do_it_alone(work: Path, run: Run) -> None:
    assert run(fails="--peers 2", GPUS="2").returncode == 0
    calls = steps_of(work, "train_codec ")
    assert sorted("--peers" in call for call in calls) == [False, True, True]


def test_steps_beside_each_other_have_gpus_of_their_own(work: Path, run: Run) -> None:
    kept = {"BESIDE": "1", "GPUS": "3", "UNTIL": "9999999999", "KEEP": "codec speaker"}
    ended = run(**kept)
    assert ended.returncode == 0, ended.stderr
    (decoder,) = steps_of(work, "train_decoder ")
    assert "--peers 1" in decoder
    assert len(steps_of(work, "train_talker ")) == 2
    for call in (decoder, *steps_of(work, "train_talker ")):
        assert "--until 9999999999" in call
        assert "--wait-hours 5" in call
    assert len(steps_of(work, "teachers.synthesize ")) == 6
    assert (work / "model").is_dir()


def test_one_gpu_has_decoder_and_talker_at_once(work: Path, run: Run) -> None:
    more = {"DECODER": "--batch 12", "TALKER": "--rows 16384"}
    assert run(BESIDE="1", KEEP="codec speaker", **more).returncode == 0
    assert ["--batch 12" in call for call in steps_of(work, "train_decoder ")] == [True]
    assert ["--rows 16384" in call for call in steps_of(work, "train_talker ")] == [True]
    assert (work / "model").is_dir()


def test_a_step_beside_others_that_fails_ends_the_recipe(work: Path, run: Run) -> None:
    ended = run(fails="training.train_decoder", BESIDE="1", GPUS="2", KEEP="codec speaker")
    assert ended.returncode != 0
    assert not (work / "model").exists()
    assert run(BESIDE="1", GPUS="2", KEEP="codec speaker").returncode == 0
    assert len(steps_of(work, "train_talker ")) == 1


def test_from_nothing_and_with_people(work: Path, run: Run, tmp_path: Path) -> None:
    assert run(BEGIN="", PEOPLE=str(tmp_path)).returncode == 0
    assert steps_of(work, "resume") == []
    assert len(steps_of(work, "tokenizer ")) == len(steps_of(work, "train_speaker ")) == 1
    (codec,) = steps_of(work, "train_codec ")
    assert f"--people {work}/people" in codec


def test_steps_that_are_kept_are_left_out(work: Path, run: Run) -> None:
    assert run(KEEP="codec decoder speaker").returncode == 0
    trained = {"train_codec", "train_decoder", "smooth_speaker"}
    assert trained.isdisjoint(modules(work))
    assert (work / "decoder.pt").exists()


def test_a_lent_machine_hands_out_what_is_new(work: Path, run: Run, tmp_path: Path) -> None:
    out = tmp_path / "out"
    for _ in range(60):
        ended = run("lent.sh", str(out), "1")
        assert ended.returncode == 0, ended.stderr
        if (work / "model").is_dir():
            break
    run("lent.sh", str(out), "0")
    assert (out / "logs.txt").read_text()
    split = [line.split() for line in steps_of(work, "state") if " split " in line]
    sent = {path.rpartition("/")[2] for *_, path, _ in split}
    assert sent == {"codec.pt", "decoder.pt", "talker.pt", "speaker.pt"}, steps_of(work, "state")


def test_every_option_is_one_of_its_module(work: Path, run: Run, tmp_path: Path) -> None:
    run(BEGIN="", PEOPLE=str(tmp_path))
    shared = "".join((TRAINING / f"{name}.py").read_text() for name in ("train_loop", "peers"))
    for line in steps_of(work):
        module, *rest = line.split()
        source = (ROOT / f"{module.replace('.', '/')}.py").read_text() + shared
        if module in BORROWED:
            source += (TRAINING / f"{BORROWED[module]}.py").read_text()
        for option in re.findall(r"--[a-z-]+", " ".join(rest)):
            named = 'f"--{name}"' in source and f'"{option[2:]}"' in source  # in a loop
            assert named or f'"{option}"' in source, f"{module} has no {option}"
