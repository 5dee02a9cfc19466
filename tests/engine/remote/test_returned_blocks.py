"""Blocks between others that stay go back to the system, in a process of their own."""

from __future__ import annotations

import platform
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
SCRIPT = """
import re
from engine.remote.returned_blocks import return_large_blocks
return_large_blocks()
def resident():
    return int(re.search(r"VmRSS:\\s+(\\d+)", open("/proc/self/status").read())[1]) / 1024
bytes(31 << 20)  # glibc would keep what is smaller than this from now on
before, held, kept = resident(), [], []
for _ in range(60):
    held.append(b"x" * (3 << 20))
    kept.append(b"x" * 60_000)
most = resident() - before
held.clear()
print(most, resident() - before)
"""


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="only glibc has this setting")
def test_large_blocks_go_back_to_the_system() -> None:
    command = [sys.executable, "-c", SCRIPT]
    run = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    most, left = map(float, run.stdout.split())
    assert most > 150
    assert left < 30
