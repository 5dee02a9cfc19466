"""The tree is clean to the linter, the formatter and the type checker."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
COMMANDS = (("ruff", "check", "."), ("ruff", "format", "--check", "."), ("mypy",))


@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
def test_tool_is_content(command: tuple[str, ...]) -> None:
    run = [sys.executable, "-m", *command]
    done = subprocess.run(run, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
