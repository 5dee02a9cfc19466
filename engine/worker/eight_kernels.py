"""Norms and gates whose results are rounded to 8 bits in the same launch, as Triton kernels.

Each row of what they make has a scale, by which its largest number becomes float8_e4m3fn's
largest. Needs Triton and a GPU, so it is imported only where both are.
"""

# ruff: noqa: N803 - constants of a kernel are in capitals
from __future__ import annotations

import torch
import triton
import triton.language as tl
from torch import Tensor


@triton.jit
def _store(own, out, scales, row, width, at):
    """A row of numbers, rounded."""
    scale = tl.maximum(tl.max(tl.abs(own), 0), 1e-12) / 448.0
    tl.store(out + row * width + at, (own / scale).to(out.dtype.element_ty), mask=at < width)
    tl.store(scales + row, scale)


@triton.jit
def _add_norm(
    x, added, weight, total, out, scales, width, eps, ADDED: tl.constexpr, BLOCK: tl.constexpr
):
    row, at = tl.program_id(0), tl.arange(0, BLOCK)
    inside = at < width
    own = tl.load(x + row * width + at, mask=inside, other=0.0).to(tl.float32)
    if ADDED:
        own += tl.load(added + row * width + at, mask=inside, other=0.0).to(tl.float32)
        own = own.to(total.dtype.element_ty)
        tl.store(total + row * width + at, own, mask=inside)
        own = own.to(tl.float32)
    own *= tl.rsqrt(tl.sum(own * own, 0) / width + eps)
    own *= tl.load(weight + at, mask=inside, other=0.0).to(tl.float32)
    _store(own, out, scales, row, width, at)


def add_norm(
    x: Tensor, added: Tensor | None, weight: Tensor, eps: float
) -> tuple[Tensor, Tensor, Tensor]:
    """x [R, width] and what is added to it -> the sum; the sum normed, in 8 bits, and scales."""
    rows, width = x.shape
    total, (out, scales) = (torch.empty_like(x) if added is not None else x), _room(x, width)
    block = triton.next_power_of_2(width)
    _add_norm[(rows,)](
        x, added, weight, total, out, scales, width, eps,
        ADDED=added is not None, BLOCK=block, num_warps=8,
    )  # fmt: skip
    return total, out, scales


@triton.jit
def _gate(x, out, scales, inner, BLOCK: tl.constexpr):
    row, at = tl.program_id(0), tl.arange(0, BLOCK)
    inside = at < inner
    gate = tl.load(x + row * 2 * inner + at, mask=inside, other=0.0).to(tl.float32)
    up = tl.load(x + row * 2 * inner + inner + at, mask=inside, other=0.0).to(tl.float32)
    _store(gate / (1.0 + tl.exp(-gate)) * up, out, scales, row, inner, at)


def gate(x: Tensor) -> tuple[Tensor, Tensor]:
    """Gate and up [R, 2 * inner] -> what is gated [R, inner], in 8 bits, and scales."""
    rows, inner = x.shape[0], x.shape[1] // 2
    out, scales = _room(x, inner)
    block = triton.next_power_of_2(inner)
    _gate[(rows,)](x, out, scales, inner, BLOCK=block, num_warps=16)
    return out, scales


def _room(like: Tensor, width: int) -> tuple[Tensor, Tensor]:
    """For rows in 8 bits, and a scale of each [R, 1]."""
    out = like.new_empty(len(like), width, dtype=torch.float8_e4m3fn)
    return out, like.new_empty(len(like), 1, dtype=torch.float32)
