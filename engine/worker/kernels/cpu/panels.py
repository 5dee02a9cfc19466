"""Products of rows with full weights, as float32.

Weights lie in panels of LANES outputs, two inputs of each side by side: float32, or bfloat16 where
that holds them exactly, two in one number. Each output is a sum over even inputs and one over odd
ones, both in order, so a row's result depends neither on other rows nor on the threads, and is the
same for both kinds of numbers. Knows no layers.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic
from numpy.typing import NDArray
from torch import Tensor

from engine.worker.kernels.cpu import llvm
from engine.worker.kernels.cpu.compiler import compiled
from engine.worker.kernels.cpu.llvm import FLOAT, FLOATS, INTS, LANES
from engine.worker.kernels.cpu.memory import LINE, empty

WIDE = llvm.compiles_for("avx512f")
ROWS = 8 if WIDE else 2  # that meet a panel while registers hold their sums
HALF = ROWS // 2
TOGETHER = 4 if WIDE else 2  # panels that one row meets at a time: their sums hide each other
AHEAD = 2048  # bytes of a panel that are on their way while others are multiplied


def pack(weights: Tensor) -> NDArray[Any]:
    """Weights [layers, outputs, inputs], float32 or bits of bfloat16, as panels
    [layers, panels, inputs / 2, LANES] (int32) or [.., 2 * LANES] (float32)."""
    layers, outputs, inputs = weights.shape
    parts = weights.view(layers, outputs // LANES, LANES, inputs // 2, 2)
    if weights.dtype == torch.int16:
        panels = empty((layers, outputs // LANES, inputs // 2, LANES), np.int32)
        torch.from_numpy(panels).copy_(parts.view(torch.int32)[..., 0].transpose(2, 3))
        return panels
    panels = empty((layers, outputs // LANES, inputs // 2, 2 * LANES), np.float32)
    turned = parts.permute(0, 1, 3, 4, 2).flatten(3)
    torch.from_numpy(panels).copy_(turned)
    return panels


def _tile(rows: int, count: int) -> Callable[..., Any]:
    """`rows` rows of x from `row` on times `count` panels from `panel` on, into rows of out from
    `into` on and columns from `to` on."""

    def generate(context: Any, builder: Any, signature: Any, given: Any) -> Any:
        weights, x, out = llvm.arrays(context, builder, signature, given, 0, 1, 2)
        panel, row, into, to = given[3:]
        narrow = signature.args[0].dtype == types.int32
        pairs, line = (builder.extract_value(weights.shape, at) for at in (1, 2))
        inputs, width = (builder.extract_value(each.shape, 1) for each in (x, out))

        def number(value: int) -> Any:
            return llvm.constant(panel.type, value)

        block = builder.mul(pairs, line)
        first = builder.gep(weights.data, [builder.mul(panel, block)])
        panels = [builder.gep(first, [builder.mul(block, number(each))]) for each in range(count)]
        rest = builder.mul(block, number(count - 1))
        own = [builder.add(row, number(each)) for each in range(rows)]
        given_rows = [builder.gep(x.data, [builder.mul(each, inputs)]) for each in own]
        zero, fma = llvm.constant(FLOATS, 0.0), llvm.fma(builder)
        sums = [
            [[cgutils.alloca_once_value(builder, zero) for _ in range(2)] for _ in panels]
            for _ in own
        ]

        def halves(data: Any, at: Any) -> list[Any]:
            """Weights of an even and of an odd input."""
            if not narrow:
                return [
                    llvm.load(builder, data, builder.add(at, number(skip)), FLOATS)
                    for skip in (0, LANES)
                ]
            both = llvm.load(builder, data, at, INTS)
            even = builder.shl(both, llvm.constant(INTS, 16))
            odd = builder.and_(both, llvm.constant(INTS, -(1 << 16)))
            return [builder.bitcast(each, FLOATS) for each in (even, odd)]

        with cgutils.for_range_slice(builder, number(0), pairs, number(1)) as (pair, _):
            at, column = builder.mul(pair, line), builder.mul(pair, number(2))
            later = builder.add(at, number(AHEAD // 4))
            behind = builder.icmp_signed(">=", later, block)  # then of the panels after these
            later = builder.add(later, builder.select(behind, rest, number(0)))
            for data in panels:
                for skip in range(0, 16 if narrow else 32, LINE // 4):
                    place = builder.add(later, number(skip))
                    llvm.fetch(builder, builder.gep(data, [place]))
            held = [halves(data, at) for data in panels]
            for place, given_row in enumerate(given_rows):
                for which in range(2):
                    value = llvm.load(builder, given_row, builder.add(column, number(which)), FLOAT)
                    value = llvm.spread(builder, value)
                    for each, weight in enumerate(held):
                        total = sums[place][each][which]
                        terms = [weight[which], value, builder.load(total)]
                        builder.store(builder.call(fma, terms), total)
        for place in range(rows):
            start = builder.add(builder.mul(builder.add(into, number(place)), width), to)
            for each in range(count):
                even, odd = (builder.load(total) for total in sums[place][each])
                column = builder.add(start, number(each * LANES))
                llvm.store(builder, builder.fadd(even, odd), out.data, column)
        return context.get_dummy_value()

    def tile(
        typing: Any, weights: Any, x: Any, out: Any, panel: Any, row: Any, into: Any, to: Any
    ) -> Any:
        return types.none(weights, x, out, *[types.intp] * 4), generate

    return intrinsic(tile)


_many, _few, _two, _together, _one = (
    _tile(*size) for size in ((ROWS, 1), (HALF, 1), (2, 1), (1, TOGETHER), (1, 1))
)


@compiled()
def multiply(weights, x, first, last, start, stop, out, to):
    """out[: last - first, to : to + stop - start] = x[first:last] @ weights[start:stop].T, for
    whole panels."""
    panel, end = start // LANES, stop // LANES
    while panel < end:
        count, column = min(TOGETHER, end - panel), to + panel * LANES - start
        row = first
        while row < last:
            left = last - row
            rows = ROWS if left >= ROWS else HALF if left >= HALF else 2 if left >= 2 else 1
            if rows == 1 and count == TOGETHER:
                _together(weights, x, out, panel, row, row - first, column)
            else:
                for each in range(count):
                    at, own = panel + each, column + each * LANES
                    if rows == ROWS:
                        _many(weights, x, out, at, row, row - first, own)
                    elif rows == HALF:
                        _few(weights, x, out, at, row, row - first, own)
                    elif rows == 2:
                        _two(weights, x, out, at, row, row - first, own)
                    else:
                        _one(weights, x, out, at, row, row - first, own)
            row += rows
        panel += count
