"""Launches Triton kernels, or compiles many of them at once.

The first launch of a kernel compiles it, which takes a second or two. `compile_kernels` compiles
all that some work would launch, on all cores, and runs none of them.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Hashable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, nullcontext
from contextvars import ContextVar
from typing import Any

import torch

# the launches that were compiled; None: launches run
_compiled: ContextVar[set[Hashable] | None] = ContextVar("compiled", default=None)


def launch(kernel: Any, grid: tuple[int, ...], *arguments: Any, **sizes: Any) -> None:
    compiled = _compiled.get()
    if compiled is None:
        kernel[grid](*arguments, **sizes)
        return
    key = kernel, *map(_kind, arguments), *sizes.items()
    if key not in compiled:
        compiled.add(key)
        kernel.warmup(*arguments, grid=grid, **sizes)


def _kind(argument: Any) -> Hashable:
    """Equal for arguments for which Triton compiles the same kernel. It takes no look at numbers
    that it is told not to specialize for, so there may be a kind more."""
    if isinstance(argument, torch.Tensor):
        return argument.dtype, argument.data_ptr() % 16 == 0
    if isinstance(argument, int):
        return argument == 1, argument % 16 == 0, argument.bit_length() > 31
    return str(type(argument))


def compile_kernels(work: Callable[[], object]) -> None:
    """Compile the kernels that `work` launches. Nothing is done where the first of them is kept:
    then a launch finds its kernel."""
    from engine.worker.kernels.triton.compilers import compile_missing

    with only_compiling():
        done = compile_missing(work)
    if not done:
        with only_compiling(), ThreadPoolExecutor(os.cpu_count()) as pool, _async_compile(pool):
            work()


@contextmanager
def only_compiling() -> Iterator[None]:
    token = _compiled.set(set())
    try:
        yield
    finally:
        _compiled.reset(token)


def _async_compile(pool: ThreadPoolExecutor) -> Any:
    try:
        from triton.runtime._async_compile import AsyncCompileMode
    except ImportError:  # other versions of Triton: compile one after the other
        return nullcontext()
    return AsyncCompileMode(pool)
