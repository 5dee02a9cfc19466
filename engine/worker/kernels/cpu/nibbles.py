"""Products of a few rows with weights of 4 bits, as integers (`integers`).

Weights lie in panels of LANES outputs, group after group of GROUP inputs: 256 bytes of levels, then
scales and zeros of the group in bfloat16. Inputs are rounded to 8 bits, with a step of their own
for each group; a group's sum is exact, groups are added in order. So a row's result depends neither
on other rows nor on the threads. Knows no layers.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import torch
from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic
from numpy.typing import NDArray
from torch import Tensor

from engine.model.quantized_linear import GROUP
from engine.worker.kernels.cpu import integers
from engine.worker.kernels.cpu.compiler import compiled
from engine.worker.kernels.cpu.integers import ROWS, SUMS, WIDTH
from engine.worker.kernels.cpu.llvm import (
    FLOAT,
    FLOATS,
    INT,
    INTS,
    LANES,
    SHORT,
    arrays,
    constant,
    declare,
    fetch,
    fma,
    load,
    spread,
    store,
    vector,
    widen,
)

LEVEL_BYTES, SCALE_BYTES = LANES * GROUP // 2, LANES * 2
GROUP_BYTES = LEVEL_BYTES + 2 * SCALE_BYTES
AHEAD = 2048  # bytes of panels that are on their way while few rows meet others
MIDDLE = 8  # the level whose value is a group's zero
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


def _levels(builder: Any, data: Any, at: Any, kind: Any = INTS, part: int = 0) -> Iterator[Any]:
    """A group's levels, four inputs of each output at a time; of the outputs those that one vector
    of a `kind` holds, or the next ones in the next `part`."""
    mask, shift, skip = constant(kind, 0x0F0F0F0F), constant(kind, 4), 4 * kind.count * part
    for number in range(_LOADS):
        own = builder.add(at, constant(at.type, number * _BYTES + skip))
        raw = load(builder, data, own, kind, 1)
        yield builder.and_(raw, mask)
        yield builder.and_(builder.lshr(raw, shift), mask)


def _steps(builder: Any, data: Any, at: Any, lanes: int = LANES, part: int = 0) -> list[Any]:
    """A group's scales and zeros as float32, of the same outputs."""
    found = []
    for start in (LEVEL_BYTES, LEVEL_BYTES + SCALE_BYTES):
        own = builder.add(at, constant(at.type, start + 2 * lanes * part))
        found.append(widen(builder, load(builder, data, own, vector(SHORT, lanes), 1)))
    return found


@intrinsic
def unpack_group(typing: Any, weights: Any, at: Any, panel: Any, to: Any) -> Any:
    """A group's weights in bfloat16, from its first byte on: pairs of inputs, one after the other,
    each with all outputs (int32)."""

    def generate(context: Any, builder: Any, signature: Any, given: Any) -> Any:
        source, target = arrays(context, builder, signature, given, 0, 2)
        scales, zeros = _steps(builder, source.data, given[1])
        multiply_add = fma(builder)
        least = builder.call(multiply_add, [scales, constant(FLOATS, -float(MIDDLE)), zeros])
        half = constant(INTS, 1 << 15)  # of what bfloat16 leaves out

        def weight(four: Any, which: int) -> Any:
            level = builder.and_(builder.lshr(four, constant(INTS, 8 * which)), constant(INTS, 15))
            value = [builder.sitofp(level, FLOATS), scales, least]
            bits = builder.bitcast(builder.call(multiply_add, value), INTS)
            return builder.add(bits, half)

        place = given[3]
        for number, four in enumerate(_levels(builder, source.data, given[1])):
            for pair in range(2):
                even, odd = (weight(four, 2 * pair + which) for which in range(2))
                low = builder.lshr(even, constant(INTS, 16))
                both = builder.or_(low, builder.and_(odd, constant(INTS, -(1 << 16))))
                own = builder.add(place, constant(place.type, (2 * number + pair) * LANES))
                store(builder, both, target.data, own)
        return context.get_dummy_value()

    return types.none(weights, types.int64, panel, types.int64), generate


@intrinsic
def _round_group(
    typing: Any, x: Any, row: Any, group: Any, values: Any, steps: Any, offsets: Any, starts: Any
) -> Any:
    """A group of a row's inputs in 8 bits, or in 16 if `values` are; see `round_inputs`."""
    bits = values.dtype.bitwidth

    def generate(context: Any, builder: Any, signature: Any, given: Any) -> Any:
        held = arrays(context, builder, signature, given, 0, 3, 4, 5, 6)
        x, values, steps, offsets, starts = held
        row, group = given[1:3]
        inputs = builder.mul(group, constant(group.type, GROUP))

        def place(array: Any, at: Any) -> Any:
            width = builder.extract_value(array.shape, 1)
            return builder.add(builder.mul(row, width), at)

        unary = [
            declare(builder, f"llvm.{name}.v{LANES}f32", FLOATS, FLOATS)
            for name in ("fabs", "rint")
        ]
        larger = declare(builder, f"llvm.maxnum.v{LANES}f32", FLOATS, FLOATS, FLOATS)
        most = declare(builder, f"llvm.vector.reduce.fmax.v{LANES}f32", FLOAT, FLOATS)
        total = declare(builder, f"llvm.vector.reduce.add.v{LANES}i32", INT, INTS)
        halves = []
        for half in range(2):
            at = builder.add(inputs, constant(inputs.type, half * LANES))
            halves.append((at, load(builder, x.data, place(x, at), FLOATS)))
        sizes = [builder.call(unary[0], [value]) for _, value in halves]
        size = builder.call(most, [builder.call(larger, sizes)])
        least, levels = constant(FLOAT, 2.0**-80), constant(FLOAT, 2.0 ** (bits - 1) - 1)
        size = builder.select(builder.fcmp_ordered(">", size, least), size, least)
        inverse, step = builder.fdiv(levels, size), builder.fdiv(size, levels)
        whole = []
        for at, value in halves:
            scaled = builder.call(unary[1], [builder.fmul(value, spread(builder, inverse))])
            whole.append(builder.fptosi(scaled, INTS))
            small = builder.trunc(whole[-1], vector(ir.IntType(bits)))
            store(builder, small, values.data, place(values, at), bits // 8)
        count = builder.call(total, [builder.add(*whole)])
        offset = builder.fmul(step, builder.sitofp(count, FLOAT))
        start = builder.mul(count, constant(INT, -MIDDLE))
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
        passed = arrays(context, builder, signature, given, 0, 3, 4, 5, 6, 8)
        weights, values, steps, offsets, starts, out = passed
        at, groups, row, to = given[1], given[2], given[7], given[9]
        rows = [builder.add(row, constant(row.type, each)) for each in range(count)]

        def data(array: Any, own: Any, column: Any) -> Any:
            place = builder.add(builder.mul(own, builder.extract_value(array.shape, 1)), column)
            return builder.gep(array.data, [place])

        def spread_of(array: Any, own: Any, group: Any) -> Any:
            return spread(builder, builder.load(data(array, own, group)), WIDTH)

        def wholes(start: Any, group: Any, parts: range) -> list[list[Any]]:
            """A group's sums as integers [row][part]: a level meets all rows, an input all parts,
            so that few of them are in registers at once."""
            first = [builder.load(data(starts, own, group)) for own in rows]
            sums = [[integers.begin(builder, own) for _ in parts] for own in first]
            levels_of = [_levels(builder, weights.data, start, SUMS, part) for part in parts]
            column = builder.mul(group, constant(group.type, GROUP))
            for each, levels in enumerate(zip(*levels_of, strict=True)):
                place = builder.add(column, constant(column.type, 4 * each))
                for own, held in zip(rows, sums, strict=True):
                    pointer = builder.bitcast(data(values, own, place), INT.as_pointer())
                    four = spread(builder, builder.load(pointer, align=4), WIDTH)
                    held[:] = [
                        integers.add_levels(builder, total, level, four)
                        for total, level in zip(held, levels, strict=True)
                    ]
            return [
                [integers.end(builder, total, own) for total in held]
                for own, held in zip(first, sums, strict=True)
            ]

        multiply_add, floats = fma(builder, WIDTH), vector(FLOAT, WIDTH)
        first, one = constant(groups.type, 0), constant(groups.type, 1)
        for turn, parts in enumerate(integers.turns(count)):
            sums = [
                [cgutils.alloca_once_value(builder, constant(floats, 0.0)) for _ in parts]
                for _ in rows
            ]
            with cgutils.for_range_slice(builder, first, groups, one) as (group, _):
                start = builder.add(at, builder.mul(group, constant(at.type, GROUP_BYTES)))
                ahead = constant(at.type, AHEAD)  # many rows take long: then it is the next panel
                if count > 4:
                    ahead = builder.mul(groups, constant(at.type, GROUP_BYTES))
                for line in range(0, GROUP_BYTES, 64) if turn == 0 else ():
                    own = builder.add(builder.add(start, ahead), constant(at.type, line))
                    fetch(builder, builder.gep(weights.data, [own]))
                found = wholes(start, group, parts)
                factors = [_steps(builder, weights.data, start, WIDTH, part) for part in parts]
                for own, whole, held in zip(rows, found, sums, strict=True):
                    step, offset = (spread_of(array, own, group) for array in (steps, offsets))
                    for each, (scales, zeros), place in zip(whole, factors, held, strict=True):
                        value = builder.fmul(builder.sitofp(each, floats), scales)
                        total = builder.call(multiply_add, [value, step, builder.load(place)])
                        builder.store(builder.call(multiply_add, [zeros, offset, total]), place)
            for own, held in zip(rows, sums, strict=True):
                for part, place in zip(parts, held, strict=True):
                    column = builder.add(to, constant(to.type, part * WIDTH))
                    pointer = builder.bitcast(data(out, own, column), floats.as_pointer())
                    builder.store(builder.load(place), pointer, align=4)
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
        if ROWS > 4:
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
