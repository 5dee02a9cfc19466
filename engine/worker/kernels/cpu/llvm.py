"""Instructions that numba has no words for, as parts of the kernels' intrinsics.

Vectors have LANES numbers if nothing else is said. Builders, values and types are llvmlite's, which
has no types of its own for a checker. Knows no kernel.
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba import config
from numba.core import cgutils
from numba.core.codegen import get_host_cpu_features

LANES = 16


def features() -> str:
    """What kernels may use, as LLVM is told by numba: "+avx2,-avx512f"."""
    named: str | None = config.CPU_FEATURES
    return str(get_host_cpu_features()) if named is None else named


def compiles_for(feature: str) -> bool:
    """Whether kernels may use it: this processor has it, and no variable of numba's leaves it
    out."""
    return all(f"+{feature}" in each.split(",") for each in (get_host_cpu_features(), features()))


class BFloat(ir.types.Type):  # type: ignore[misc]
    """LLVM's bfloat, which llvmlite has no name for."""

    def _to_string(self) -> str:
        return "bfloat"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, BFloat)

    def __hash__(self) -> int:
        return hash(BFloat)


def vector(kind: Any, lanes: int = LANES) -> Any:
    return ir.VectorType(kind, lanes)


BYTE, SHORT, INT, LONG = (ir.IntType(bits) for bits in (8, 16, 32, 64))
HALF, FLOAT = ir.HalfType(), ir.FloatType()
INTS, FLOATS = vector(INT), vector(FLOAT)


def constant(kind: Any, value: float) -> Any:
    """A number, or a vector of equal ones."""
    return ir.Constant(kind, [value] * kind.count if isinstance(kind, ir.VectorType) else value)


def arrays(context: Any, builder: Any, signature: Any, given: Any, *at: int) -> list[Any]:
    """The arrays among an intrinsic's arguments, with `data` and `shape`."""
    return [context.make_array(signature.args[i])(context, builder, given[i]) for i in at]


def declare(builder: Any, name: str, result: Any, *kinds: Any) -> Any:
    """A function of LLVM's."""
    return cgutils.get_or_insert_function(builder.module, ir.FunctionType(result, kinds), name)


def fma(builder: Any, lanes: int = LANES) -> Any:
    """x, y, z -> x * y + z, rounded once; of vectors."""
    kind = vector(FLOAT, lanes)
    return declare(builder, f"llvm.fma.v{lanes}f32", kind, kind, kind, kind)


def pointer(builder: Any, data: Any, at: Any, kind: Any) -> Any:
    """To a value of this kind, `at` numbers behind `data`."""
    return builder.bitcast(builder.gep(data, [at]), kind.as_pointer())


def load(builder: Any, data: Any, at: Any, kind: Any, align: int = 4) -> Any:
    return builder.load(pointer(builder, data, at, kind), align=align)


def store(builder: Any, value: Any, data: Any, at: Any, align: int = 4) -> None:
    builder.store(value, pointer(builder, data, at, value.type), align=align)


def fetch(builder: Any, address: Any) -> None:
    """Bring what will be read soon into the cache; an address behind all memory does no harm."""
    place = builder.bitcast(address, BYTE.as_pointer())
    own = declare(builder, "llvm.prefetch.p0i8", ir.VoidType(), place.type, INT, INT, INT)
    builder.call(own, [place, *(constant(INT, each) for each in (0, 3, 1))])


def spread(builder: Any, value: Any, lanes: int = LANES) -> Any:
    """A vector of equal numbers."""
    kind, first = vector(value.type, lanes), constant(vector(INT, lanes), 0)
    one = builder.insert_element(ir.Constant(kind, ir.Undefined), value, ir.Constant(INT, 0))
    return builder.shuffle_vector(one, ir.Constant(kind, ir.Undefined), first)


def widen(builder: Any, bits: Any) -> Any:
    """Bits of bfloat16, alone or a vector of them, as float32."""
    lanes = getattr(bits.type, "count", 0)
    whole, number = (vector(kind, lanes) if lanes else kind for kind in (INT, FLOAT))
    return builder.bitcast(builder.shl(builder.zext(bits, whole), constant(whole, 16)), number)
