"""The talker's layers besides attention, as Triton kernels.

Products of a few rows are fused with the norm before and the residual or gate behind them. For
many rows, norms and gates are separate kernels between cuBLAS products. Sums are in float32, and in
the same order for any number of rows up to 16. Imported only where Triton is installed.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
import triton
from torch import Tensor

from engine.worker.kernels.triton import talker_kernels as kernels
from engine.worker.kernels.triton.launch import launch


@dataclass(frozen=True)
class Tile:
    """How a product is tiled."""

    columns: int  # per program
    inputs: int  # per warp at a time
    warps: int
    stages: int  # of loads ahead


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
    launch(
        kernels.talk_product, grid,
        x, weight, squares, added, norm, out, scaled, sums, rows, columns, parts, eps,
        NORMED=squares is not None, GATED=gated, ADDED=added is not None,
        EVEN=width % (tile.inputs * tile.warps) == 0 and columns % tile.columns == 0,
        WIDTH=width, ROWS=block, COLUMNS=tile.columns, INPUTS=tile.inputs, SPLIT=tile.warps,
        PARTS=triton.next_power_of_2(parts), num_warps=tile.warps, num_stages=tile.stages,
    )  # fmt: skip


def add_norm(x: Tensor, added: Tensor | None, weight: Tensor, eps: float) -> tuple[Tensor, Tensor]:
    """x [R, width] plus `added` -> the sum, and the sum normed."""
    rows, width = x.shape
    total, out = (torch.empty_like(x) if added is not None else x), torch.empty_like(x)
    block = triton.next_power_of_2(width)
    launch(
        kernels.talk_add_norm, (rows,),
        x, added, weight, total, out, width, eps, ADDED=added is not None, BLOCK=block, num_warps=8,
    )  # fmt: skip
    return total, out


def gate(x: Tensor) -> Tensor:
    """Gate and up [R, 2 * inner] -> [R, inner]."""
    rows, inner = x.shape[0], x.shape[1] // 2
    out = x.new_empty(rows, inner)
    grid = rows, triton.cdiv(inner, 1024)
    launch(kernels.talk_gate, grid, x, out, inner, BLOCK=1024, num_warps=4)
    return out
