"""The tree is clean to the linter, the formatter and the type checker."""

from __future__ import annotations

import re
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


def test_the_oldest_python_that_is_promised_is_checked() -> None:
    """A call that only later Pythons have would otherwise be seen first by who has the oldest."""
    project = (ROOT / "pyproject.toml").read_text("utf-8")
    oldest = re.search(r'^requires-python = ">=3\.(\d+)', project, re.M)[1]
    assert re.search(rf'^python_version = "3\.{oldest}"', project, re.M)  # mypy
    assert re.search(rf'^target-version = "py3{oldest}"', project, re.M)  # ruff
