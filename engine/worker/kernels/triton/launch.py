"""Triton kernels: launched, or compiled ahead of their first launch, many at a time.

A kernel is compiled when it is first launched, for a second or two. What is launched within
`ahead` is compiled only, on all cores at once; afterwards its launches find it ready.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, nullcontext
from contextvars import ContextVar
from typing import Any

_compiling: ContextVar[bool] = ContextVar("compiling", default=False)


def launch(kernel: Any, grid: tuple[int, ...], *given: Any, **sizes: Any) -> None:
    if _compiling.get():
        kernel.warmup(*given, grid=grid, **sizes)
    else:
        kernel[grid](*given, **sizes)


@contextmanager
def ahead() -> Iterator[None]:
    """Compile what is launched in here, and run none of it."""
    with ThreadPoolExecutor(os.cpu_count()) as pool, _together(pool):
        token = _compiling.set(True)
        try:
            yield
        finally:
            _compiling.reset(token)


def _together(pool: ThreadPoolExecutor) -> Any:
    try:
        from triton.runtime._async_compile import AsyncCompileMode
    except ImportError:  # another version: one after the other
        return nullcontext()
    return AsyncCompileMode(pool)
