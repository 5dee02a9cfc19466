"""Products of a few rows with weights of 4 bits, as integers, where the processor has VNNI.

Weights lie in panels of LANES outputs, group after group of GROUP inputs: 256 bytes of levels, then
scales and zeros of the group in bfloat16. Inputs are rounded to 8 bits, with a step of their own
for each group; a group's sum is exact, groups are added in order. So a row's result depends neither
on other rows nor on the threads. Knows no layers.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from llvmlite import ir
from llvmlite.binding import get_host_cpu_features
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic
from numpy.typing import NDArray
from torch import Tensor

from engine.model.quantized_linear import GROUP
from engine.worker.kernels.cpu.compiler import compiled

LANES = 16  # outputs of a panel
ROWS = 12  # that meet a group's levels while these are in registers
LEVEL_BYTES, SCALE_BYTES = LANES * GROUP // 2, LANES * 2
GROUP_BYTES = LEVEL_BYTES + 2 * SCALE_BYTES
MIDDLE = 8  # the level whose value is a group's zero
VNNI = get_host_cpu_features().get("avx512vnni", False)
_BYTE, _SHORT, _INT, _FLOAT = ir.IntType(8), ir.IntType(16), ir.IntType(32), ir.FloatType()
_INTS, _FLOATS = ir.VectorType(_INT, LANES), ir.VectorType(_FLOAT, LANES)
_LOADS, _BYTES = LEVEL_BYTES // 64, 64  # vectors of a group's levels


def pack(levels: Tensor, scales: Tensor) -> NDArray[np.uint8]:
    """Levels [outputs, inputs] from 0 to 15 and scales and zeros [groups, outputs, 2] in bfloat16
    -> panels [outputs / LANES, groups * GROUP_BYTES]."""
    outputs, inputs = levels.shape
    panels, groups = outputs // LANES, inputs // GROUP
    # [panels, groups, load, output, byte]: of a load's 8 inputs four are low nibbles
    parts = levels.view(panels, LANES, groups, _LOADS, 2, 4).permute(4, 0, 2, 3, 1, 5)
    nibbles = (parts[0] | parts[1] << 4).to(torch.uint8).reshape(panels, groups, LEVEL_BYTES)
    steps = scales.view(groups, panels, LANES, 2).permute(1, 0, 3, 2).contiguous()
    steps = steps.view(torch.uint8).reshape(panels, groups, 2 * SCALE_BYTES)
    return torch.cat((nibbles, steps), 2).flatten(1).numpy()


def _pointer(builder: Any, data: Any, at: Any, kind: Any) -> Any:
    return builder.bitcast(builder.gep(data, [at]), kind.as_pointer())


def _spread(builder: Any, value: Any) -> Any:
    """A vector of equal numbers."""
    kind = ir.VectorType(value.type, LANES)
    one = builder.insert_element(ir.Constant(kind, ir.Undefined), value, ir.Constant(_INT, 0))
    order = ir.Constant(ir.VectorType(_INT, LANES), [0] * LANES)
    return builder.shuffle_vector(one, ir.Constant(kind, ir.Undefined), order)


def _declare(builder: Any, name: str, result: Any, *kinds: Any) -> Any:
    return cgutils.get_or_insert_function(builder.module, ir.FunctionType(result, kinds), name)


def _fetch(builder: Any, pointer: Any) -> None:
    """Bring what will be read soon into the cache."""
    fetch = _declare(builder, "llvm.prefetch.p0i8", ir.VoidType(), pointer.type, _INT, _INT, _INT)
    builder.call(fetch, [pointer, *(ir.Constant(_INT, each) for each in (0, 3, 1))])


def _levels(builder: Any, data: Any, at: Any) -> list[Any]:
    """A group's levels, four inputs of each output at a time."""
    found, mask = [], ir.Constant(_INTS, [0x0F0F0F0F] * LANES)
    for load in range(_LOADS):
        own = builder.add(at, ir.Constant(at.type, load * _BYTES))
        raw = builder.load(_pointer(builder, data, own, _INTS), align=1)
        found.append(builder.and_(raw, mask))
        found.append(builder.and_(builder.lshr(raw, ir.Constant(_INTS, [4] * LANES)), mask))
    return found


def _steps(builder: Any, data: Any, at: Any) -> tuple[Any, Any]:
    """A group's scales and zeros as float32."""
    found = []
    for which in range(2):
        own = builder.add(at, ir.Constant(at.type, LEVEL_BYTES + which * SCALE_BYTES))
        kind = ir.VectorType(_SHORT, LANES)
        bits = builder.zext(builder.load(_pointer(builder, data, own, kind), align=1), _INTS)
        found.append(builder.bitcast(builder.shl(bits, ir.Constant(_INTS, [16] * LANES)), _FLOATS))
    return found[0], found[1]


@intrinsic
def _round_group(
    typing: Any, x: Any, row: Any, group: Any, values: Any, steps: Any, offsets: Any, starts: Any
) -> Any:
    """A group of a row's inputs in 8 bits; see `round_inputs`."""

    def generate(context: Any, builder: Any, signature: Any, given: Any) -> Any:
        x, values, steps, offsets, starts = (
            context.make_array(signature.args[at])(context, builder, given[at])
            for at in (0, 3, 4, 5, 6)
        )
        row, group = given[1:3]
        inputs = builder.mul(group, ir.Constant(group.type, GROUP))

        def place(array: Any, at: Any) -> Any:
            width = builder.extract_value(array.shape, 1)
            return builder.add(builder.mul(row, width), at)

        unary = [
            _declare(builder, f"llvm.{name}.v{LANES}f32", _FLOATS, _FLOATS)
            for name in ("fabs", "rint")
        ]
        larger = _declare(builder, f"llvm.maxnum.v{LANES}f32", _FLOATS, _FLOATS, _FLOATS)
        most = _declare(builder, f"llvm.vector.reduce.fmax.v{LANES}f32", _FLOAT, _FLOATS)
        total = _declare(builder, f"llvm.vector.reduce.add.v{LANES}i32", _INT, _INTS)
        halves = []
        for half in range(2):
            at = builder.add(inputs, ir.Constant(inputs.type, half * LANES))
            pointer = _pointer(builder, x.data, place(x, at), _FLOATS)
            halves.append((at, builder.load(pointer, align=4)))
        sizes = [builder.call(unary[0], [value]) for _, value in halves]
        size = builder.call(most, [builder.call(larger, sizes)])
        least, levels = ir.Constant(_FLOAT, 2.0**-80), ir.Constant(_FLOAT, 127.0)
        size = builder.select(builder.fcmp_ordered(">", size, least), size, least)
        inverse, step = builder.fdiv(levels, size), builder.fdiv(size, levels)
        whole = []
        for at, value in halves:
            scaled = builder.call(unary[1], [builder.fmul(value, _spread(builder, inverse))])
            whole.append(builder.fptosi(scaled, _INTS))
            small = builder.trunc(whole[-1], ir.VectorType(_BYTE, LANES))
            pointer = _pointer(builder, values.data, place(values, at), small.type)
            builder.store(small, pointer, align=1)
        count = builder.call(total, [builder.add(*whole)])
        offset = builder.fmul(step, builder.sitofp(count, _FLOAT))
        start = builder.mul(count, ir.Constant(_INT, -MIDDLE))
        for array, number in ((steps, step), (offsets, offset), (starts, start)):
            builder.store(number, builder.gep(array.data, [place(array, group)]))
        return context.get_dummy_value()

    arguments = x, types.intp, types.intp, values, steps, offsets, starts
    return types.none(*arguments), generate


@compiled()
def round_inputs(x, rows, inputs, values, steps, offsets, starts):
    """x[:rows, :inputs] -> values [rows, inputs] in 8 bits; for each group the size of a level,
    the sum of the rounded inputs, and what the integers' sum starts from."""
    for row in range(rows):
        round_row(x, row, 0, inputs, values, steps, offsets, starts)


@compiled()
def round_row(x, row, first, last, values, steps, offsets, starts):
    """The same of a row's inputs from `first` to `last`, which are whole groups."""
    for group in range(first // GROUP, last // GROUP):
        _round_group(x, row, group, values, steps, offsets, starts)


def _panel(count: int) -> Callable[..., Any]:
    """Products of a panel, which begins at byte `at`, with `count` rows from `row` on; `out` is
    written from its column `to` on."""

    def generate(context: Any, builder: Any, signature: Any, given: Any) -> Any:
        weights, values, steps, offsets, starts, out = (
            context.make_array(signature.args[at])(context, builder, given[at])
            for at in (0, 3, 4, 5, 6, 8)
        )
        at, groups, row, to = given[1], given[2], given[7], given[9]
        rows = [builder.add(row, ir.Constant(row.type, each)) for each in range(count)]

        def data(array: Any, own: Any, column: Any) -> Any:
            place = builder.add(builder.mul(own, builder.extract_value(array.shape, 1)), column)
            return builder.gep(array.data, [place])

        dot = _declare(builder, "llvm.x86.avx512.vpdpbusd.512", _INTS, _INTS, _INTS, _INTS)
        fma = _declare(builder, f"llvm.fma.v{LANES}f32", _FLOATS, _FLOATS, _FLOATS, _FLOATS)
        zero = ir.Constant(_FLOATS, [0.0] * LANES)
        sums = [cgutils.alloca_once_value(builder, zero) for _ in range(count)]
        first, one = ir.Constant(groups.type, 0), ir.Constant(groups.type, 1)
        with cgutils.for_range_slice(builder, first, groups, one) as (group, _):
            start = builder.add(at, builder.mul(group, ir.Constant(at.type, GROUP_BYTES)))
            levels = _levels(builder, weights.data, start)
            scales, zeros = _steps(builder, weights.data, start)
            if count == ROWS:
                after = builder.add(start, builder.mul(groups, ir.Constant(at.type, GROUP_BYTES)))
                for line in range(0, GROUP_BYTES, 64):
                    own = builder.add(after, ir.Constant(at.type, line))
                    _fetch(builder, builder.gep(weights.data, [own]))
            inputs = builder.mul(group, ir.Constant(group.type, GROUP))
            for own, held in zip(rows, sums, strict=True):
                whole = _spread(builder, builder.load(data(starts, own, group)))
                for each, level in enumerate(levels):
                    place = builder.add(inputs, ir.Constant(inputs.type, 4 * each))
                    pointer = builder.bitcast(data(values, own, place), _INT.as_pointer())
                    four = _spread(builder, builder.load(pointer, align=4))
                    whole = builder.call(dot, [whole, level, four])
                value = builder.fmul(builder.sitofp(whole, _FLOATS), scales)
                step, offset = (
                    _spread(builder, builder.load(data(array, own, group)))
                    for array in (steps, offsets)
                )
                total = builder.call(fma, [value, step, builder.load(held)])
                builder.store(builder.call(fma, [zeros, offset, total]), held)
        for own, held in zip(rows, sums, strict=True):
            pointer = builder.bitcast(data(out, own, to), _FLOATS.as_pointer())
            builder.store(builder.load(held), pointer, align=4)
        return context.get_dummy_value()

    def panel(typing: Any, weights: Any, at: Any, groups: Any, values: Any, steps: Any,
              offsets: Any, starts: Any, row: Any, out: Any, to: Any) -> Any:  # fmt: skip
        place = types.intp
        arguments = weights, place, place, values, steps, offsets, starts, place, out, place
        return types.none(*arguments), generate

    return intrinsic(panel)


_one, _two, _four, _many = _panel(1), _panel(2), _panel(4), _panel(ROWS)


@compiled()
def multiply_panels(weights, rows, start, stop, values, steps, offsets, starts, out, to):
    """out[:rows, to : to + stop - start], outputs from `start` to `stop`, from inputs that
    `round_inputs` has rounded."""
    size = weights.shape[1]
    groups = size // GROUP_BYTES
    for n in range(start, stop, LANES):
        at, place = n // LANES * size, to + n - start
        row = 0
        while row + ROWS <= rows:
            _many(weights, at, groups, values, steps, offsets, starts, row, out, place)
            row += ROWS
        while row + 4 <= rows:
            _four(weights, at, groups, values, steps, offsets, starts, row, out, place)
            row += 4
        if row + 2 <= rows:
            _two(weights, at, groups, values, steps, offsets, starts, row, out, place)
            row += 2
        if row < rows:
            _one(weights, at, groups, values, steps, offsets, starts, row, out, place)
