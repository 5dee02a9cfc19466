"""Products of many rows with weights of 8 or 4 bits, where the processor multiplies bfloat16.

Some outputs' weights at a time become bfloat16, which holds 8 bits exactly, and meet all rows. Each
result is one sum in one order, whatever other rows there are and however many threads.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from llvmlite import ir
from numba import types
from numba.extending import intrinsic, overload
from torch import Tensor

from engine.worker.kernels.cpu import nibbles
from engine.worker.kernels.cpu.compiler import compiled
from engine.worker.kernels.cpu.layers import array
from engine.worker.kernels.cpu.threads import ThreadTeam, barrier, new_sync
from engine.worker.kernels.cpu.tiles import LANES, ROWS, STORE, VECTORS, product

SPAN = VECTORS * LANES


@intrinsic
def _unpack_square(typing: Any, weights: Any, at: Any, inputs: Any, panel: Any, to: Any) -> Any:
    """LANES outputs' next 2 * LANES weights, from number `at` on: pairs of inputs, one after the
    other, each with all outputs."""

    def generate(context: Any, builder: Any, signature: Any, given: Any) -> Any:
        source, target = (
            context.make_array(signature.args[which])(context, builder, given[which]).data
            for which in (0, 3)
        )
        _, start, stride, _, place = given
        small, whole = (ir.VectorType(ir.IntType(bits), 2 * LANES) for bits in (8, 32))
        half = ir.VectorType(ir.IntType(16), 2 * LANES)
        number, pairs = (
            ir.VectorType(ir.FloatType(), 2 * LANES),
            ir.VectorType(ir.IntType(32), LANES),
        )
        above = ir.Constant(whole, [16] * 2 * LANES)
        rows = []
        for row in range(LANES):
            own = builder.add(start, builder.mul(stride, ir.Constant(stride.type, row)))
            pointer = builder.bitcast(builder.gep(source, [own]), small.as_pointer())
            value = builder.sitofp(builder.sext(builder.load(pointer, align=1), whole), number)
            upper = builder.lshr(builder.bitcast(value, whole), above)  # as bfloat16, exactly
            rows.append(builder.bitcast(builder.trunc(upper, half), pairs))
        step = LANES // 2
        while step:  # halves, quarters … change places
            low = [lane if not lane & step else LANES + lane - step for lane in range(LANES)]
            high = [lane + step if not lane & step else LANES + lane for lane in range(LANES)]
            for row in range(LANES):
                if not row & step:
                    both = rows[row], rows[row + step]
                    rows[row], rows[row + step] = (
                        builder.shuffle_vector(*both, ir.Constant(pairs, order))
                        for order in (low, high)
                    )
            step //= 2
        for row, value in enumerate(rows):
            own = builder.add(place, ir.Constant(place.type, row * 2 * LANES))
            pointer = builder.bitcast(builder.gep(target, [own]), pairs.as_pointer())
            builder.store(value, pointer, align=2)
        return context.get_dummy_value()

    return types.none(weights, types.int64, types.int64, panel, types.int64), generate


def unpack(weights, inputs, first, last, panel):
    """Weights of some outputs as `product` reads them, from [outputs, inputs] or panels."""


@overload(unpack)
def _unpack(weights, inputs, first, last, panel):
    if weights.dtype == types.uint8:

        def panels(weights, inputs, first, last, panel):
            groups = inputs // nibbles.GROUP
            for n in range(first, last, LANES):
                for group in range(groups):
                    at = (n // LANES * groups + group) * nibbles.GROUP_BYTES
                    to = (n - first) * inputs + group * nibbles.GROUP * LANES
                    nibbles.unpack_group(weights, at, panel, to)

        return panels

    def rows(weights, inputs, first, last, panel):
        for n in range(first, last, LANES):
            for start in range(0, inputs, 2 * LANES):
                to = (n - first) * inputs + start * LANES
                _unpack_square(weights, n * inputs + start, inputs, panel, to)

    return rows


@compiled()
def _multiply(number, threads, weights, scales, x, inputs, panels, constants, out, sync):
    outputs = len(scales)
    rows, panel = len(x) // inputs, panels[number]
    groups = -(-outputs // SPAN)
    for group in range(groups * number // threads, groups * (number + 1) // threads):
        first, last = group * SPAN, min(group * SPAN + SPAN, outputs)
        unpack(weights, inputs, first, last, panel)
        for row in range(0, rows, ROWS):
            count = min(ROWS, rows - row)
            product(
                panel, x, constants, out, out, -(first // LANES) * inputs * LANES, row * inputs,
                inputs, inputs, 1, 0, -first, outputs, first, count, row * outputs, row * outputs,
                STORE,
            )  # fmt: skip
            for each in range(row, row + count):
                for n in range(first, last):
                    out[each * outputs + n] *= scales[n]
    barrier(sync, threads)


class RowProducts:
    """The products of a model's layers, on all threads of a team."""

    def __init__(self, team: ThreadTeam) -> None:
        self._team = team
        self._panels = np.zeros((team.size, 0), np.int16)
        self._sync = new_sync()

    def __call__(self, rows: Tensor, weight: Tensor, scales: Tensor) -> Tensor:
        """rows [M, inputs] in bfloat16, weight [outputs, inputs] in 8 bits or panels of 4
        -> [M, outputs]."""
        size = SPAN * rows.shape[1]
        if self._panels.shape[1] < size:
            self._panels = np.zeros((self._team.size, size), np.int16)
        out = torch.empty(len(rows), len(scales))
        flat = rows.contiguous().view(torch.int16).flatten()
        given = (
            array(weight), array(scales.float()), array(flat), rows.shape[1], self._panels,
            np.zeros(SPAN, np.float32), array(out.flatten()), self._sync,
        )  # fmt: skip

        def kernel(number: int, threads: int) -> None:
            _multiply(number, threads, *given)

        self._team.run(kernel, self._team.size)
        return out
