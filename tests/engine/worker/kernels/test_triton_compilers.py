"""Triton's kernels are compiled by processes. Needs no GPU, and Triton for the last of them."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from collections import deque
from importlib.util import find_spec
from pathlib import Path
from types import SimpleNamespace

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


@pytest.mark.parametrize("python", ["", None, "/nowhere/python"])
def test_all_is_left_where_no_process_can_begin(
    monkeypatch: pytest.MonkeyPatch, python: str | None
) -> None:
    monkeypatch.setattr(sys, "executable", python)
    waiting = deque(JOBS)
    assert not employ("", waiting)
    assert list(waiting) == JOBS


def test_a_program_that_brings_its_python_is_not_started_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its executable is no Python: it would open its windows, and wait for its user."""
    monkeypatch.setattr(sys, "frozen", True, raising=False)
    assert not employ(WRITES.format(folder=str(tmp_path), after=""), deque(JOBS))
    assert not given(tmp_path)


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no sessions")
def test_a_terminal_interrupts_no_process(tmp_path: Path) -> None:
    code = WRITES.format(folder=str(tmp_path), after="os.getsid(0) == os.getpid() or sys.exit(1)")
    assert employ(code, deque(JOBS))


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no such signal")
def test_a_process_whose_parent_is_gone_ends_without_a_word(tmp_path: Path) -> None:
    """In the middle of a job: its answer is read by nobody."""
    modules = {
        "__init__": "",
        "backends/__init__": "",
        "backends/compiler": "GPUTarget = tuple",
        "compiler": "ASTSource, make_backend = object, None",
    }
    for name, text in modules.items():
        path = tmp_path / "triton" / f"{name}.py"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    code = f"import sys; sys.path.insert(0, {str(tmp_path)!r}); from {compilers.__package__}"
    code += ".compiler_process import main; main((), 'compiled')"
    read, write = os.pipe()
    os.close(read)
    ended = subprocess.run(
        [sys.executable, "-c", code],
        check=False,
        cwd=ROOT,
        input='["wave", "no kernel", "{}"]\n',
        stdout=write,
        stderr=subprocess.PIPE,
        text=True,
    )
    os.close(write)
    assert (ended.stderr, ended.returncode) == ("", -signal.SIGPIPE)


INTERRUPTED = """
import signal, sys
from collections import deque
from pathlib import Path
from engine.worker.kernels.triton import compilers

signal.signal(signal.SIGINT, signal.default_int_handler)  # who runs tests may ignore it
compilers.usable_cores = lambda: 1
jobs = deque(compilers.Job("module", str(number), "{{}}") for number in range(40))
try:
    compilers.employ({code!r}, jobs)
except KeyboardInterrupt:
    Path({folder!r}, "go").touch()
"""
INTERRUPTS = """parent = os.getppid()
    if number == "0":
        os.kill(parent, 2)
    while number == "1" and parent == os.getppid() and not os.path.exists({go!r}):
        pass"""
LONGEST = 300  # seconds; it takes one


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no such signal")
def test_who_interrupts_waits_for_no_job_that_was_not_begun(tmp_path: Path) -> None:
    (tmp_path / "done").mkdir()
    folder = str(tmp_path)
    interrupts = INTERRUPTS.format(go=str(tmp_path / "go"))
    after = f"number = json.loads(line)[1]\n    {interrupts}"
    code = WRITES.format(folder=str(tmp_path / "done"), after=after)
    script = INTERRUPTED.format(code=code, folder=folder)
    subprocess.run([sys.executable, "-c", script], cwd=ROOT, check=True, timeout=LONGEST)
    assert given(tmp_path / "done") in ([["0"]], [["0", "1"]])


def test_a_version_that_cannot_be_asked_what_is_kept_does_no_harm(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    runtime = SimpleNamespace(jit_cache_hook=None)
    active = SimpleNamespace(get_current_target=SimpleNamespace)  # of no known form
    driver = SimpleNamespace(driver=SimpleNamespace(active=active))
    triton = SimpleNamespace(knobs=SimpleNamespace(runtime=runtime), runtime=driver)
    monkeypatch.setitem(sys.modules, "triton", triton)
    unknown = SimpleNamespace(is_kept=lambda *_: {}["constant_keys"])
    monkeypatch.setitem(sys.modules, f"{compilers.__package__}.compiler_process", unknown)
    left: list[Job] = []
    monkeypatch.setattr(compilers, "compile_elsewhere", lambda jobs: left.extend(jobs) or False)

    def work() -> None:
        for name in ("one", "two", "one"):
            told = {"specialization_data": f"of {name}"}
            named = SimpleNamespace(module="module", name=name, jit_function=None)
            assert runtime.jit_cache_hook(fn=named, compile=told)

    assert not compilers.compile_missing(work)
    assert left == [Job("module", "two", "of two")], "the first is for the first launch"


def test_two_that_load_at_once_leave_no_hook(monkeypatch: pytest.MonkeyPatch) -> None:
    """It would refuse launches for good, without a word."""
    runtime = SimpleNamespace(jit_cache_hook=None)
    triton = SimpleNamespace(knobs=SimpleNamespace(runtime=runtime))
    monkeypatch.setitem(sys.modules, "triton", triton)
    there, left = threading.Event(), threading.Event()

    def second() -> None:
        there.set()
        left.wait()

    other = threading.Thread(target=compilers.compile_missing, args=(second,))

    def first() -> None:
        other.start()
        there.wait(0.2)  # in vain

    compilers.compile_missing(first)
    left.set()
    other.join()
    assert runtime.jit_cache_hook is None


COMPILES = """
import sys
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
if "cut off" in sys.argv:
    compilers.employ = lambda *_: sys.exit("cut off")
hits = []
compile_kernels(work)
triton.knobs.compilation.listener = lambda *, cache_hit, **_: hits.append(cache_hit)
compilers.employ = None
with only_compiling():  # as launches would find them
    work()
print(len(elsewhere), len(hits), sum(hits), triton.knobs.runtime.jit_cache_hook)
"""


@pytest.mark.skipif(find_spec("triton") is None, reason="Triton is not installed")
def test_what_processes_compile_is_what_is_launched(tmp_path: Path) -> None:
    told = {**os.environ, "TRITON_CACHE_DIR": str(tmp_path)}
    told.pop("TRITON_INTERPRET", None)
    printed = []
    for start in ("cut off", "again", "after that"):
        ended = subprocess.run(
            [sys.executable, "-c", COMPILES, start],
            check=False,
            cwd=ROOT,
            env=told,
            capture_output=True,
            text=True,
        )
        printed.append(ended.stdout.split() or ended.stderr.splitlines()[-1:])
    assert printed[0] == ["cut off"]
    assert printed[1] == ["4", "5", "4", "None"], "the first is compiled here, after the others"
    assert printed[2] == ["0", "5", "5", "None"], "all are kept"
