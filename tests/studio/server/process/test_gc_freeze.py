"""Frozen objects are not collected again, and matplotlib is not imported."""

from __future__ import annotations

import subprocess
import sys

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


def told(first: str = "") -> str:
    run = [sys.executable, "-c", TOLD.format(first=first)]
    return subprocess.run(run, check=True, capture_output=True, text=True).stdout.strip()


def test_gradio_finds_nothing_to_plot_with() -> None:
    assert told("import gradio") == "False"


def test_without_the_page_nothing_is_hidden() -> None:
    assert told() == "True"  # requirements-dev.txt has matplotlib
