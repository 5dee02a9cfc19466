"""Products in tile registers are near those of other processors, and a row's the same whatever
other rows there are."""

from __future__ import annotations

import ctypes
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import example, given, settings
from hypothesis import strategies as st
from numba import njit, types
from numba.extending import intrinsic
from torch import Tensor

from engine.worker.cpu_start import CpuStart
from engine.worker.kernels.cpu import amx, llvm, tiles
from engine.worker.kernels.cpu.row_products import SPAN, Inputs, Tiles
from engine.worker.kernels.cpu.tiles import KEEP, LANES, RESIDUAL, SNAKE, STORE, pack
from engine.worker.loading.start_cache import StartCache
from studio.cli.app_context import MINI

AMX = pytest.mark.skipif(not amx.permitted(), reason="this processor has no tile registers")
IN_USE = 1 << 18  # of tile registers, in what the processor saves for a thread
FOLLOWS = (RESIDUAL | KEEP | SNAKE | STORE, KEEP, STORE)
Results = tuple[Tensor, Tensor]


class Products:
    """Random products of rows that overlap, as a convolution's do."""

    def __init__(self, taps: int, channels: int, width: int, rows: int, seed: int) -> None:
        draw = torch.Generator().manual_seed(seed)
        self.taps, self.channels, self.width, self.rows = taps, channels, width, rows
        weights = torch.randn(width, taps * channels, generator=draw) / (taps * channels) ** 0.5
        inputs = torch.randn((rows + 2 * taps) * channels, generator=draw)
        self.weights = pack(weights, "bfloat16")
        self.inputs = inputs.bfloat16().view(torch.int16).numpy()
        self.constants = torch.randn(3 * width, generator=draw).numpy()
        self.sums = torch.randn(rows * width, generator=draw).numpy()

    def run(self, product: Any, most: int, follows: int, own: tuple[Any, ...] = ()) -> Results:
        """What is stored and what is summed up [rows, width], from `most` rows at a time."""
        sums, out = self.sums.copy(), np.zeros(self.rows * self.width, np.int16)
        for first in range(0, self.width, tiles.VECTORS * LANES):
            for row in range(0, self.rows, most):
                product(
                    self.weights, self.inputs, self.constants, sums, out, *own, 0,
                    row * self.channels, self.channels, self.channels, self.taps,
                    2 * self.channels, 0, self.width, first, min(most, self.rows - row),
                    row * self.width, row * self.width, follows,
                )  # fmt: skip
        stored = torch.from_numpy(out).view(torch.bfloat16).float()
        return stored.view(self.rows, -1), torch.from_numpy(sums).view(self.rows, -1)

    def in_registers(self, most: int, follows: int) -> Results:
        own = np.full(amx.SIZE, np.nan, np.float32)
        return self.run(amx._product, most, follows, (own,))


@AMX
@settings(max_examples=10, deadline=None)
@given(
    taps=st.integers(1, 7), channels=st.integers(1, 4).map(lambda count: count * amx.INPUTS),
    width=st.integers(1, 5).map(lambda count: count * LANES), rows=st.integers(1, 70),
    most=st.integers(1, amx.ROWS), follows=st.sampled_from(FOLLOWS), seed=st.integers(0, 9),
)  # fmt: skip
@example(taps=7, channels=96, width=48, rows=65, most=17, follows=FOLLOWS[0], seed=0)
def test_a_row_is_the_same_alone_and_near_that_of_other_products(
    taps: int, channels: int, width: int, rows: int, most: int, follows: int, seed: int
) -> None:
    products = Products(taps, channels, width, rows, seed)
    found = products.in_registers(amx.ROWS, follows)
    for each, alone in zip(found, products.in_registers(most, follows), strict=True):
        assert torch.equal(each, alone)
    wanted = products.run(tiles.product, tiles.ROWS, follows)
    torch.testing.assert_close(found[0], wanted[0], rtol=2**-7, atol=1e-4)  # a bit of bfloat16
    torch.testing.assert_close(found[1], wanted[1], rtol=1e-5, atol=1e-5)


@intrinsic
def _used_registers(typing: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, given: Any) -> Any:
        ask = llvm.declare(builder, "llvm.x86.xgetbv", llvm.LONG, llvm.INT)
        return builder.call(ask, [llvm.INT(1)])

    return types.int64(), generate


@njit
def _used() -> Any:
    return _used_registers()


@AMX
def test_registers_are_let_go_of() -> None:
    """Else each change to another thread would save them."""
    Products(1, 32, 32, 20, 0).in_registers(amx.ROWS, STORE)
    assert not _used() & IN_USE


@pytest.fixture
def asked() -> Iterator[None]:
    amx.permitted.cache_clear()
    yield
    amx.permitted.cache_clear()


@pytest.mark.parametrize("refused", [False, True])
@pytest.mark.usefixtures("asked")
def test_a_system_may_refuse_registers(refused: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    class Library:
        def __init__(self, name: None) -> None: ...

        def syscall(self, *given: int) -> int:
            assert given == (158, 0x1023, 18)
            return -1 if refused else 0

    monkeypatch.setattr(ctypes, "CDLL", Library)
    monkeypatch.setattr(amx, "AVAILABLE", True)
    monkeypatch.setattr("sys.platform", "linux")
    monkeypatch.setattr("platform.machine", lambda: "x86_64")
    assert amx.permitted() == (not refused)


@pytest.mark.usefixtures("asked")
def test_other_systems_are_not_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ctypes, "CDLL", None)
    for available, system in ((False, "linux"), (True, "darwin")):
        monkeypatch.setattr(amx, "AVAILABLE", available)
        monkeypatch.setattr("sys.platform", system)
        amx.permitted.cache_clear()
        assert not amx.permitted()


@pytest.mark.parametrize("bits", [4, 8, 32])
@pytest.mark.parametrize("permitted", [False, True])
def test_a_prompts_inputs_are_bfloat16_where_registers_multiply_them(
    permitted: bool, bits: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(amx, "permitted", lambda: permitted)
    inputs, tiled = Inputs.allocate(3, 64, bits), permitted and bits < 32
    planes = {4: 1, 8: 2}.get(bits, 0)
    assert inputs.values.shape == ((planes, 3, 64) if tiled else (3, 64))
    assert (inputs.steps.size == 0) == (tiled or inputs.values.dtype == np.float32)
    unpacked = Tiles.allocate(2, 64, bits).unpacked
    assert (unpacked.dtype == np.int32) == tiled
    assert not tiled or unpacked.nbytes == 2 * 2 * SPAN * 64 * 2


def test_kernels_are_tried_again_where_registers_are_refused_but_nothing_is_packed_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A program that may use them deletes what one that was refused has packed."""
    kernels, packed = [], []
    for permitted in (False, True):
        monkeypatch.setattr(amx, "permitted", lambda permitted=permitted: permitted)
        start = CpuStart(StartCache(tmp_path), MINI, "8bit")
        kernels.append((start.talker_proof(1).file, start._frame_key(1)))
        packed.append((start._talker_key, start._codec_key))
    assert all(one != two for one, two in zip(*kernels, strict=True))
    assert packed[0] == packed[1]


@AMX
def test_registers_are_left_alone_where_nothing_else_makes_bfloat16() -> None:
    """Inputs could not be rounded: LLVM would end the process."""
    code = "from engine.worker.kernels.cpu import amx; assert not amx.permitted()"
    named = llvm.features().replace("+avx512bf16", "-avx512bf16")
    told = {**os.environ, "NUMBA_CPU_FEATURES": named}
    subprocess.run([sys.executable, "-c", code], env=told, check=True)
