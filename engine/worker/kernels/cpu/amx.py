"""Products in the tile registers of processors that have AMX, for weights and inputs in bfloat16.

A tile register holds 16 rows of 64 bytes; one instruction multiplies 16 rows of 32 inputs with 16
outputs. Two by two of them meet at a time, so what is loaded is used twice. Each output is a sum of
such sums in the order of the inputs, whatever other rows there are. Inputs may have a second plane
with what bfloat16 leaves over of them, whose products are added, too.
Linux has to be asked before a process uses these registers, and saves them for each thread, so each
product lets go of them.
"""

from __future__ import annotations

import ctypes
import platform
import sys
from collections.abc import Callable
from functools import cache
from typing import Any

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic, overload

from engine.worker.kernels.cpu import llvm
from engine.worker.kernels.cpu.compiler import compiled
from engine.worker.kernels.cpu.llvm import BYTE, LANES, LONG
from engine.worker.kernels.cpu.tiles import AHEAD, WIDE, follow

# inputs become bfloat16 outside of these registers
AVAILABLE = WIDE and all(map(llvm.compiles_for, ("amx-tile", "amx-bf16", "avx512bf16")))
HIGH = 16  # rows of a register
ROWS, VECTORS = 2 * HIGH, 2  # of a product
SIZE = ROWS * VECTORS * LANES  # its sums
INPUTS = 32  # that one instruction multiplies
_BYTES = 64  # of a register's row
_PAIRS = 16  # of inputs
# the registers: sums of each row of registers and vector, its inputs, a vector's weights
_SUMS, _INPUTS, _WEIGHTS = ((0, 1), (2, 3)), (4, 5), (6, 7)
_ARCH_PRCTL, _REQUEST, _TILE_DATA = 158, 0x1023, 18  # ARCH_REQ_XCOMP_PERM, XFEATURE_XTILEDATA


@cache
def permitted() -> bool:
    """Whether this process may use the registers: asked for once, for all its threads."""
    if not AVAILABLE or sys.platform != "linux" or platform.machine() != "x86_64":
        return False
    return ctypes.CDLL(None).syscall(_ARCH_PRCTL, _REQUEST, _TILE_DATA) == 0


def takes(weights, sums, channels):
    """Whether products with so many channels run here; `sums`: memory for them, if permitted."""


@overload(takes)
def _takes(weights, sums, channels):
    if AVAILABLE and weights.dtype == types.int16:
        return lambda weights, sums, channels: len(sums) > 0 and channels % INPUTS == 0
    return lambda weights, sums, channels: False


def _configure(builder: Any, rows: tuple[Any, ...]) -> None:
    """Say how many rows registers of sums and inputs have; those of weights are full."""
    given = [1] + [0] * 15 + [_BYTES, 0] * 8 + [0] * 16 + [_PAIRS] * 8 + [0] * 8
    kind = llvm.vector(BYTE, len(given))
    memory = cgutils.alloca_once(builder, kind)
    builder.store(ir.Constant(kind, given), memory)
    data = builder.bitcast(memory, BYTE.as_pointer())
    for own, inputs, sums in zip(rows, _INPUTS, _SUMS, strict=False):
        for register in (inputs, *sums):
            place = builder.gep(data, [llvm.constant(LONG, 48 + register)])
            builder.store(builder.trunc(own, BYTE), place)
    configure = llvm.declare(builder, "llvm.x86.ldtilecfg", ir.VoidType(), data.type)
    builder.call(configure, [data])


def _multiply(high: int, vectors: int) -> Callable[..., Any]:
    """So many registers of inputs times so many of weights; arguments as `sums_of` has them."""

    def generate(context: Any, builder: Any, signature: Any, given: Any) -> Any:
        weights, x, sums = (
            each.data for each in llvm.arrays(context, builder, signature, given, 0, 1, 2)
        )
        w_at, block, x_at, channels, stride, taps, reach, planes, plane, rows = given[3:]
        weights = builder.bitcast(weights, llvm.SHORT.as_pointer())

        def number(value: int) -> Any:
            return llvm.constant(rows.type, value)

        def loop(stop: Any, step: int = 1) -> Any:
            return cgutils.for_range_slice(builder, number(0), stop, number(step))

        def call(name: str, *registers: int, place: Any = None, step: Any = None) -> None:
            passed = [llvm.constant(BYTE, each) for each in registers]
            if place is not None:
                passed += [builder.bitcast(place, BYTE.as_pointer()), step]
            kinds = [each.type for each in passed]
            builder.call(llvm.declare(builder, f"llvm.x86.{name}", ir.VoidType(), *kinds), passed)

        last = builder.sub(rows, number((high - 1) * HIGH))
        _configure(builder, (*[number(HIGH)] * (high - 1), last))
        held = [(row, each) for row in range(high) for each in range(vectors)]
        for row, each in held:
            call("tilezero", _SUMS[row][each])
        panels = [
            builder.gep(weights, [builder.add(w_at, builder.mul(block, number(each)))])
            for each in range(vectors)
        ]
        firsts = [
            builder.gep(x, [builder.add(x_at, builder.mul(stride, number(row * HIGH)))])
            for row in range(high)
        ]
        apart = builder.mul(stride, number(2))  # bytes
        with loop(taps) as (tap, _), loop(channels, INPUTS) as (channel, _):
            before = builder.add(builder.mul(tap, channels), channel)
            at = builder.mul(before, number(LANES))
            for each, panel in enumerate(panels):
                own = builder.gep(panel, [at])
                for line in range(AHEAD // 2, AHEAD // 2 + LANES * INPUTS, _BYTES // 2):
                    llvm.fetch(builder, builder.gep(own, [number(line)]))
                call("tileloadd64", _WEIGHTS[each], place=own, step=number(_BYTES))
            behind = builder.add(builder.mul(tap, reach), channel)
            with loop(planes) as (which, _):
                at = builder.add(behind, builder.mul(which, plane))
                for row, first in enumerate(firsts):
                    call("tileloadd64", _INPUTS[row], place=builder.gep(first, [at]), step=apart)
                for row, each in held:
                    call("tdpbf16ps", _SUMS[row][each], _INPUTS[row], _WEIGHTS[each])
        for row, each in held:
            place = builder.gep(sums, [number(row * HIGH * VECTORS * LANES + each * LANES)])
            call("tilestored64", _SUMS[row][each], place=place, step=number(4 * VECTORS * LANES))
        builder.call(llvm.declare(builder, "llvm.x86.tilerelease", ir.VoidType()), [])
        return context.get_dummy_value()

    def multiply(typing: Any, weights: Any, x: Any, sums: Any, w_at: Any, block: Any, x_at: Any,
                 channels: Any, stride: Any, taps: Any, reach: Any, planes: Any, plane: Any,
                 rows: Any) -> Any:  # fmt: skip
        return types.none(weights, x, sums, *[types.int64] * 10), generate

    return intrinsic(multiply)


def _finish(vectors: int) -> Callable[..., Any]:
    """What follows a row's product, whose sums are there from number `at` on."""

    def generate(context: Any, builder: Any, signature: Any, given: Any) -> Any:
        arrays = llvm.arrays(context, builder, signature, given, *range(4))
        own, constants, sums, out = (each.data for each in arrays)
        places = [
            builder.add(given[4], llvm.constant(given[4].type, each * LANES))
            for each in range(vectors)
        ]
        values = [llvm.load(builder, own, place, llvm.FLOATS) for place in places]
        held = [[cgutils.alloca_once_value(builder, each) for each in values]]
        follow(builder, held, constants, sums, out, signature.args[3].dtype, given[5:])
        return context.get_dummy_value()

    def finish(typing: Any, own: Any, constants: Any, sums: Any, out: Any, at: Any, v_at: Any,
               width: Any, s_at: Any, o_at: Any, follows: Any) -> Any:  # fmt: skip
        return types.none(own, constants, sums, out, *[types.int64] * 6), generate

    return intrinsic(finish)


_four, _wide, _high, _one = (_multiply(*size) for size in ((2, 2), (1, 2), (2, 1), (1, 1)))
_finish_two, _finish_one = _finish(2), _finish(1)


@compiled()
def sums_of(weights, x, sums, w_at, block, x_at, channels, stride, taps, reach, planes, plane, rows,
            outputs):  # fmt: skip
    """sums [rows, VECTORS * LANES] of up to ROWS rows and as many outputs; the others stay.

    Weights of LANES outputs are `block` numbers apart (int16, or int32 for two of them), planes of
    inputs `plane`; the rest is as in `tiles.product`.
    """
    two = outputs > LANES
    if rows > HIGH and two:
        _four(weights, x, sums, w_at, block, x_at, channels, stride, taps, reach, planes, plane,
              rows)  # fmt: skip
    elif two:
        _wide(weights, x, sums, w_at, block, x_at, channels, stride, taps, reach, planes, plane,
              rows)  # fmt: skip
    elif rows > HIGH:
        _high(weights, x, sums, w_at, block, x_at, channels, stride, taps, reach, planes, plane,
              rows)  # fmt: skip
    else:
        _one(weights, x, sums, w_at, block, x_at, channels, stride, taps, reach, planes, plane,
             rows)  # fmt: skip


@compiled()
def _product(weights, x, constants, sums, out, own, w_at, x_at, channels, stride, taps, reach, v_at,
             width, first, rows, s_at, o_at, follows):  # fmt: skip
    block, outputs = taps * channels * LANES, width - first
    sums_of(weights, x, own, w_at + first // LANES * block, block, x_at, channels, stride, taps,
            reach, 1, 0, rows, outputs)  # fmt: skip
    two = outputs > LANES
    for row in range(rows):
        at, s, o = row * VECTORS * LANES, s_at + row * width + first, o_at + row * width + first
        if two:
            _finish_two(own, constants, sums, out, at, v_at + first, width, s, o, follows)
        else:
            _finish_one(own, constants, sums, out, at, v_at + first, width, s, o, follows)


def product(weights, x, constants, sums, out, own, *given):
    """As `tiles.product`, of up to ROWS rows; `own`: a thread's memory of SIZE numbers."""


@overload(product)
def _product_where_available(weights, x, constants, sums, out, own, *given):
    if AVAILABLE and weights.dtype == types.int16:

        def here(weights, x, constants, sums, out, own, *given):
            _product(weights, x, constants, sums, out, own, *given)

        return here

    def nothing(weights, x, constants, sums, out, own, *given):
        pass

    return nothing
