"""The order of the CPU kernels' sums is written in their sources, not chosen by a compiler: what
one process has compiled and what another has loaded give the same bits."""

from __future__ import annotations

import importlib
import pkgutil

import numpy as np
import pytest
from llvmlite.binding import get_host_cpu_features
from numba.core.dispatcher import Dispatcher

from engine.worker.kernels import cpu
from engine.worker.kernels.cpu import llvm
from engine.worker.kernels.cpu.dots import LANES, MULTIPLE, VECTORS, dot, dots_of, sum_of
from engine.worker.kernels.cpu.layers import Floats, highest

LENGTHS = [1, 15, 16, 63, 64, 65, 128, 200, 1000]


def in_order(products: Floats) -> np.float32:
    """Four vectors of partial sums, these added by halves, then what is over, one by one.
    In float64, which holds a product exactly, rounded after each sum as a fused one is."""
    whole = len(products) // MULTIPLE * MULTIPLE
    sums = np.zeros((VECTORS, LANES))
    for group in products[:whole].reshape(-1, VECTORS, LANES):
        sums = (sums + group).astype(np.float32).astype(np.float64)

    def add(one: Floats, other: Floats) -> Floats:
        return (one.astype(np.float32) + other.astype(np.float32)).astype(np.float32)

    total = add(add(sums[0], sums[1]), add(sums[2], sums[3]))
    while len(total) > 1:
        total = add(total[: len(total) // 2], total[len(total) // 2 :])
    result = total[0]
    for each in products[whole:]:
        result = np.float32(result + np.float32(each))
    return result


@pytest.mark.parametrize("length", LENGTHS)
def test_sums_have_one_order(length: int) -> None:
    random = np.random.default_rng(length)
    x = random.normal(size=length).astype(np.float32)
    weights = random.integers(-127, 128, length).astype(np.int8)
    assert sum_of(x) == in_order(x.astype(np.float64))
    x = x.astype(np.float16).astype(np.float32)  # so that products are exact
    assert dot(weights, x) == in_order(weights.astype(np.float64) * x)
    assert dot(x, x) == in_order(x.astype(np.float64) * x)


@pytest.mark.parametrize("length", [64, 65, 128])
@pytest.mark.parametrize("count", [0, 1, 3, 4, 7, 16])
def test_products_of_some_rows_are_those_of_each(length: int, count: int) -> None:
    random = np.random.default_rng(count)
    x = random.normal(size=length).astype(np.float32)
    rows = random.normal(size=(20, length)).astype(np.float32)
    out = np.full(20, np.nan, np.float32)
    dots_of(x, rows, count, out)
    assert out[:count].tolist() == [dot(x, row) for row in rows[:count]]
    assert np.isnan(out[count:]).all()


def test_no_other_sum_may_be_reordered() -> None:
    modules = [
        importlib.import_module(f"{cpu.__name__}.{each.name}")
        for each in pkgutil.iter_modules(cpu.__path__)
    ]
    kernels = {
        each for module in modules for each in vars(module).values() if isinstance(each, Dispatcher)
    }
    assert len(kernels) > 20
    free = {each for each in kernels if each.targetoptions.get("fastmath")}
    assert free == {highest}


def test_the_highest_is_the_same_in_any_order() -> None:
    scores = np.random.default_rng(0).normal(size=300).astype(np.float32)
    assert {highest(scores, count) for count in (300, 299)} <= {scores.max(), scores[:299].max()}
    assert highest(scores[::-1].copy(), 300) == scores.max()


def test_kernels_leave_out_what_numba_is_told_to_leave_out(monkeypatch: pytest.MonkeyPatch) -> None:
    """Else its compiler ends with an instruction that it may not use."""
    there = [name for name, has in get_host_cpu_features().items() if has]
    if len(there) < 2:
        pytest.skip("this system does not tell what its processor has")
    one, other = there[:2]
    assert llvm.compiles_for(one)
    assert not llvm.compiles_for("no such thing")
    monkeypatch.setattr("numba.config.CPU_FEATURES", f"+{other}")
    assert llvm.compiles_for(other)
    assert not llvm.compiles_for(one)
    monkeypatch.undo()
    monkeypatch.setattr("numba.config.ENABLE_AVX", 0)
    assert not any(llvm.compiles_for(each) for each in there if each.startswith("avx"))
