"""Products of many rows with weights of all kinds, in tiles that threads share.

Full weights meet inputs as they are (`panels`). 4 bits meet inputs rounded to 8 bits (`nibbles`),
as in a frame. 8 bits become 16, some outputs at a time, and meet inputs rounded to 16 bits
(`shorts`) on x86-64 with AVX2; elsewhere both are float32. With tile registers (`amx`) weights of 4
and 8 bits become bfloat16, and so do inputs; those that meet 8 bits have a second plane with what
bfloat16 leaves over, which comes to 16 bits. Each result is one sum in one order, whatever other
rows there are and however many threads. Knows no layers.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import torch
from llvmlite import ir
from numba import float32, int64, types
from numba.core import cgutils
from numba.extending import intrinsic, overload
from numpy.typing import NDArray
from torch import Tensor

from engine.model.quantized_linear import GROUP
from engine.worker.kernels.cpu import amx, integers, llvm, nibbles, panels, shorts
from engine.worker.kernels.cpu.compiler import compiled
from engine.worker.kernels.cpu.entries import Entry
from engine.worker.kernels.cpu.layers import Floats, array
from engine.worker.kernels.cpu.llvm import LANES
from engine.worker.kernels.cpu.memory import zeros
from engine.worker.kernels.cpu.threads import ThreadTeam, barrier, new_sync
from engine.worker.kernels.cpu.tiles import ROWS, STORE, VECTORS, product

SPAN = 2 * LANES  # outputs of a tile
TILE = amx.ROWS if amx.AVAILABLE else 24  # rows of a tile
AT_ONCE = 256  # rows that memory is kept for
NUMBERS = np.int16 if integers.AVAILABLE else np.float32  # that 8 bits become


def supports(bits: int) -> bool:
    """Whether this processor has what weights of so many bits need."""
    return bits != 4 or integers.AVAILABLE


def bits_of(weights: NDArray[Any]) -> int:
    """Of packed weights; full ones have 32, whatever is kept of them."""
    return {np.uint8: 4, np.int8: 8}.get(weights.dtype.type, 32)


def in_registers(bits: int) -> bool:
    """Whether products with weights of so many bits take tile registers here."""
    return bits in (4, 8) and amx.permitted()


class Inputs(NamedTuple):
    """Rows of inputs, as `nibbles.round_row` rounds them, or float32 without the rest, or planes of
    bfloat16 (int16) without it."""

    values: NDArray[Any]  # [rows, inputs] or [planes, rows, inputs]
    steps: Floats  # [rows, groups]
    offsets: Floats  # [rows, groups]
    starts: NDArray[np.int32]  # [rows, groups]

    @classmethod
    def allocate(cls, rows: int, inputs: int, bits: int) -> Inputs:
        kind = {4: np.int8, 8: NUMBERS}.get(bits, np.float32)
        if tiled := in_registers(bits):
            values = zeros((2 if bits == 8 else 1, rows, inputs), np.int16)
        else:
            values = zeros((rows, inputs), kind)
        size = rows, 0 if tiled or values.dtype == np.float32 else inputs // GROUP
        return cls(values, zeros(size, np.float32), zeros(size, np.float32), zeros(size, np.int32))


class Tiles(NamedTuple):
    """Each thread's tiles: two, because a gate needs the tile beside it."""

    results: Floats  # [threads, 2, TILE, SPAN]
    # [threads, 2, SPAN * inputs]: 8 bits as NUMBERS; 4 and 8 as pairs of bfloat16 (int32)
    unpacked: NDArray[Any]
    biases: Floats  # [SPAN] zeros

    @classmethod
    def allocate(cls, threads: int, inputs: int, bits: int) -> Tiles:
        if in_registers(bits):
            unpacked = zeros((threads, 2, SPAN * inputs // 2), np.int32)
        else:
            unpacked = zeros((threads, 2, SPAN * inputs if bits == 8 else 0), NUMBERS)
        results = zeros((threads, 2, TILE, SPAN), np.float32)
        return cls(results, unpacked, zeros(SPAN, np.float32))


@intrinsic
def _unpack_square(typing: Any, weights: Any, at: Any, inputs: Any, panel: Any, to: Any) -> Any:
    """LANES outputs' next weights, from number `at` on: inputs, one after the other, each with all
    outputs; of 16 bits, integers (int16) or bfloat16 (int32), two inputs in the place of one, so
    2 * LANES weights of an output."""
    count = LANES if panel.dtype == types.float32 else 2 * LANES

    def generate(context: Any, builder: Any, signature: Any, given: Any) -> Any:
        source, target = llvm.arrays(context, builder, signature, given, 0, 3)
        _, start, stride, _, place = given
        small, half, whole, number = (
            llvm.vector(kind, count) for kind in (llvm.BYTE, llvm.SHORT, llvm.INT, llvm.FLOAT)
        )
        pairs = llvm.INTS
        pairs_at = builder.bitcast(target.data, llvm.INT.as_pointer())
        rows = []
        for row in range(LANES):
            own = builder.add(start, builder.mul(stride, ir.Constant(stride.type, row)))
            levels = llvm.load(builder, source.data, own, small, 1)
            later = builder.add(own, builder.mul(stride, ir.Constant(stride.type, SPAN)))
            llvm.fetch(builder, builder.gep(source.data, [later]))  # what is unpacked next
            if panel.dtype == types.int16:
                value = builder.sext(levels, half)
            else:
                value = builder.sitofp(builder.sext(levels, whole), number)
            if panel.dtype == types.int32:
                value = builder.fptrunc(value, llvm.vector(llvm.BFloat(), count))
            rows.append(builder.bitcast(value, pairs))
        step = LANES // 2
        while step:  # halves, quarters … change places
            low = [lane if not lane & step else LANES + lane - step for lane in range(LANES)]
            high = [lane + step if not lane & step else LANES + lane for lane in range(LANES)]
            for row in range(LANES):
                if not row & step:
                    both = rows[row], rows[row + step]
                    rows[row], rows[row + step] = (
                        builder.shuffle_vector(*both, ir.Constant(pairs, order))
                        for order in (low, high)
                    )
            step //= 2
        for row, value in enumerate(rows):
            own = builder.add(place, ir.Constant(place.type, row * LANES))
            llvm.store(builder, value, pairs_at, own, 2)
        return context.get_dummy_value()

    return types.none(weights, types.int64, types.int64, panel, types.int64), generate


@intrinsic
def _split(typing: Any, x: Any, at: Any, values: Any, planes: Any, plane: Any) -> Any:
    """LANES inputs as bfloat16, and in each further plane what the one before leaves over."""

    def generate(context: Any, builder: Any, signature: Any, given: Any) -> Any:
        source, target = llvm.arrays(context, builder, signature, given, 0, 2)
        _, at, _, planes, plane = given
        rest = cgutils.alloca_once_value(builder, llvm.load(builder, source.data, at, llvm.FLOATS))
        nothing, one = (llvm.constant(at.type, each) for each in range(2))
        with cgutils.for_range_slice(builder, nothing, planes, one) as (each, _):
            value = builder.load(rest)
            rounded = builder.fptrunc(value, llvm.vector(llvm.BFloat()))
            own = builder.add(at, builder.mul(each, plane))
            llvm.store(builder, rounded, target.data, own, 2)
            whole = llvm.widen(builder, builder.bitcast(rounded, llvm.vector(llvm.SHORT)))
            builder.store(builder.fsub(value, whole), rest)
        return context.get_dummy_value()

    return types.none(x, types.int64, values, types.int64, types.int64), generate


def keep(x, row, first, last, inputs):
    """Keep a row's numbers from `first` to `last` (whole groups) of x [rows, inputs] as inputs."""


@overload(keep)
def _keep(x, row, first, last, inputs):
    if inputs[0].ndim == 3:

        def split(x, row, first, last, inputs):
            planes, rows, size = inputs.values.shape
            for at in range(first, last, LANES):
                _split(x, row * size + at, inputs.values, planes, rows * size)

        return split

    if inputs[0].dtype != types.float32:

        def rounded(x, row, first, last, inputs):
            nibbles.round_row(
                x, row, first, last, inputs.values, inputs.steps, inputs.offsets, inputs.starts
            )

        return rounded

    def copied(x, row, first, last, inputs):
        for at in range(first, last):
            inputs.values[row, at] = x[row, at]

    return copied


def multiply_tile(weights, scales, inputs, first, last, start, fresh, number, which, tiles):
    """Outputs from `start` on, at most SPAN, of rows from `first` to `last` into a thread's tile;
    `fresh`: these outputs' weights are not unpacked yet."""


@overload(multiply_tile)
def _multiply_tile(weights, scales, inputs, first, last, start, fresh, number, which, tiles):
    if weights.dtype in (types.int32, types.float32):

        def full(weights, scales, inputs, first, last, start, fresh, number, which, tiles):
            stop = min(start + SPAN, len(weights) * LANES)
            panels.multiply(
                weights, inputs.values, first, last, start, stop, tiles.results[number, which],
                int64(0),
            )  # fmt: skip

        return full

    if tiles[1].dtype == types.int32:

        def tiled(weights, scales, inputs, first, last, start, fresh, number, which, tiles):
            unpacked, result = tiles.unpacked[number, which], tiles.results[number, which]
            planes, rows, size = inputs.values.shape
            outputs = _unpack_outputs(weights, start, size, fresh, unpacked)
            amx.sums_of(
                unpacked, inputs.values, result, 0, size * LANES, first * size, size, size, 1, 0,
                planes, rows * size, last - first, outputs,
            )  # fmt: skip
            if len(scales) > 0:
                _scale(result, last - first, scales[start : start + outputs])

        return tiled

    if weights.dtype == types.uint8:

        def levels(weights, scales, inputs, first, last, start, fresh, number, which, tiles):
            stop = min(start + SPAN, len(weights) * LANES)
            nibbles.multiply_panels(
                weights, last - first, start, stop, inputs.values[first:last],
                inputs.steps[first:last], inputs.offsets[first:last], inputs.starts[first:last],
                tiles.results[number, which], 0,
            )  # fmt: skip

        return levels

    if tiles[1].dtype == types.int16:

        def shortened(weights, scales, inputs, first, last, start, fresh, number, which, tiles):
            size, unpacked = weights.shape[1], tiles.unpacked[number, which]
            stop, result = min(start + SPAN, len(weights)), tiles.results[number, which]
            if fresh:
                _unpack(weights, start, stop, 2 * LANES, unpacked)
            shorts.multiply_panels(
                unpacked, stop - start, size, last - first, inputs.values[first:last],
                inputs.steps[first:last], result, weights, (start + SPAN) * size,
            )  # fmt: skip
            _scale(result, last - first, scales[start:stop])

        return shortened

    def whole(weights, scales, inputs, first, last, start, fresh, number, which, tiles):
        size, unpacked = weights.shape[1], tiles.unpacked[number, which]
        stop, result = min(start + SPAN, len(weights)), tiles.results[number, which]
        if fresh:
            _unpack(weights, start, stop, LANES, unpacked)
        for each in range(first, last, ROWS):
            row = max(min(each, last - ROWS), first)  # again some rows, not one tile for each
            for n in range(0, SPAN, VECTORS * LANES):
                product(
                    unpacked, inputs.values, tiles.biases, result, result, 0, row * size, size,
                    size, 1, 0, 0, SPAN, n, min(ROWS, last - row), 0, (row - first) * SPAN, STORE,
                )  # fmt: skip
        _scale(result, last - first, scales[start:stop])

    return whole


def _unpack_outputs(weights, start, inputs, fresh, unpacked):
    """At most SPAN outputs from `start` on to bfloat16, if that is not done yet; how many."""


@overload(_unpack_outputs)
def _unpack_outputs_of(weights, start, inputs, fresh, unpacked):
    if weights.dtype == types.uint8:

        def levels(weights, start, inputs, fresh, unpacked):
            stop = min(start + SPAN, len(weights) * LANES)
            if fresh:
                data = weights.reshape(weights.size)
                to = int64(0)
                for at in range(start // LANES * weights.shape[1], stop // LANES * weights.shape[1],
                                nibbles.GROUP_BYTES):  # fmt: skip
                    nibbles.unpack_group(data, at, unpacked, to)
                    to += LANES * GROUP // 2
            return stop - start

        return levels

    def whole(weights, start, inputs, fresh, unpacked):
        stop = min(start + SPAN, len(weights))
        if fresh:
            _unpack(weights, start, stop, 2 * LANES, unpacked)
        return stop - start

    return whole


@compiled()
def _unpack(weights, start, stop, count, unpacked):
    """Outputs from `start` to `stop`, `count` inputs at a time."""
    size, to = weights.shape[1], int64(0)
    for n in range(start, stop, LANES):
        for at in range(0, size, count):
            _unpack_square(weights, n * size + at, size, unpacked, to)
            to += LANES * LANES  # places of 32 bits


@compiled()
def _scale(result, rows, scales):
    for row in range(rows):
        for n in range(len(scales)):
            result[row, n] *= scales[n]


@compiled()
def share(number, threads, outputs, rows):
    """A thread's tiles, numbered by outputs and then by rows, and how many have the same
    outputs."""
    blocks = -(-rows // TILE)
    count = -(-outputs // SPAN) * blocks
    return count * number // threads, count * (number + 1) // threads, blocks


@compiled()
def multiply_rows(number, threads, weights, scales, inputs, rows, tiles, out, added):
    """out[:rows] = inputs[:rows] @ weights.T * scales; `added`: to what was there."""
    outputs, before = out.shape[1], -1
    begin, end, blocks = share(number, threads, outputs, rows)
    for tile in range(begin, end):
        start, first = tile // blocks * SPAN, tile % blocks * TILE
        last, stop = min(first + TILE, rows), min(start + SPAN, outputs)
        multiply_tile(
            weights, scales, inputs, first, last, start, start != before, number, 0, tiles
        )
        before = start
        _place(tiles.results[number, 0], out, first, last, start, stop, added)


@compiled()
def _place(result, out, first, last, start, stop, added):
    for row in range(last - first):
        for n in range(stop - start):
            before = out[first + row, start + n] if added else float32(0)
            out[first + row, start + n] = before + result[row, n]


@compiled()
def _multiply(number, threads, weights, scales, x, rows, inputs, tiles, out, sync):
    for row in range(rows * number // threads, rows * (number + 1) // threads):
        keep(x, row, 0, x.shape[1], inputs)
    barrier(sync, threads)
    multiply_rows(number, threads, weights, scales, inputs, rows, tiles, out, False)
    barrier(sync, threads)


_multiply_layer = Entry(_multiply)


class RowProducts:
    """Products of single layers, on all threads of a team."""

    def __init__(self, team: ThreadTeam) -> None:
        self._team, self._sync = team, new_sync()
        self._memory: dict[tuple[int, int], tuple[Inputs, Tiles]] = {}  # by inputs and bits

    def __call__(self, rows: Tensor, weight: Tensor, scales: Tensor) -> Tensor:
        """rows [M, inputs], weight [outputs, inputs] in 8 bits or panels of 4 -> [M, outputs]."""
        out = torch.empty(len(rows), len(scales))
        bits, factors = 4 if weight.dtype == torch.uint8 else 8, array(scales.float())
        inputs, tiles = self._allocated(rows.shape[1], bits)
        for x, own in zip(rows.float().split(AT_ONCE), out.split(AT_ONCE), strict=True):
            given = array(weight), factors, array(x.contiguous()), len(x), inputs, tiles, array(own)
            self._team.run(_multiply_layer(*given, self._sync), self._team.size)
        return out

    def _allocated(self, inputs: int, bits: int) -> tuple[Inputs, Tiles]:
        if (inputs, bits) not in self._memory:
            self._memory[inputs, bits] = (
                Inputs.allocate(AT_ONCE, inputs, bits),
                Tiles.allocate(self._team.size, inputs, bits),
            )
        return self._memory[inputs, bits]
