"""How kernels are compiled: to run without Python's lock, and kept for the next start."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from numba import njit


def compiled(reorder: bool = False) -> Callable[[Callable[..., Any]], Any]:
    """Compile a function; `reorder`: sums may be in any order, which is faster."""

    def decorate(function: Callable[..., Any]) -> Any:
        try:
            return njit(nogil=True, fastmath=reorder, cache=True)(function)
        except RuntimeError:  # no folder can be written to
            return njit(nogil=True, fastmath=reorder)(function)

    return decorate
