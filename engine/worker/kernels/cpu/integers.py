"""Products of small integers as vector instructions: whichever a processor has, sums are exact, so
they are the same numbers.

AVX512-VNNI has vectors of LANES numbers; AVX-VNNI and AVX2 have half as many, and so few registers
that sums of four rows with a panel of LANES outputs take two turns. Knows no weights and no inputs.
"""

from __future__ import annotations

from typing import Any

from engine.worker.kernels.cpu.llvm import (
    BYTE,
    INT,
    LANES,
    SHORT,
    compiles_for,
    constant,
    declare,
    spread,
    vector,
)

_WIDE = compiles_for("avx512vnni")
_VNNI = _WIDE or compiles_for("avxvnni")
AVAILABLE = _VNNI or compiles_for("avx2")
WIDTH = LANES if _WIDE else LANES // 2  # numbers of a vector
ROWS = 12 if _WIDE else 4  # that meet weights while these are in registers
SUMS = vector(INT, WIDTH)
_BYTES, _SHORTS = vector(BYTE, 4 * WIDTH), vector(SHORT, 2 * WIDTH)


def turns(rows: int) -> list[range]:
    """The parts, of WIDTH outputs each, of a panel: those whose sums with so many rows stay in
    registers, and then the others."""
    parts, at_once = range(LANES // WIDTH), max(1, 4 // rows)
    return [parts[first : first + at_once] for first in range(0, len(parts), at_once)]


def begin(builder: Any, start: Any) -> Any:
    """Sums of levels, of a few inputs, that will be added to a number."""
    return spread(builder, start, WIDTH) if _VNNI else constant(_SHORTS, 0)


def add_levels(builder: Any, sums: Any, levels: Any, inputs: Any) -> Any:
    """The sums and the products of four levels from 0 to 15 with four inputs of 8 bits each. In 16
    bits there is room for those of 34 inputs with each output."""
    if _VNNI:
        return builder.call(_vnni(builder, "vpdpbusd"), [sums, levels, inputs])
    multiply = declare(builder, "llvm.x86.avx2.pmadd.ub.sw", _SHORTS, _BYTES, _BYTES)
    both = [builder.bitcast(each, _BYTES) for each in (levels, inputs)]
    return builder.add(sums, builder.call(multiply, both))


def end(builder: Any, sums: Any, start: Any) -> Any:
    """What sums that have begun with this number have come to."""
    if _VNNI:
        return sums
    return builder.add(_pairs(builder, sums, constant(_SHORTS, 1)), spread(builder, start, WIDTH))


def add_pairs(builder: Any, sums: Any, weights: Any, inputs: Any) -> Any:
    """The sums and the products of two weights with two inputs, all of 16 bits."""
    if _VNNI:
        return builder.call(_vnni(builder, "vpdpwssd"), [sums, weights, inputs])
    return builder.add(sums, _pairs(builder, weights, inputs))


def _vnni(builder: Any, name: str) -> Any:
    return declare(builder, f"llvm.x86.avx512.{name}.{32 * WIDTH}", SUMS, SUMS, SUMS, SUMS)


def _pairs(builder: Any, one: Any, other: Any) -> Any:
    """Sums of the products of two numbers of 16 bits each."""
    multiply = declare(builder, "llvm.x86.avx2.pmadd.wd", SUMS, _SHORTS, _SHORTS)
    return builder.call(multiply, [builder.bitcast(each, _SHORTS) for each in (one, other)])
