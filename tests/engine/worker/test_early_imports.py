"""Imports that are cut short in an engine's process cut nothing off."""

from __future__ import annotations

import builtins
import importlib
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from engine.worker import lean_torch

ALL = """
import engine.worker.early_imports as early
import engine.remote.process

heavy = ("engine.requests.input_processor", "engine.text.spoken_form", "torch._dynamo")
assert not [name for name in heavy if name in sys.modules]

from engine.worker import lean_torch
import torch, numba

assert not [each for each in early.NOT_USED if each in sys.modules], "nothing asked for them"

left = {name for name, module in sys.modules.items() if type(module) is lean_torch._Later}
assert lean_torch.REGISTERED in left, "torch is imported as it is"
first = lean_torch.seeded(3)
assert torch.equal(torch.rand(4, generator=first), torch.rand(4, generator=lean_torch.seeded(3)))
assert not lean_torch._pending.keys() & {lean_torch.REGISTERED}
for name in sorted(left):
    module = sys.modules[name]
    assert module.__file__
    assert not hasattr(module, "there_is_no_such_name")
    assert type(module) is not lean_torch._Later and name not in lean_torch._pending, name
weight = torch.nn.Parameter(torch.ones(2))
torch.optim.Adam([weight]).step()
assert torch.fft.rfft(torch.ones(4))[0] == 4
assert torch.empty(2, 3, device="meta").cumsum(0).shape == (2, 3)

import scipy.linalg
assert scipy.linalg.norm([3.0, 4.0]) == 5.0
"""

LETS_GO = """
from pathlib import Path

def of_files():
    found = Path("/proc/self/status").read_text().partition("RssFile:")[2]
    return int(found.split()[0]) / 1024

import torch
torch.ones(300, 300) @ torch.ones(300, 300)
before = of_files()
import engine.worker.early_imports as early
early.let_go_of_libraries()
assert of_files() < before - 10, (before, of_files())
assert float((torch.ones(300, 300) @ torch.ones(300, 300)).sum()) == 300**3
"""

CHANGED = """
import ctypes, mmap, re
import engine.worker.early_imports as early
from pathlib import Path

maps = Path("/proc/self/maps").read_text()
(end,) = re.findall(r"-([0-9a-f]+) r-xp .*/libc10\\.so", maps)
protect = ctypes.CDLL(None).mprotect
protect.argtypes = ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int
page = int(end, 16) - mmap.PAGESIZE
assert not protect(page, mmap.PAGESIZE, mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC)
last = ctypes.c_ubyte.from_address(page + mmap.PAGESIZE - 1)
last.value ^= 1  # behind the code: as relocations or another program's hook would
changed = last.value
assert not protect(page, mmap.PAGESIZE, mmap.PROT_READ | mmap.PROT_EXEC)
early.let_go_of_libraries()
assert last.value == changed
"""

NO_PROC = """
from pathlib import Path

read = Path.read_text

def refuse(self, *given, **named):
    if str(self).startswith("/proc"):
        raise FileNotFoundError(self)
    return read(self, *given, **named)

Path.read_text = refuse
import engine.worker.early_imports
"""

TOLD = """
import os

os.environ["NUMBA_DISABLE_JIT"] = "1"
import engine.worker.early_imports
from engine.worker.device import compiles_kernels, multiplies_bfloat16

assert not compiles_kernels() and not multiplies_bfloat16()
"""

OLD = """
class Old:
    @staticmethod
    def find_spec(name, path=None, target=None):
        if name == "numba":
            raise ImportError("Numba needs NumPy 2.3 or less.")

sys.meta_path.insert(0, Old)
import engine.worker.early_imports
from engine.worker.device import compiles_kernels, multiplies_bfloat16

assert not compiles_kernels() and not multiplies_bfloat16()
"""

FAILS = """
from engine.worker import lean_torch

lean_torch.LATER += ("torch.nn",)  # not in that order
import engine.worker.early_imports
import torch

assert lean_torch.AS_IT_IS in sys._xoptions and not lean_torch._pending
torch.Generator()
"""

FOR_GPUS = """
import torch

asked = []

class Broken:
    @staticmethod
    def find_spec(name, path=None, target=None):
        if name == "triton":
            asked.append(name)
            raise RuntimeError("a library of it is missing")

torch.cuda.device_count = lambda: {devices}
sys.meta_path.insert(0, Broken)
import engine.worker.early_gpu_imports

assert "engine.worker.worker" in sys.modules and not torch.cuda.is_initialized()
assert bool(asked) is {devices}, "a driver's file alone is no reason to hold Triton"
"""


LINUX = pytest.mark.skipif(sys.platform != "linux", reason="pages are counted in /proc")
OF_LINUX = (pytest.param(each, marks=LINUX) for each in (LETS_GO, CHANGED))
OF_GPUS = (FOR_GPUS.format(devices=devices) for devices in (False, True))
CODES = [ALL, FAILS, NO_PROC, TOLD, OLD, *OF_GPUS, *OF_LINUX]


@pytest.mark.parametrize("code", CODES)
def test_what_is_left_out_is_there_for_those_who_ask(code: str) -> None:
    ran = subprocess.run(
        [sys.executable, "-W", "error::ImportWarning", "-c", f"import sys\n{code}"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.returncode == 0, ran.stderr


def test_a_torch_that_was_not_tried_is_imported_as_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lean_torch, "version", lambda name: "3.0.0")
    before = list(sys.meta_path)
    with lean_torch.lean():
        assert sys.meta_path == before
    lean_torch.whole()  # nothing was left out


def test_a_module_is_read_once_whoever_asks_meanwhile(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    begun, go = threading.Event(), threading.Event()
    (tmp_path / "read_later.py").write_text("begun.set()\nassert go.wait(60)\nvalue = 3\n")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(builtins, "begun", begun, raising=False)
    monkeypatch.setattr(builtins, "go", go, raising=False)
    monkeypatch.setattr(lean_torch, "version", lambda name: f"{lean_torch.TRIED[0]}0")
    monkeypatch.setattr(lean_torch, "LATER", ("read_later",))
    with lean_torch.lean():
        module = importlib.import_module("read_later")
    assert not begun.is_set()
    with ThreadPoolExecutor(2) as pool:
        first = pool.submit(lambda: module.value)
        assert begun.wait(60)
        second = pool.submit(lambda: module.value)
        while not (second.running() or second.done()):
            time.sleep(0.001)
        time.sleep(0.05)  # it fails at once where it does not wait
        go.set()
        assert first.result() == second.result() == 3
    del sys.modules["read_later"]
