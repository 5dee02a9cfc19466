"""Memory for kernels: it begins with a cache line, so that no vector lies in two of them."""

from __future__ import annotations

import math
import mmap
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

LINE = 64  # bytes


def empty(shape: int | tuple[int, ...], kind: DTypeLike) -> NDArray[Any]:
    """Large memory is numpy's because numpy takes huge pages where Linux has them: a thread reads
    14 GB/s from them, otherwise 11."""
    return _aligned(np.empty, shape, kind)


def zeros(shape: int | tuple[int, ...], kind: DTypeLike) -> NDArray[Any]:
    return _aligned(np.zeros, shape, kind)


def sparse(size: int, kind: DTypeLike) -> NDArray[Any]:
    """Zeros of which mostly a part is used, here and there: in small pages, so the others take no
    memory."""
    whole = mmap.mmap(-1, size * np.dtype(kind).itemsize)
    return np.frombuffer(whole, kind)


def _aligned(allocate: Any, shape: int | tuple[int, ...], kind: DTypeLike) -> NDArray[Any]:
    sizes = shape if isinstance(shape, tuple) else (shape,)
    size = math.prod(sizes) * np.dtype(kind).itemsize
    whole: NDArray[np.uint8] = allocate(size + LINE, np.uint8)
    start = -whole.ctypes.data % LINE
    return whole[start : start + size].view(kind).reshape(sizes)
