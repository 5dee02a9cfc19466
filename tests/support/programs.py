"""Our own programs in processes of their own. What a first start on this machine makes is made
once, by `compile_kernels`, not by each of them."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
CACHE = ROOT / ".pytest_cache" / "d" / "timbre"  # of first starts


def environment(**variables: str) -> dict[str, str]:
    """This process's, without what whoever runs the tests has set of Timbre's settings."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("TIMBRE_")}
    return {**kept, "TIMBRE_CACHE": str(CACHE), **variables}


def visited(module: str, *arguments: str, timeout: float, secret: str = "") -> Any:
    """The line of JSON that `python -m module` prints at the end; `secret` must not be in
    its output."""
    visit = [sys.executable, "-m", module, *arguments]
    ran = subprocess.run(
        visit, cwd=ROOT, capture_output=True, check=False, text=True, timeout=timeout
    )
    assert ran.returncode == 0, ran.stderr
    assert not secret or secret not in ran.stdout + ran.stderr
    return json.loads(ran.stdout.splitlines()[-1])
