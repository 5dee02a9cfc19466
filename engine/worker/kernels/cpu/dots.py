"""Sums and dot products as vector instructions, in an order that is written here.

Each product has the same order of sums, however many are computed at once, so that a row's result
does not depend on the others. LLVM's own vectorization promises no order: it differed between a
process that had compiled a kernel and one that had loaded what was kept of it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from llvmlite import ir
from numba import float32, types
from numba.core import cgutils
from numba.extending import intrinsic

from engine.worker.kernels.cpu import llvm
from engine.worker.kernels.cpu.compiler import compiled
from engine.worker.kernels.cpu.llvm import LANES
from engine.worker.kernels.cpu.memory import LINE

VECTORS = 4  # of a sum
MULTIPLE = LANES * VECTORS  # inputs are a multiple of this
AHEAD = 2048  # bytes of weights that are on their way while others are multiplied
BLOCK = 16  # outputs whose weights stay in the first cache while they meet all rows


def _widen(builder: Any, stored: Any) -> Any:
    """Stored weights as float32: float32 itself, or 8 bits."""
    if stored.type == llvm.FLOATS:
        return stored
    return builder.sitofp(builder.sext(stored, llvm.INTS), llvm.FLOATS)


def _dots(count: int) -> Callable[..., Any]:
    """Products of weights [K] (float32 or int8) with x[row : row + count] (float32 [rows, K]); what
    is over of K behind a multiple of MULTIPLE is left out."""

    def generate(context: Any, builder: Any, signature: Any, given: Any) -> Any:
        weights, x = llvm.arrays(context, builder, signature, given, 0, 1)
        stored = llvm.vector(context.get_data_type(signature.args[0].dtype))
        length = builder.extract_value(weights.shape, 0)
        whole = builder.and_(length, ir.Constant(length.type, -MULTIPLE))
        rows = [
            builder.gep(x.data, [builder.mul(builder.add(given[2], context.get_constant(
                types.intp, row)), length)])
            for row in range(count)
        ]  # fmt: skip
        fma, zero = llvm.fma(builder), llvm.constant(llvm.FLOATS, 0.0)
        sums = [
            [cgutils.alloca_once_value(builder, zero) for _ in range(VECTORS)] for _ in range(count)
        ]

        step = context.get_constant(types.intp, MULTIPLE)
        nothing = context.get_constant(types.intp, 0)
        size = signature.args[0].dtype.bitwidth // 8
        streamed = signature.args[0].dtype != types.float32  # these may be inputs
        with cgutils.for_range_slice(builder, nothing, whole, step) as (start, _):
            for ahead in range(AHEAD, AHEAD + MULTIPLE * size, LINE) if streamed else ():
                later = builder.add(start, context.get_constant(types.intp, ahead // size))
                llvm.fetch(builder, builder.gep(weights.data, [later]))
            for place in range(VECTORS):
                at = builder.add(start, context.get_constant(types.intp, place * LANES))
                weight = _widen(builder, llvm.load(builder, weights.data, at, stored, 1))
                for row, own in zip(rows, sums, strict=True):
                    total = builder.load(own[place])
                    value = llvm.load(builder, row, at, llvm.FLOATS)
                    builder.store(builder.call(fma, [weight, value, total]), own[place])
        totals = [_total(builder, [builder.load(each) for each in own]) for own in sums]
        return context.make_tuple(builder, signature.return_type, totals)

    def dots(typing: Any, weights: Any, x: Any, row: Any) -> Any:
        return types.UniTuple(types.float32, count)(weights, x, types.intp), generate

    return intrinsic(dots)


def _total(builder: Any, vectors: list[Any]) -> Any:
    """The sum of all numbers."""
    first, second, third, fourth = vectors
    total = builder.fadd(builder.fadd(first, second), builder.fadd(third, fourth))
    lanes = LANES
    while lanes > 1:
        lanes //= 2
        halves = (
            builder.shuffle_vector(
                total,
                ir.Constant(total.type, ir.Undefined),
                ir.Constant(llvm.vector(llvm.INT, lanes), list(range(start, start + lanes))),
            )
            for start in (0, lanes)
        )
        total = builder.fadd(*halves)
    return builder.extract_element(total, llvm.constant(llvm.INT, 0))


_one, _two, _four = _dots(1), _dots(2), _dots(4)


@intrinsic
def _sum(typing: Any, x: Any) -> Any:
    """The sum of x [K] (float32), without the rest of K behind a multiple of MULTIPLE."""

    def generate(context: Any, builder: Any, signature: Any, given: Any) -> Any:
        (array,) = llvm.arrays(context, builder, signature, given, 0)
        length = builder.extract_value(array.shape, 0)
        whole = builder.and_(length, ir.Constant(length.type, -MULTIPLE))
        zero = llvm.constant(llvm.FLOATS, 0.0)
        sums = [cgutils.alloca_once_value(builder, zero) for _ in range(VECTORS)]
        step, nothing = (context.get_constant(types.intp, each) for each in (MULTIPLE, 0))
        with cgutils.for_range_slice(builder, nothing, whole, step) as (start, _):
            for place, own in enumerate(sums):
                at = builder.add(start, context.get_constant(types.intp, place * LANES))
                value = llvm.load(builder, array.data, at, llvm.FLOATS)
                builder.store(builder.fadd(builder.load(own), value), own)
        return _total(builder, [builder.load(each) for each in sums])

    return types.float32(x), generate


@intrinsic
def as_float(typing: Any, stored: Any) -> Any:
    """A number as float32: float32 itself, the bits of float16 as uint16, or of bfloat16."""

    def generate(context: Any, builder: Any, signature: Any, given: Any) -> Any:
        kind, value = signature.args[0], given[0]
        if kind == types.float32:
            return value
        if kind == types.uint16:
            return builder.fpext(builder.bitcast(value, llvm.HALF), llvm.FLOAT)
        return llvm.widen(builder, value)

    return types.float32(stored), generate


@compiled()
def dot(weights, x):
    """The sum of weights [K] * x [K]."""
    total = _one(weights, x, 0)[0]
    for i in range(len(x) // MULTIPLE * MULTIPLE, len(x)):
        total += float32(weights[i]) * x[i]
    return total


@compiled()
def dots_of(x, rows, count, out):
    """out[:count] = rows[:count] @ x, each the same as by `dot`, four at a time."""
    for done in range(0, count - 3, 4):
        out[done], out[done + 1], out[done + 2], out[done + 3] = _four(x, rows, done)
    for row in range(count // 4 * 4, count):
        out[row] = _one(x, rows, row)[0]
    for i in range(len(x) // MULTIPLE * MULTIPLE, len(x)):
        for row in range(count):
            out[row] += x[i] * rows[row, i]


@compiled()
def sum_of(x):
    """The sum of x [K]."""
    total = _sum(x)
    for i in range(len(x) // MULTIPLE * MULTIPLE, len(x)):
        total += x[i]
    return total


@compiled()
def multiply(weights, scales, x, rows, start, stop, out):
    """out[:rows, start:stop] = x[:rows] @ weights[start:stop].T * scales[start:stop]"""
    for first in range(start, stop, BLOCK):
        last = min(first + BLOCK, stop)
        row = 0
        while row + 4 <= rows:
            for n in range(first, last):
                a, b, c, d = _four(weights[n], x, row)
                scale = scales[n]
                out[row, n], out[row + 1, n] = a * scale, b * scale
                out[row + 2, n], out[row + 3, n] = c * scale, d * scale
            row += 4
        if row + 2 <= rows:
            for n in range(first, last):
                a, b = _two(weights[n], x, row)
                out[row, n], out[row + 1, n] = a * scales[n], b * scales[n]
            row += 2
        if row < rows:
            for n in range(first, last):
                out[row, n] = _one(weights[n], x, row)[0] * scales[n]
