"""What encoding a recording takes goes back to the system, in a process of its own."""

from __future__ import annotations

import platform
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[4]
KEPT = 90  # megabytes that may stay: 48 do, 171 did
SCRIPT = """
import re
import numpy as np
from engine.checkpoints.checkpoint import LocalCheckpoint
from engine.worker.device import returned_memory
from engine.worker.worker import TorchWorker
from engine.worker.worker_settings import WorkerSettings

def megabytes(what):
    return int(re.search(rf"{what}:\\s+(\\d+)", open("/proc/self/status").read())[1]) / 1024

def encode(seconds, seed):
    noise = 0.1 * np.random.default_rng(seed).standard_normal(seconds * 24_000)
    worker.encode("mini", noise.astype(np.float32), "")

worker = TorchWorker({"mini": LocalCheckpoint("presets/mini")}, WorkerSettings(1, 512, "cpu"))
with returned_memory(worker.device):  # what glibc is told when a model is loaded
    encode(1, 0)
before = megabytes("VmRSS")
for seed in (1, 2):
    encode(59, seed)
print(megabytes("VmHWM") - before, megabytes("VmRSS") - before)
"""


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="only glibc keeps it")
def test_a_minute_of_sound_leaves_nothing() -> None:
    command = [sys.executable, "-c", SCRIPT]
    run = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    most, left = map(float, run.stdout.split())
    assert most > KEPT
    assert left < KEPT
