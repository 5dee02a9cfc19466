"""Our own programs in processes of their own, for tests: what a first start on this machine makes
is made once, by `compile_kernels`, not by each of them."""

from __future__ import annotations

import os
from pathlib import Path

ROOT = Path(__file__).parents[2]
CACHE = ROOT / ".pytest_cache" / "d" / "timbre"  # of first starts: see `pack` in docs/settings.md


def environment(**own: str) -> dict[str, str]:
    """This process's, without what whoever runs the tests has set of Timbre's settings."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("TIMBRE_")}
    return {**kept, "TIMBRE_CACHE": str(CACHE), **own}
