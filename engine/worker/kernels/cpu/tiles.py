"""Matrix products of some rows of a signal with packed weights, and what follows each: bias, what
was there before, an activation.

A tile of outputs stays in registers while its inputs are read once. Each output is one sum in the
order of its inputs, so it depends neither on the tile nor on other rows. Sums are float32. Weights
and inputs are float32, or bfloat16 where the processor multiplies that, or the weights alone are
float16, which halves what few rows wait for.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic
from numpy.typing import NDArray

from engine.worker.kernels.cpu import llvm
from engine.worker.kernels.cpu.compiler import compiled
from engine.worker.kernels.cpu.llvm import LANES  # outputs of a vector; weights are packed so

WIDE = llvm.compiles_for("avx512f")
ROWS, VECTORS = (8, 2) if WIDE else (4, 1)  # of the largest tile: what registers hold
AHEAD = 4096  # bytes of weights that are on their way while others are multiplied
RESIDUAL, KEEP, SNAKE, STORE = 1, 2, 4, 8  # what follows a product
_SINE = tuple(
    np.polynomial.Polynomial.fit(
        z := 0.125 - 0.125 * np.cos(np.linspace(0, np.pi, 400)),
        np.sinc(np.sqrt(z)) ** 2 * np.pi**2,
        6,
    )
    .convert()
    .coef[::-1]
)  # of sin²(πr) / r², by r² up to 1/4


def follow(
    builder: Any, held: Any, constants: Any, sums: Any, out: Any, kind: Any, given: Any
) -> None:
    """What follows products whose sums `held` [rows][vectors] points to; `kind` of what `out` has,
    and what `product` is given from v_at and width on."""
    v_at, width, s_at, o_at, follows = given
    rows, vectors = len(held), len(held[0])
    load, store = partial(llvm.load, builder), partial(llvm.store, builder)
    declare, fma = partial(llvm.declare, builder), llvm.fma(builder)

    def number(value: int) -> Any:
        return llvm.constant(width.type, value)

    places = [(row, each) for row in range(rows) for each in range(vectors)]

    def at_of(start: Any, row: int, each: int) -> Any:
        return builder.add(
            builder.add(start, builder.mul(width, number(row))), number(each * LANES)
        )

    def constant(which: int, each: int) -> Any:
        start = builder.add(v_at, builder.mul(width, number(which)))
        return load(constants, builder.add(start, number(each * LANES)), llvm.FLOATS)

    def flagged(flag: int) -> Any:
        masked = builder.and_(follows, number(flag))
        return builder.if_then(builder.icmp_signed("!=", masked, number(0)))

    biases = [constant(0, each) for each in range(vectors)]
    for row, each in places:
        place = held[row][each]
        builder.store(builder.fadd(builder.load(place), biases[each]), place)
    with flagged(RESIDUAL):
        for row, each in places:
            place, before = held[row][each], load(sums, at_of(s_at, row, each), llvm.FLOATS)
            builder.store(builder.fadd(builder.load(place), before), place)
    with flagged(KEEP):
        for row, each in places:
            store(builder.load(held[row][each]), sums, at_of(s_at, row, each))
    with flagged(SNAKE):
        nearest = declare(f"llvm.rint.v{LANES}f32", llvm.FLOATS, llvm.FLOATS)
        series = [llvm.constant(llvm.FLOATS, float(np.float32(term))) for term in _SINE]
        frequencies, scales = (
            [constant(which, each) for each in range(vectors)] for which in (1, 2)
        )
        for row, each in places:
            value = builder.load(held[row][each])
            turn = builder.fmul(value, frequencies[each])  # in half turns
            turn = builder.fsub(turn, builder.call(nearest, [turn]))
            square = builder.fmul(turn, turn)
            power = series[0]
            for term in series[1:]:
                power = builder.call(fma, [power, square, term])
            power = builder.fmul(builder.fmul(power, square), scales[each])
            builder.store(builder.fadd(value, power), held[row][each])
    with flagged(STORE):
        for row, each in places:
            value = builder.load(held[row][each])
            if kind != types.float32:
                value = builder.fptrunc(value, llvm.vector(llvm.BFloat()))
            store(value, out, at_of(o_at, row, each), 2)


def _tile(rows: int, vectors: int) -> Callable[..., Any]:
    """`rows` outputs of `vectors` adjacent vectors; arguments as `product` passes them."""

    def generate(context: Any, builder: Any, signature: Any, given: Any) -> Any:
        arrays = llvm.arrays(context, builder, signature, given, *range(5))
        weights, x, constants, sums, out = (each.data for each in arrays)
        half, narrow = (signature.args[0].dtype == kind for kind in (types.int16, types.uint16))
        w_at, block, x_at, channels, stride, taps, reach = given[5:12]
        whole = w_at.type

        def number(value: int) -> Any:
            return llvm.constant(whole, value)

        load, declare = partial(llvm.load, builder), partial(llvm.declare, builder)
        fma = llvm.fma(builder)
        pairs = llvm.vector(llvm.BFloat(), 2 * LANES)
        step, number_kind = (2, llvm.INT) if half else (1, llvm.FLOAT)

        def multiply(total: Any, value: Any, weight: Any) -> Any:
            if not half:
                return builder.call(fma, [value, weight, total])
            dot = declare(
                "llvm.x86.avx512bf16.dpbf16ps.512", llvm.FLOATS, llvm.FLOATS, pairs, pairs
            )
            return builder.call(dot, [total, builder.bitcast(value, pairs), weight])

        zero = llvm.constant(llvm.FLOATS, 0.0)
        held = [
            [cgutils.alloca_once_value(builder, zero) for _ in range(vectors)] for _ in range(rows)
        ]
        first_row = builder.gep(x, [x_at])
        rows_at = [
            builder.gep(first_row, [builder.mul(stride, number(row))]) for row in range(rows)
        ]
        panels = [
            builder.gep(weights, [builder.add(w_at, builder.mul(block, number(each)))])
            for each in range(vectors)
        ]
        with cgutils.for_range_slice(builder, number(0), taps, number(1)) as (tap, _):
            behind, before = builder.mul(tap, reach), builder.mul(tap, channels)
            with cgutils.for_range_slice(builder, number(0), channels, number(step)) as (
                channel,
                _,
            ):
                at = builder.mul(builder.add(before, channel), number(LANES))
                kind = pairs if half else llvm.vector(llvm.HALF) if narrow else llvm.FLOATS
                later = builder.add(at, number(AHEAD // (signature.args[0].dtype.bitwidth // 8)))
                for panel in panels:
                    llvm.fetch(builder, builder.gep(panel, [later]))
                own = [load(panel, at, kind) for panel in panels]
                own = [builder.fpext(each, llvm.FLOATS) for each in own] if narrow else own
                place = builder.add(behind, channel)
                for row in range(rows):
                    value = llvm.spread(builder, load(rows_at[row], place, number_kind, 2))
                    for each in range(vectors):
                        total = builder.load(held[row][each])
                        builder.store(multiply(total, value, own[each]), held[row][each])
        kind = signature.args[4].dtype
        follow(builder, held, constants, sums, out, kind, given[12:])
        return context.get_dummy_value()

    def tile(typing: Any, weights: Any, x: Any, constants: Any, sums: Any, out: Any, w_at: Any,
             block: Any, x_at: Any, channels: Any, stride: Any, taps: Any, reach: Any, v_at: Any,
             width: Any, s_at: Any, o_at: Any, follows: Any) -> Any:  # fmt: skip
        return types.none(weights, x, constants, sums, out, *[types.int64] * 12), generate

    return intrinsic(tile)


_large, _slim, _few, _row, _one = (
    _tile(*size) for size in ((ROWS, VECTORS), (ROWS, 1), (4, 1), (1, VECTORS), (1, 1))
)


@compiled()
def product_of(weights, x, constants, sums, out, w_at, block, x_at, channels, stride, taps, reach,
               v_at, width, vectors, rows, s_at, o_at, follows):  # fmt: skip
    """As `product`, of so many vectors, whose weights are `block` numbers apart."""
    row = 0
    while row < rows:
        count = ROWS if row + ROWS <= rows else 4 if row + 4 <= rows else 1
        own = x_at + row * stride
        s, o = s_at + row * width, o_at + row * width
        if count == ROWS and vectors == VECTORS:
            _large(weights, x, constants, sums, out, w_at, block, own, channels, stride, taps,
                   reach, v_at, width, s, o, follows)  # fmt: skip
        elif count == 1 and vectors == VECTORS:
            _row(weights, x, constants, sums, out, w_at, block, own, channels, stride, taps,
                  reach, v_at, width, s, o, follows)  # fmt: skip
        else:
            for vector in range(vectors):
                more, w = vector * LANES, w_at + vector * block
                if count == ROWS:
                    _slim(weights, x, constants, sums, out, w, block, own, channels, stride, taps,
                            reach, v_at + more, width, s + more, o + more, follows)  # fmt: skip
                elif count == 4:
                    _few(weights, x, constants, sums, out, w, block, own, channels, stride, taps,
                         reach, v_at + more, width, s + more, o + more, follows)  # fmt: skip
                else:
                    _one(weights, x, constants, sums, out, w, block, own, channels, stride, taps,
                         reach, v_at + more, width, s + more, o + more, follows)  # fmt: skip
        row += count


@compiled()
def product(weights, x, constants, sums, out, w_at, x_at, channels, stride, taps, reach, v_at,
            width, first, rows, s_at, o_at, follows):  # fmt: skip
    """Outputs first, first + LANES … (up to VECTORS vectors) of `rows` rows.

    Row r of the inputs begins at x_at + r * stride, its tap t at `reach` * t behind that; weights
    [width / LANES, taps * channels, LANES] (bfloat16: [.., inputs / 2, LANES, 2]) begin at w_at.
    constants: [bias, frequency, scale] of each output; rows of sums and out have `width` numbers.
    """
    block, vectors = taps * channels * LANES, min(VECTORS, (width - first) // LANES)
    product_of(weights, x, constants, sums, out, w_at + first // LANES * block, block, x_at,
               channels, stride, taps, reach, v_at + first, width, vectors, rows, s_at + first,
               o_at + first, follows)  # fmt: skip


def pack(weight: Any, kind: str) -> NDArray[Any]:
    """Weights [outputs, inputs] (a float32 tensor) as `product` reads them, flat; in float16 and
    bfloat16 as integers, without and with a sign."""
    import torch

    outputs, inputs = weight.shape
    blocks = weight.reshape(outputs // LANES, LANES, inputs)
    if kind == "bfloat16":
        pairs = blocks.bfloat16().view(outputs // LANES, LANES, inputs // 2, 2).transpose(1, 2)
        return pairs.contiguous().flatten().view(torch.int16).numpy()
    numbers = blocks.transpose(1, 2).contiguous().flatten()
    if kind == "float16":
        return numbers.half().numpy().view(np.uint16)
    return numbers.numpy()
