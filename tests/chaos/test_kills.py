"""kill -9 at random moments: nothing that was saved is lost, nothing half-written is shown."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


def kill(folder: Path, kills: int, seed: int) -> dict[str, int]:
    command = [sys.executable, "-m", "tests.chaos.saver", str(folder), str(kills), str(seed)]
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    result = subprocess.run(
        command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=600, check=False
    )
    assert result.returncode == 0, result.stderr[-2000:]
    print(result.stdout)
    figures: dict[str, int] = json.loads(result.stdout)
    return figures


@pytest.mark.skipif(sys.platform == "win32", reason="needs fork and SIGKILL")
@pytest.mark.parametrize("kills", [15, pytest.param(200, marks=pytest.mark.slow)])
def test_killed_while_saving(tmp_path: Path, kills: int) -> None:
    figures = kill(tmp_path, kills, seed=1)
    assert figures["kills"] == kills
    assert figures["saved"] >= kills  # they were killed at work, not before it
    assert figures["in the middle"] > kills // 2
