"""Picks the device and dtype, and sets device-wide options."""

from __future__ import annotations

import ctypes
import os
import platform
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path

import torch

CPU_QUOTA = Path("/sys/fs/cgroup/cpu.max")  # of a container: microseconds, and of how many
ARM = ("aarch64", "arm64")  # as platforms name it
MMAP_THRESHOLD, TRIM_THRESHOLD = -3, -1  # parameters of glibc's mallopt
LARGE_WEIGHTS = 100 << 20  # bytes of a talker whose steps take tens of milliseconds


def pick_device(name: str | None) -> torch.device:
    return torch.device(name or ("cuda" if torch.cuda.is_available() else "cpu"))


def runs_cuda(device: torch.device) -> bool:
    """Whether kernels, graphs and driver calls of CUDA may run there: AMD's GPUs are named cuda
    as well, by a torch that was built for ROCm."""
    return device.type == "cuda" and torch.version.cuda is not None


def usable_cores() -> int:
    """Cores that this process may use at a time: torch's own count, the affinity, the quota."""
    cores = min(_default_threads(), os.cpu_count() or 1)
    if hasattr(os, "sched_getaffinity"):
        cores = min(cores, len(os.sched_getaffinity(0)))
    return max(1, min(cores, _quota() or cores))


@cache
def _default_threads() -> int:
    """Torch's own number, before the first worker changes it."""
    return torch.get_num_threads()


def step_threads(cores: int, weights: int) -> int:
    """Threads of a step on a CPU, of a talker with so many bytes of weights.

    One core is left for streaming, because oversubscribed threads make a step up to five times as
    long. With two cores a large talker takes both: its steps are long beside what streaming needs.
    """
    least = 2 if weights >= LARGE_WEIGHTS else 1
    return min(cores, max(least, cores - 1))


@contextmanager
def returned_memory(device: torch.device) -> Iterator[None]:
    """On a CPU with glibc, give back the memory that loading a model frees.

    Meanwhile every large block has pages of its own, which go with it. Afterwards the limits are
    the highest that glibc takes by itself: a step's blocks are reused.
    """
    libc = _glibc() if device.type == "cpu" else None
    if libc is None:
        yield
        return
    libc.mallopt(MMAP_THRESHOLD, 1 << 20)
    try:
        yield
    finally:
        libc.mallopt(MMAP_THRESHOLD, 32 << 20)
        libc.mallopt(TRIM_THRESHOLD, 64 << 20)
        libc.malloc_trim(0)


def return_free_memory(device: torch.device) -> None:
    """On a CPU with glibc, give the system back what is free: 13 ms for 160 MB.

    It holds the heaps' locks, which steps need too, so a thread of low priority must not call it.
    """
    libc = _glibc() if device.type == "cpu" else None
    if libc is not None:
        libc.malloc_trim(0)


def _glibc() -> ctypes.CDLL | None:
    libc = ctypes.CDLL(None) if os.name == "posix" else None
    return libc if hasattr(libc, "mallopt") else None


def _quota() -> int:
    """Whole cores of the container's quota; 0 where there is none."""
    try:
        most, period = CPU_QUOTA.read_text().split()
        return max(1, int(most) // int(period))
    except (OSError, ValueError):
        return 0


def set_libraries(device: torch.device) -> None:
    """On GPUs, keep float32 convolutions exact: TF32 can change the codes of a reference, and is
    not faster here. cuDNN's attention plans for two seconds at its first call, and only the plain
    forms would use it."""
    if device.type == "cuda":
        torch.backends.cudnn.allow_tf32 = False
        torch.backends.cuda.enable_cudnn_sdp(False)


def pick_dtype(device: torch.device) -> torch.dtype:
    known = device.type == "cuda" and torch.cuda.is_bf16_supported(including_emulation=False)
    return torch.bfloat16 if known else torch.float32


@cache
def compiles_kernels() -> bool:
    """Whether kernels for CPUs can be compiled: numba is there, knows this numpy, and is not told
    to compile nothing. Who asks for kernels all the same is told why not."""
    try:
        from numba import config  # imported late: GPUs do without
    except Exception:  # of numba, numpy or LLVM's library
        return False
    return not config.DISABLE_JIT


def multiplies_bfloat16() -> bool:
    """Whether kernels may multiply bfloat16 here: this processor does it itself, and no variable
    of numba's leaves it out, which would end its compiler."""
    if not compiles_kernels():
        return False
    from numba import config

    named: str | None = config.CPU_FEATURES
    if not config.ENABLE_AVX if named is None else "+avx512bf16" not in named.split(","):
        return False
    known: Callable[[], bool] | None = getattr(torch.cpu, "_is_avx512_bf16_supported", None)
    return known is not None and known()


def widens_float16() -> bool:
    """Whether this processor makes float32 of float16 itself, as all with AVX2 and of ARM do."""
    known: Callable[[], bool] | None = getattr(torch.cpu, "_is_avx2_supported", None)
    return platform.machine() in ARM or (known is not None and known())


def load_library(error: type[Exception], *names: str) -> ctypes.CDLL:
    """Load the first library that exists among its names on different systems, or raise."""
    for name in names:
        try:
            return ctypes.CDLL(name)
        except OSError:
            continue
    raise error(f"{names[0]} is not installed")
