"""Products of rows with weights that were unpacked to 16 bits, as integers, where the processor has
VNNI.

Weights lie in panels of LANES outputs, two inputs of each output side by side. Inputs are rounded
to 16 bits, with a step of their own for each group of GROUP; a group's sum is exact, groups are
added in order. So a row's result depends on no other row. Knows no scales of weights.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

from engine.model.quantized_linear import GROUP
from engine.worker.kernels.cpu.compiler import compiled
from engine.worker.kernels.cpu.llvm import (
    FLOATS,
    INT,
    INTS,
    LANES,
    arrays,
    constant,
    declare,
    fetch,
    fma,
    load,
    spread,
)

ROWS = 12  # that meet a group's weights while these are in registers


def _panel(count: int) -> Callable[..., Any]:
    """Products of the panel that begins at number `at` with `count` rows from `row` on; `out` is
    written from its column `to` on. Meanwhile LANES outputs of `following`, which are unpacked
    next, are brought into the cache from number `ahead` on."""

    def generate(context: Any, builder: Any, signature: Any, given: Any) -> Any:
        weights, values, steps, out, following = arrays(
            context, builder, signature, given, 0, 3, 4, 6, 8
        )
        at, groups, row, to, ahead = given[1], given[2], given[5], given[7], given[9]
        rows = [builder.add(row, constant(row.type, each)) for each in range(count)]

        def place(array: Any, own: Any, column: Any) -> Any:
            return builder.add(builder.mul(own, builder.extract_value(array.shape, 1)), column)

        dot = declare(builder, "llvm.x86.avx512.vpdpwssd.512", INTS, INTS, INTS, INTS)
        multiply_add = fma(builder)
        nothing = constant(INTS, 0)
        sums = [cgutils.alloca_once_value(builder, constant(FLOATS, 0.0)) for _ in rows]
        first, one = constant(groups.type, 0), constant(groups.type, 1)
        with cgutils.for_range_slice(builder, first, groups, one) as (group, _):
            start = builder.add(at, builder.mul(group, constant(at.type, LANES * GROUP)))
            pairs = [
                load(builder, weights.data, builder.add(start, constant(at.type, skip)), INTS, 2)
                for skip in range(0, LANES * GROUP, 2 * LANES)
            ]
            if count == ROWS:
                behind = builder.add(ahead, builder.mul(group, constant(at.type, LANES * GROUP)))
                for line in range(0, LANES * GROUP, 64):
                    where = builder.add(behind, constant(at.type, line))
                    fetch(builder, builder.gep(following.data, [where]))
            inputs = builder.mul(group, constant(group.type, GROUP))
            for own, held in zip(rows, sums, strict=True):
                whole = nothing
                for each, pair in enumerate(pairs):
                    column = builder.add(inputs, constant(inputs.type, 2 * each))
                    two = load(builder, values.data, place(values, own, column), INT, 2)
                    whole = builder.call(dot, [whole, pair, spread(builder, two)])
                step = builder.load(builder.gep(steps.data, [place(steps, own, group)]))
                value = builder.sitofp(whole, FLOATS)
                total = [value, spread(builder, step), builder.load(held)]
                builder.store(builder.call(multiply_add, total), held)
        for own, held in zip(rows, sums, strict=True):
            pointer = builder.gep(out.data, [place(out, own, to)])
            builder.store(
                builder.load(held), builder.bitcast(pointer, FLOATS.as_pointer()), align=4
            )
        return context.get_dummy_value()

    def panel(typing: Any, weights: Any, at: Any, groups: Any, values: Any, steps: Any, row: Any,
              out: Any, to: Any, following: Any, ahead: Any) -> Any:  # fmt: skip
        place = types.intp
        return types.none(
            weights, place, place, values, steps, place, out, place, following, place
        ), generate

    return intrinsic(panel)


_one, _two, _four, _many = _panel(1), _panel(2), _panel(4), _panel(ROWS)


@compiled()
def multiply_panels(panels, outputs, inputs, rows, values, steps, out, following, ahead):
    """out[:rows, :outputs] from panels of as many inputs, one after the other. `following` has the
    weights that are unpacked next, from number `ahead` on."""
    groups = inputs // GROUP
    for n in range(0, outputs, LANES):
        at, row = n * inputs, 0
        while row + ROWS <= rows:
            _many(panels, at, groups, values, steps, row, out, n, following, ahead + n * inputs)
            row += ROWS
        while row + 4 <= rows:
            _four(panels, at, groups, values, steps, row, out, n, following, ahead + n * inputs)
            row += 4
        if row + 2 <= rows:
            _two(panels, at, groups, values, steps, row, out, n, following, ahead + n * inputs)
            row += 2
        if row < rows:
            _one(panels, at, groups, values, steps, row, out, n, following, ahead + n * inputs)
