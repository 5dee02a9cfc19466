"""How kernels are compiled: to run without Python's lock, and kept for the next start."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

from numba import njit


def version_of(folder: Path) -> str:
    """Of all kernels' sources: a kernel contains what it calls, numba looks at its own file."""
    digest = hashlib.sha256()
    for source in sorted(folder.glob("*.py")):
        digest.update(source.read_bytes())
    return digest.hexdigest()[:12]


VERSION = version_of(Path(__file__).parent)


def compiled(reorder: bool = False) -> Callable[[Callable[..., Any]], Any]:
    """Compile a function; `reorder`: sums may be in any order, which is faster."""

    # Python's division has a branch for zero, which keeps loops from becoming vectors
    options: dict[str, Any] = {"nogil": True, "fastmath": reorder, "error_model": "numpy"}

    def decorate(function: Callable[..., Any]) -> Any:
        function.__qualname__ += f"_{VERSION}"  # numba's name for what it keeps
        try:
            return njit(cache=True, **options)(function)
        except RuntimeError:  # no folder can be written to
            return njit(**options)(function)

    return decorate
