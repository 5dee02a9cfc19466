"""Products of rows with weights that were unpacked to 16 bits, as integers (`integers`).

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
from engine.worker.kernels.cpu import integers
from engine.worker.kernels.cpu.compiler import compiled
from engine.worker.kernels.cpu.integers import ROWS, SUMS, WIDTH
from engine.worker.kernels.cpu.llvm import (
    FLOAT,
    INT,
    LANES,
    arrays,
    constant,
    fetch,
    fma,
    load,
    spread,
    store,
    vector,
)


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

        def spread_of(array: Any, own: Any, column: Any, kind: Any) -> Any:
            value = load(builder, array.data, place(array, own, column), kind, 2)
            return spread(builder, value, WIDTH)

        def wholes(start: Any, group: Any, parts: range) -> list[list[Any]]:
            """A group's sums as integers [row][part], see `nibbles`."""
            sums = [[constant(SUMS, 0) for _ in parts] for _ in rows]
            column = builder.mul(group, constant(group.type, GROUP))
            for pair in range(GROUP // 2):
                skips = [2 * (LANES * pair + WIDTH * part) for part in parts]
                ats = [builder.add(start, constant(at.type, skip)) for skip in skips]
                pairs = [load(builder, weights.data, own, SUMS, 2) for own in ats]
                for own, held in zip(rows, sums, strict=True):
                    where = builder.add(column, constant(column.type, 2 * pair))
                    two = spread_of(values, own, where, INT)
                    held[:] = [
                        integers.add_pairs(builder, total, weight, two)
                        for total, weight in zip(held, pairs, strict=True)
                    ]
            return sums

        multiply_add, floats = fma(builder, WIDTH), vector(FLOAT, WIDTH)
        first, one = constant(groups.type, 0), constant(groups.type, 1)
        for turn, parts in enumerate(integers.turns(count)):
            sums = [
                [cgutils.alloca_once_value(builder, constant(floats, 0.0)) for _ in parts]
                for _ in rows
            ]
            with cgutils.for_range_slice(builder, first, groups, one) as (group, _):
                skip = builder.mul(group, constant(at.type, LANES * GROUP))
                for line in range(0, LANES * GROUP, 64) if count == ROWS and turn == 0 else ():
                    where = builder.add(builder.add(ahead, skip), constant(at.type, line))
                    fetch(builder, builder.gep(following.data, [where]))
                found = wholes(builder.add(at, skip), group, parts)
                for own, whole, held in zip(rows, found, sums, strict=True):
                    step = spread_of(steps, own, group, FLOAT)
                    for each, total in zip(whole, held, strict=True):
                        value = [builder.sitofp(each, floats), step, builder.load(total)]
                        builder.store(builder.call(multiply_add, value), total)
            for own, held in zip(rows, sums, strict=True):
                for part, total in zip(parts, held, strict=True):
                    column = builder.add(to, constant(to.type, part * WIDTH))
                    store(builder, builder.load(total), out.data, place(out, own, column))
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
        if ROWS > 4:
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
