"""Imports that are cut short in an engine's process cut nothing off."""

from __future__ import annotations

import subprocess
import sys

TOLD = """
import sys
import engine.worker.early_imports as early
import torch, numba

assert not [each for each in early.NOT_USED if each in sys.modules], "nothing asked for them"
assert "torch._refs" not in sys.modules
import torch._meta_registrations as shapes
assert type(shapes) is early._Later
assert shapes.register_meta is sys.modules["torch._meta_registrations"].register_meta
assert "torch._refs" in sys.modules, "the module itself"

import scipy.linalg
assert scipy.linalg.norm([3.0, 4.0]) == 5.0
assert torch.empty(2, 3, device="meta").T.shape == (3, 2)
"""


def test_what_is_left_out_is_there_for_those_who_ask() -> None:
    ran = subprocess.run(
        [sys.executable, "-W", "error::ImportWarning", "-c", TOLD],
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.returncode == 0, ran.stderr
