"""Frozen objects are not collected again, and matplotlib is not imported."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

TOLD = """
import gc, importlib.util, sys
from studio.server.process.gc_freeze import settle
{first}
before = len(gc.get_objects())
settle()
assert gc.get_freeze_count() > before / 2 and len(gc.get_objects()) < before / 2
ring = []
ring.append(ring)
del ring
assert sys.getswitchinterval() < 0.001
assert gc.collect() > 0, "what comes later is collected"
print(importlib.util.find_spec("matplotlib") is not None)
"""


@pytest.fixture
def matplotlib(tmp_path: Path) -> Path:
    """A folder with a package of that name."""
    (tmp_path / "matplotlib").mkdir()
    (tmp_path / "matplotlib" / "__init__.py").touch()
    return tmp_path


def found(folder: Path, first: str = "") -> str:
    run = [sys.executable, "-c", TOLD.format(first=first)]
    environment = {**os.environ, "PYTHONPATH": str(folder)}
    done = subprocess.run(run, check=True, capture_output=True, text=True, env=environment)
    return done.stdout.strip()


def test_gradio_finds_nothing_to_plot_with(matplotlib: Path) -> None:
    assert found(matplotlib, "import gradio") == "False"


def test_without_the_page_nothing_is_hidden(matplotlib: Path) -> None:
    assert found(matplotlib) == "True"


LEFT = """
import gc, sys, types, weakref
from studio.server.process.gc_freeze import start_lean, settle
start_lean()
{first}
class Left: pass
left = Left()
left.itself, seen = left, weakref.ref(left)
del left
settle()
print(seen() is None)
"""


@pytest.mark.parametrize(
    ("first", "gone"), [("", "False"), ("sys.modules['torch'] = None", "True")]
)
def test_what_a_model_left_here_is_collected(first: str, gone: str) -> None:
    """Where the engine has another process, looking for it would hold up the start."""
    run = [sys.executable, "-c", LEFT.format(first=first)]
    assert subprocess.check_output(run, text=True).strip() == gone


def test_a_client_reads_no_command_line_of_its_library() -> None:
    code = (
        "import sys\n"
        "from studio.server.process.gc_freeze import start_lean\n"
        "start_lean()\n"
        "from studio.cli.connection import Connection\n"
        "assert 'httpx' in sys.modules\n"
        "print('rich' in sys.modules)"
    )
    assert subprocess.check_output([sys.executable, "-c", code], text=True).strip() == "False"
