"""Launches Triton kernels, or compiles many of them at once.

The first launch of a kernel compiles it, which takes a second or two. `compile_kernels` compiles
all that some work would launch, on all cores, and runs none of them.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
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


def compile_kernels(work: Callable[[], object]) -> None:
    """Compile the kernels that `work` launches. It runs twice where they are not kept yet."""
    from engine.worker.kernels.triton.compilers import compile_missing

    with _only_compiling():
        compile_missing(work)
        with ThreadPoolExecutor(os.cpu_count()) as pool, _async_compile(pool):
            work()


@contextmanager
def _only_compiling() -> Iterator[None]:
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
