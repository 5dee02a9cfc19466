"""The codec's decoder as one kernel on some threads: codes -> samples.

A table says what runs one after the other, and each row of it where its weights are. Signals are
[samples, channels], where a sample fills whole vectors: numbers behind its channels are never read.
A layer's past stands in front of its input, so nothing is computed twice and nothing is moved but
what is kept for the next step. A row's samples depend neither on other rows, nor on the threads,
nor on how many frames a step has. Knows no networks.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from numba import float32, types
from numba.extending import intrinsic
from numpy.typing import NDArray

from engine.worker.kernels.cpu import amx, llvm
from engine.worker.kernels.cpu.compiler import compiled
from engine.worker.kernels.cpu.dots import as_float, dot, sum_of
from engine.worker.kernels.cpu.layers import Floats, exponential, norm, rotate
from engine.worker.kernels.cpu.llvm import LANES
from engine.worker.kernels.cpu.threads import barrier
from engine.worker.kernels.cpu.tiles import (
    ROWS,
    STORE,
    VECTORS,
    product,
)

# what a row of the table does
EMBED, TAKE, PRODUCT, NORM, ATTEND, GATE, GELU, DEPTHWISE, WAVE = range(9)
# its columns
(
    KIND, WEIGHTS, CONSTANTS, CHANNELS, STRIDE, TAPS, DILATION, WIDTH, LENGTH, FOLLOWS, TO_WIDE,
    FRONT, PAST, NEXT_FRONT, SUMS_FRONT, SUMS_PAST, INDEX, COLUMNS,
) = range(18)  # fmt: skip
SMALL_WEIGHTS = 75_000  # of a product: they stay in the second cache while all rows meet them
SPAN = VECTORS * LANES


class Network(NamedTuple):
    """What does not change: weights and constants of all layers, by the table's places."""

    table: NDArray[np.int64]  # [layers, COLUMNS]
    weights: NDArray[Any]  # float32, float16 in uint16, or bfloat16 in int16
    constants: Floats
    codes: NDArray[Any]  # [codebooks * size, width]: float32, or float16 in uint16
    heads: int
    eps: np.float32


class Memory(NamedTuple):
    """Memory of a step; its threads share what is not by thread."""

    # [2, size]: of the layer that runs, and of the next one; float32 or bfloat16
    inputs: NDArray[Any]
    sums: Floats  # what later layers add to
    wide: Floats  # products that no activation follows
    own: Floats  # [threads, positions + 2 * head_dim or channels]
    tiles: Floats  # [threads, amx.SIZE]; no threads: products do without
    sync: NDArray[np.int64]  # of the barrier


class State(NamedTuple):
    """The state of all rows, as CodecState has it."""

    frames: NDArray[np.int64]
    pasts: Floats
    ring: Floats


@intrinsic
def _narrow(typing: Any, value: Any, like: Any) -> Any:
    """A float32 as numbers like this one are stored."""

    def generate(context: Any, builder: Any, signature: Any, given: Any) -> Any:
        if signature.return_type == types.float32:
            return given[0]
        return builder.bitcast(builder.fptrunc(given[0], llvm.BFloat()), llvm.SHORT)

    return like(types.float32, like), generate


@compiled()
def _copy(samples, width, source, at, stride, target, to, target_stride):
    for sample in range(samples):
        for i in range(width):
            value = as_float(source[at + sample * stride + i])
            target[to + sample * target_stride + i] = _narrow(value, target[0])


@compiled()
def _multiply(number, threads, layer, network, rows, length, memory, x, out):
    width, channels = layer[WIDTH], layer[CHANNELS]
    tiled = amx.takes(network.weights, memory.tiles, channels)
    high = amx.ROWS if tiled else ROWS
    across, down = -(-width // SPAN), -(-length // high)
    numbers = width * channels * layer[TAPS]
    stride = layer[FRONT] + length * layer[STRIDE]
    sums_stride = layer[SUMS_FRONT] + length * width
    front = 0 if layer[TO_WIDE] else layer[NEXT_FRONT]
    out_stride = front + length * width
    units = across * down * rows
    for unit in range(units * number // threads, units * (number + 1) // threads):
        if numbers <= SMALL_WEIGHTS:
            first, place = unit % across, unit // across
        else:
            first, place = unit // (down * rows), unit % (down * rows)
        row, start = place // down, place % down * high
        count, x_at = min(high, length - start), row * stride + start * layer[STRIDE]
        sums_at = row * sums_stride + layer[SUMS_FRONT] + start * width
        out_at = row * out_stride + front + start * width
        if tiled:
            amx.product(
                network.weights, x, network.constants, memory.sums, out, memory.tiles[number],
                layer[WEIGHTS], x_at, channels, layer[STRIDE], layer[TAPS],
                layer[DILATION] * layer[STRIDE], layer[CONSTANTS], width, first * SPAN, count,
                sums_at, out_at, layer[FOLLOWS],
            )  # fmt: skip
        else:
            product(
                network.weights, x, network.constants, memory.sums, out, layer[WEIGHTS], x_at,
                channels, layer[STRIDE], layer[TAPS], layer[DILATION] * layer[STRIDE],
                layer[CONSTANTS], width, first * SPAN, count, sums_at, out_at, layer[FOLLOWS],
            )  # fmt: skip


@compiled()
def _embed(network, layer, codes, own, out):
    """Codes [rows, frames, books] -> sums of their entries."""
    width, books = network.codes.shape[1], codes.shape[2]
    size = len(network.codes) // books
    stride = layer[NEXT_FRONT] + codes.shape[1] * width
    total = own[:width]
    for row in range(len(codes)):
        for frame in range(codes.shape[1]):
            total[:] = 0
            for book in range(books):
                entry = book * size + min(codes[row, frame, book], size - 1)
                for i in range(width):
                    total[i] += as_float(network.codes[entry, i])
            at = row * stride + layer[NEXT_FRONT] + frame * width
            for i in range(width):
                out[at + i] = _narrow(total[i], out[0])


@compiled()
def _take(number, threads, layer, rows, length, x, out):
    """Convert the previous table's output to this table's type."""
    size, front = length * layer[WIDTH], layer[NEXT_FRONT]
    for row in range(rows):
        for i in range(size * number // threads, size * (number + 1) // threads):
            out[row * (front + size) + front + i] = _narrow(x[row * size + i], out[0])


@compiled()
def _norm(number, threads, layer, network, total, x, own, out):
    width, at = layer[WIDTH], layer[CONSTANTS]
    weight = network.constants[at : at + width]
    for row in range(number, total, threads):
        norm(x[row * width : (row + 1) * width], weight, network.eps, own)
        for i in range(width):
            out[row * width + i] = _narrow(own[i], out[0])


@compiled()
def _gelu(value):
    """GELU with erf by Abramowitz and Stegun 7.1.26, exact to seven digits."""
    x = abs(value) * float32(0.70710678)
    t = float32(1) / (float32(1) + float32(0.3275911) * x)
    power = ((float32(1.061405429) * t - float32(1.453152027)) * t + float32(1.421413741)) * t
    power = ((power - float32(0.284496736)) * t + float32(0.254829592)) * t
    tail = power * exponential(-x * x) * float32(0.5)
    return value * (float32(1) - tail if value > 0 else tail)


@compiled()
def _activate(number, threads, layer, total, x, out):
    width = layer[WIDTH]
    for row in range(number, total, threads):
        if layer[KIND] == GELU:
            for i in range(width):
                out[row * width + i] = _narrow(_gelu(x[row * width + i]), out[0])
            continue
        at = row * 2 * width
        for i in range(width):
            gate = x[at + i]
            value = gate / (float32(1) + exponential(-gate)) * x[at + width + i]
            out[row * width + i] = _narrow(value, out[0])


@compiled()
def _depthwise(number, threads, layer, network, rows, length, x, own, out):
    """A convolution of each channel by itself, and a layer norm."""
    width, taps, at = layer[WIDTH], layer[TAPS], layer[CONSTANTS]
    stride = layer[SUMS_FRONT] + length * width
    total, constants = own[:width], network.constants
    tail = constants[at + taps * width : at + (taps + 3) * width]  # bias, norm's weight and bias
    for place in range(number, rows * length, threads):
        row, step = place // length, place % length
        for i in range(width):
            total[i] = tail[i]
        for tap in range(taps):
            start = row * stride + (step + tap) * width
            for i in range(width):
                total[i] += constants[at + tap * width + i] * x[start + i]
        mean = sum_of(total) / float32(width)
        for i in range(width):
            total[i] -= mean
        spread = dot(total, total) / float32(width)
        scale = float32(1) / math.sqrt(spread + float32(1e-6))
        for i in range(width):
            value = total[i] * scale * tail[width + i] + tail[2 * width + i]
            out[place * width + i] = _narrow(value, out[0])


@compiled()
def _attend(number, threads, layer, heads, index, frames, length, cos, sin, ring, x, own, out):
    """Each new frame of a row over the window behind it; new keys and values go to the ring."""
    window, dim, at = ring.shape[1], ring.shape[5], layer[INDEX]
    width = heads * dim
    q, turned, scores = own[:dim], own[dim : 2 * dim], own[2 * dim :]
    for unit in range(number, len(index) * heads, threads):
        row, head = unit // heads, unit % heads
        slot = index[row]
        begun = frames[slot]
        kept = ring[slot]
        for step in range(length):
            start = (row * length + step) * 3 * width + head * dim
            key = x[start + width : start + width + dim]
            rotate(key, cos[row, step], sin[row, step], turned, float32(1))
            for i in range(dim):
                key[i] = turned[i]
        for step in range(length):
            start = (row * length + step) * 3 * width + head * dim
            query = x[start : start + dim]
            rotate(query, cos[row, step], sin[row, step], q, float32(1) / math.sqrt(float32(dim)))
            last = begun + step
            first = max(0, last - window)
            most = float32(-np.inf)
            for position in range(first, last + 1):
                if position < begun:
                    score = dot(q, kept[position % window, at, 0, head])
                else:
                    place = (row * length + position - begun) * 3 * width + head * dim + width
                    score = dot(q, x[place : place + dim])
                scores[position - first] = score
                most = max(most, score)
            for i in range(last + 1 - first):
                scores[i] = exponential(scores[i] - most)
            total = sum_of(scores[: last + 1 - first])
            for i in range(dim):
                turned[i] = 0
            for position in range(first, last + 1):
                score = scores[position - first] / total
                if position < begun:
                    value = kept[position % window, at, 1, head]
                    for i in range(dim):
                        turned[i] += score * value[i]
                else:
                    place = (row * length + position - begun) * 3 * width + head * dim + 2 * width
                    for i in range(dim):
                        turned[i] += score * x[place + i]
            place = (row * length + step) * width + head * dim
            for i in range(dim):
                out[place + i] = _narrow(turned[i], out[0])
        for step in range(max(0, length - window), length):
            start = (row * length + step) * 3 * width + head * dim
            entry = kept[(begun + step) % window, at]
            for i in range(dim):
                entry[0, head, i] = x[start + width + i]
                entry[1, head, i] = x[start + 2 * width + i]


@compiled()
def decode(number, threads, network, layers, state, index, codes, cos, sin, memory, wave, last):
    """The first `layers` of the table for rows `index` of a state, by codes [rows, frames, books].

    cos and sin [rows, frames, head_dim] of the frames' positions; wave [rows, samples].
    `last`: no other table follows, so the rows advance.
    """
    rows, frames = codes.shape[0], codes.shape[1]
    which, own = 0, memory.own[number]
    for at in range(layers):
        layer = network.table[at]
        kind, length = layer[KIND], layer[LENGTH] * frames
        total = rows * length
        x, out = memory.inputs[which], memory.inputs[1 - which]
        if number == 0 and layer[NEXT_FRONT] > 0:
            after, stride = network.table[at + 1], layer[NEXT_FRONT] + length * layer[WIDTH]
            for row in range(rows):
                _copy(after[FRONT] // after[STRIDE], after[CHANNELS], state.pasts[index[row]],
                      after[PAST], after[CHANNELS], out, row * stride, after[STRIDE])  # fmt: skip
        if kind == PRODUCT:
            if number == 0 and layer[FRONT] > 0:
                size = length * layer[STRIDE]
                for row in range(rows):
                    begin = row * (layer[FRONT] + size) + size
                    _copy(layer[FRONT] // layer[STRIDE], layer[CHANNELS], x, begin, layer[STRIDE],
                          state.pasts[index[row]], layer[PAST], layer[CHANNELS])  # fmt: skip
            if number == 0 and layer[SUMS_PAST] >= 0:
                stride, start = layer[SUMS_FRONT] + length * layer[WIDTH], layer[SUMS_PAST]
                for row in range(rows):
                    past = state.pasts[index[row]]
                    for i in range(layer[SUMS_FRONT]):
                        memory.sums[row * stride + i] = past[start + i]
            if layer[TO_WIDE]:
                _multiply(number, threads, layer, network, rows, length, memory, x, memory.wide)
            else:
                _multiply(number, threads, layer, network, rows, length, memory, x, out)
        elif kind == EMBED:
            if number == 0:
                _embed(network, layer, codes, own, out)
        elif kind == TAKE:
            _take(number, threads, layer, rows, length, memory.wide, out)
        elif kind == NORM:
            _norm(number, threads, layer, network, total, memory.sums, own, out)
        elif kind == ATTEND:
            _attend(number, threads, layer, network.heads, index, state.frames, length, cos, sin,
                    state.ring, memory.wide, own, out)  # fmt: skip
        elif kind == DEPTHWISE:
            if number == 0:
                size = length * layer[WIDTH]
                for row in range(rows):
                    past, start = state.pasts[index[row]], layer[PAST]
                    begin = row * (layer[SUMS_FRONT] + size) + size
                    for i in range(layer[SUMS_FRONT]):
                        past[start + i] = memory.sums[begin + i]
            _depthwise(number, threads, layer, network, rows, length, memory.sums, own, out)
        elif kind == WAVE:
            for place in range(total * number // threads, total * (number + 1) // threads):
                value = memory.wide[place * LANES]
                wave[place // length, place % length] = min(max(value, float32(-1)), float32(1))
        else:
            _activate(number, threads, layer, total, memory.wide, out)
        if kind != PRODUCT or (layer[FOLLOWS] & STORE and not layer[TO_WIDE]):
            which = 1 - which
        barrier(memory.sync, threads)
    if number == 0 and last:
        for row in range(rows):
            state.frames[index[row]] += frames
    barrier(memory.sync, threads)
