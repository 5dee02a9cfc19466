"""Imports that are cut short in an engine's process cut nothing off."""

from __future__ import annotations

import subprocess
import sys

TOLD = """
import sys
import engine.worker.early_imports as early
import torch, numba

assert not [each for each in early.NOT_USED if each in sys.modules], "nothing asked for them"
torch.Generator()

import scipy.linalg
assert scipy.linalg.norm([3.0, 4.0]) == 5.0
"""


def test_what_is_left_out_is_there_for_those_who_ask() -> None:
    ran = subprocess.run(
        [sys.executable, "-W", "error::ImportWarning", "-c", TOLD],
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.returncode == 0, ran.stderr
