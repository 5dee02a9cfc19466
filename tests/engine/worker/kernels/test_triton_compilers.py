"""Triton's kernels are compiled by processes. Needs no GPU, and Triton for the last of them."""

from __future__ import annotations

import os
import subprocess
import sys
from collections import deque
from importlib.util import find_spec
from pathlib import Path

import pytest

from engine.worker.kernels.triton import compilers
from engine.worker.kernels.triton.compilers import Job, employ

ROOT = Path(__file__).parents[4]
JOBS = [Job("module", str(number), "{}") for number in range(40)]
# writes what it was given into a file of its own
WRITES = """
import json, os, sys
for line in sys.stdin:
    with open(os.path.join({folder!r}, str(os.getpid())), "a") as file:
        file.write(json.loads(line)[1] + " ")
    {after}
    print("compiled", flush=True)
"""


def given(folder: Path) -> list[list[str]]:
    return [path.read_text().split() for path in folder.iterdir()]


def test_every_job_is_done_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compilers, "usable_cores", lambda: 3)
    waiting = deque(JOBS)
    assert employ(WRITES.format(folder=str(tmp_path), after=""), waiting)
    done = [name for each in given(tmp_path) for name in each]
    assert sorted(done) == sorted(job.name for job in JOBS)
    assert len(given(tmp_path)) <= 3
    assert not waiting


@pytest.mark.parametrize("code", ["sys.exit(1)", "print(flush=True); sys.exit()"])
def test_processes_that_end_leave_the_rest(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, code: str
) -> None:
    monkeypatch.setattr(compilers, "usable_cores", lambda: 2)
    waiting = deque(JOBS)
    assert not employ(WRITES.format(folder=str(tmp_path), after=code), waiting)
    assert waiting, "who started them compiles these itself"


def test_a_job_that_fails_is_told(tmp_path: Path) -> None:
    code = WRITES.format(folder=str(tmp_path), after='print("failed"); continue')
    assert not employ(code, deque(JOBS))
    assert sorted(name for each in given(tmp_path) for name in each) == sorted(
        job.name for job in JOBS
    )


COMPILES = """
import triton
from triton.backends.compiler import GPUTarget

class Driver:
    "Of a GPU that is not here."
    get_current_device = get_current_stream = lambda *_: 0
    get_current_target = lambda _: GPUTarget("cuda", 90, 32)

triton.runtime.driver.set_active(Driver())
import torch
from engine.worker.kernels.triton import linear, compilers
from engine.worker.kernels.triton.launch import compile_kernels, only_compiling

def work():
    for width in (64, 128):
        x = torch.zeros(3, width)
        linear.add_norm(x, x, x[0], 1e-6)
        linear.add_norm(x, None, x[0], 1e-6)
    linear.gate(torch.zeros(3, 64))

elsewhere = []
employ = compilers.employ
compilers.employ = lambda code, waiting: elsewhere.extend(waiting) or employ(code, waiting)
hits = []
compile_kernels(work)
triton.knobs.compilation.listener = lambda *, cache_hit, **_: hits.append(cache_hit)
compilers.employ = None
with only_compiling():  # as launches would find them
    work()
print(len(elsewhere), len(hits), all(hits), triton.knobs.runtime.jit_cache_hook)
"""


@pytest.mark.skipif(find_spec("triton") is None, reason="Triton is not installed")
def test_what_processes_compile_is_what_is_launched(tmp_path: Path) -> None:
    told = {**os.environ, "TRITON_CACHE_DIR": str(tmp_path)}
    told.pop("TRITON_INTERPRET", None)
    printed = [
        subprocess.run(
            [sys.executable, "-c", COMPILES],
            cwd=ROOT,
            env=told,
            check=True,
            capture_output=True,
            text=True,
        ).stdout.split()
        for _ in range(2)
    ]
    assert printed[0] == ["4", "4", "True", "None"], "the first is compiled here"
    assert printed[1] == ["0", "5", "True", "None"], "all are kept"
