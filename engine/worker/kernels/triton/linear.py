"""The talker's layers besides attention, as Triton kernels.

Products of a few rows are fused with the norm before and the residual or gate behind them. For
many rows, norms and gates are separate kernels between cuBLAS products. Sums are in float32, and in
the same order for any number of rows up to 16. Imported only where Triton is installed.
"""

# ruff: noqa: N803 - constants of a kernel are in capitals
from __future__ import annotations

from dataclasses import dataclass

import torch
import triton
import triton.language as tl
from torch import Tensor


@dataclass(frozen=True)
class Tile:
    """How a product is tiled."""

    columns: int  # per program
    inputs: int  # per warp at a time
    warps: int
    stages: int  # of loads ahead


@triton.jit(do_not_specialize=["rows", "parts"])
def _product(
    x, weight, squares, added, norm, out, scaled, sums, rows, columns, parts, eps,
    NORMED: tl.constexpr, GATED: tl.constexpr, ADDED: tl.constexpr, EVEN: tl.constexpr,
    WIDTH: tl.constexpr, ROWS: tl.constexpr, COLUMNS: tl.constexpr, INPUTS: tl.constexpr,
    SPLIT: tl.constexpr, PARTS: tl.constexpr,
):  # fmt: skip
    block = tl.program_id(0)
    row = tl.program_id(1) * ROWS + tl.arange(0, ROWS)
    column = block * COLUMNS + tl.arange(0, COLUMNS)
    valid_row, wanted = row < rows, column < columns
    warp, input = tl.arange(0, SPLIT)[:, None, None] * INPUTS, tl.arange(0, INPUTS)
    # each warp has its part of the inputs: [SPLIT, ROWS, INPUTS] by [SPLIT, INPUTS, COLUMNS]
    left = x + row[None, :, None] * WIDTH + warp + input[None, None, :]
    right = weight + column[None, None, :].to(tl.int64) * WIDTH + warp + input[None, :, None]
    total = tl.zeros((SPLIT, ROWS, COLUMNS), tl.float32)
    up_sums = tl.zeros((SPLIT, ROWS, COLUMNS), tl.float32)
    for start in range(0, WIDTH, SPLIT * INPUTS):
        if EVEN:
            a = tl.load(left + start, mask=valid_row[None, :, None], other=0.0)
            b = tl.load(right + start)
        else:
            inside = start + warp + input[None, None, :] < WIDTH
            a = tl.load(left + start, mask=valid_row[None, :, None] & inside, other=0.0)
            inside = (start + warp + input[None, :, None] < WIDTH) & wanted[None, None, :]
            b = tl.load(right + start, mask=inside, other=0.0)
        total = tl.dot(a, b, total, input_precision="ieee")
        if GATED:  # the up columns follow the gate columns
            up = right + columns.to(tl.int64) * WIDTH + start
            b = tl.load(up) if EVEN else tl.load(up, mask=inside, other=0.0)
            up_sums = tl.dot(a, b, up_sums, input_precision="ieee")
    result, up = tl.sum(total, 0), tl.sum(up_sums, 0)  # [ROWS, COLUMNS]
    if NORMED:
        part = tl.arange(0, PARTS)
        valid = (part < parts)[:, None] & valid_row[None, :]
        found = tl.load(squares + part[:, None] * rows + row[None, :], mask=valid, other=0.0)
        scale = tl.rsqrt(tl.sum(found, 0) / WIDTH + eps)[:, None]
        result, up = result * scale, up * scale
    if GATED:
        result = result / (1.0 + tl.exp(-result)) * up
    place = row[:, None] * columns + column[None, :]
    valid = valid_row[:, None] & wanted[None, :]
    if ADDED:
        result += tl.load(added + place, mask=valid, other=0.0).to(tl.float32)
    kind = out.dtype.element_ty
    tl.store(out + place, result.to(kind), mask=valid)
    if ADDED:  # also write the input of the next product
        result = tl.where(valid, result.to(kind).to(tl.float32), 0.0)
        factor = tl.load(norm + column, mask=wanted, other=0.0).to(tl.float32)
        tl.store(scaled + place, (result * factor[None, :]).to(kind), mask=valid)
        tl.store(sums + block * rows + row, tl.sum(result * result, 1), mask=valid_row)


@dataclass(frozen=True)
class Normed:
    """Rows before division by their norm, which is computed from `squares`."""

    x: Tensor  # [R, width] times the norm's weight
    squares: Tensor  # [parts, R] float32; the sum over parts is the row's sum of squares


def as_normed(x: Tensor, norm: Tensor) -> Normed:
    """x [R, width] as the input of a product with a norm before it."""
    return Normed(x * norm, x.float().square().sum(-1)[None])


def product(x: Normed, weight: Tensor, tile: Tile, eps: float, gated: bool = False) -> Tensor:
    """x normed, times weight [columns, width] -> [R, columns].

    With `gated` the weight has the gate columns first, then the up columns.
    """
    out = x.x.new_empty(len(x.x), len(weight) // 2 if gated else len(weight))
    _launch(x.x, weight, tile, out, squares=x.squares, eps=eps, gated=gated)
    return out


def product_added(
    x: Tensor, weight: Tensor, tile: Tile, added: Tensor, norm: Tensor
) -> tuple[Tensor, Normed]:
    """x times weight plus `added` [R, columns] -> the sum, and the sum normed."""
    out, scaled = torch.empty_like(added), torch.empty_like(added)
    parts = triton.cdiv(len(weight), tile.columns)
    squares = x.new_empty(parts, len(x), dtype=torch.float32)
    _launch(x, weight, tile, out, added=added, norm=norm, scaled=scaled, sums=squares)
    return out, Normed(scaled, squares)


def _launch(
    x: Tensor,
    weight: Tensor,
    tile: Tile,
    out: Tensor,
    *,
    squares: Tensor | None = None,
    added: Tensor | None = None,
    norm: Tensor | None = None,
    scaled: Tensor | None = None,
    sums: Tensor | None = None,
    eps: float = 0.0,
    gated: bool = False,
) -> None:
    (rows, width), columns = x.shape, out.shape[1]
    block = 16 if rows <= 16 else 32
    parts = 1 if squares is None else len(squares)
    grid = triton.cdiv(columns, tile.columns), triton.cdiv(rows, block)
    _product[grid](
        x, weight, squares, added, norm, out, scaled, sums, rows, columns, parts, eps,
        NORMED=squares is not None, GATED=gated, ADDED=added is not None,
        EVEN=width % (tile.inputs * tile.warps) == 0 and columns % tile.columns == 0,
        WIDTH=width, ROWS=block, COLUMNS=tile.columns, INPUTS=tile.inputs, SPLIT=tile.warps,
        PARTS=triton.next_power_of_2(parts), num_warps=tile.warps, num_stages=tile.stages,
    )  # fmt: skip


@triton.jit
def _add_norm(x, added, weight, total, out, width, eps, ADDED: tl.constexpr, BLOCK: tl.constexpr):
    row, at = tl.program_id(0), tl.arange(0, BLOCK)
    inside = at < width
    own = tl.load(x + row * width + at, mask=inside, other=0.0)
    if ADDED:
        own += tl.load(added + row * width + at, mask=inside, other=0.0)
        tl.store(total + row * width + at, own, mask=inside)
    own = own.to(tl.float32)
    own *= tl.rsqrt(tl.sum(own * own, 0) / width + eps)
    own *= tl.load(weight + at, mask=inside, other=0.0).to(tl.float32)
    tl.store(out + row * width + at, own.to(out.dtype.element_ty), mask=inside)


def add_norm(x: Tensor, added: Tensor | None, weight: Tensor, eps: float) -> tuple[Tensor, Tensor]:
    """x [R, width] plus `added` -> the sum, and the sum normed."""
    rows, width = x.shape
    total, out = (torch.empty_like(x) if added is not None else x), torch.empty_like(x)
    block = triton.next_power_of_2(width)
    _add_norm[(rows,)](
        x, added, weight, total, out, width, eps, ADDED=added is not None, BLOCK=block, num_warps=8
    )
    return total, out


@triton.jit
def _gate(x, out, inner, BLOCK: tl.constexpr):
    row, at = tl.program_id(0), tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    inside = at < inner
    gate = tl.load(x + row * 2 * inner + at, mask=inside, other=0.0).to(tl.float32)
    up = tl.load(x + row * 2 * inner + inner + at, mask=inside, other=0.0).to(tl.float32)
    result = gate / (1.0 + tl.exp(-gate)) * up
    tl.store(out + row * inner + at, result.to(out.dtype.element_ty), mask=inside)


def gate(x: Tensor) -> Tensor:
    """Gate and up [R, 2 * inner] -> [R, inner]."""
    rows, inner = x.shape[0], x.shape[1] // 2
    out = x.new_empty(rows, inner)
    _gate[(rows, triton.cdiv(inner, 1024))](x, out, inner, BLOCK=1024, num_warps=4)
    return out
