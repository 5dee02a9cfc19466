"""Launches Triton kernels, or compiles many of them in parallel.

The first launch of a kernel compiles it, which takes a second or two. Launches within
`compile_only` compile on all cores at once and run nothing.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, nullcontext
from contextvars import ContextVar
from typing import Any

_compiling: ContextVar[bool] = ContextVar("compiling", default=False)


def launch(kernel: Any, grid: tuple[int, ...], *arguments: Any, **sizes: Any) -> None:
    if _compiling.get():
        kernel.warmup(*arguments, grid=grid, **sizes)
    else:
        kernel[grid](*arguments, **sizes)


@contextmanager
def compile_only() -> Iterator[None]:
    """Launches in this context compile their kernels and do not run."""
    with ThreadPoolExecutor(os.cpu_count()) as pool, _async_compile(pool):
        token = _compiling.set(True)
        try:
            yield
        finally:
            _compiling.reset(token)


def _async_compile(pool: ThreadPoolExecutor) -> Any:
    try:
        from triton.runtime._async_compile import AsyncCompileMode
    except ImportError:  # other versions of Triton: compile one after the other
        return nullcontext()
    return AsyncCompileMode(pool)
