"""Zeros that take no memory until they are used. Knows no networks."""

from __future__ import annotations

import math
import mmap
from contextlib import suppress

import torch
from torch import Tensor


def zeros(*size: int, dtype: torch.dtype, device: torch.device | str) -> Tensor:
    """Zeros; on a CPU, pages take no memory until they are used.

    Small pages: a cache is touched in many places at once, and huge pages would soon be all of it.
    """
    count = math.prod(size) * dtype.itemsize
    if torch.device(device).type != "cpu" or not count:
        return torch.zeros(*size, dtype=dtype, device=device)
    pages = mmap.mmap(-1, count)
    if hasattr(mmap, "MADV_NOHUGEPAGE"):
        with suppress(OSError):  # a kernel without huge pages
            pages.madvise(mmap.MADV_NOHUGEPAGE)
    return torch.frombuffer(pages, dtype=dtype).view(size)
