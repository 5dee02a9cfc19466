"""A visit in a process of its own: its module prints one line of JSON at the end."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]


def visited(module: str, *arguments: str, timeout: float, secret: str = "") -> Any:
    """The result of `python -m module`; `secret` must not be in its output."""
    visit = [sys.executable, "-m", module, *arguments]
    ran = subprocess.run(
        visit, cwd=ROOT, capture_output=True, check=False, text=True, timeout=timeout
    )
    assert ran.returncode == 0, ran.stderr
    assert not secret or secret not in ran.stdout + ran.stderr
    return json.loads(ran.stdout.splitlines()[-1])
