"""A transformer's layers for many new positions of some slots, as one kernel on some threads.

Threads share each product by outputs and rows, and what stands between two products by rows, or by
heads and positions. A row's result depends neither on other rows, nor on the threads, nor on which
of the positions before it were computed in the same call. Knows no prompts and no codes.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import NamedTuple, TypeAlias

import numpy as np
import torch
from numba import float32, int64
from numpy.typing import NDArray
from torch import Tensor

from engine.model.configs import TransformerConfig
from engine.worker.kernels.cpu.compiler import compiled
from engine.worker.kernels.cpu.dots import sum_of
from engine.worker.kernels.cpu.entries import Entry, fixed
from engine.worker.kernels.cpu.layers import (
    Floats,
    Weights,
    array,
    exponential,
    gate,
    highest,
    norm,
    rotate,
)
from engine.worker.kernels.cpu.llvm import LANES
from engine.worker.kernels.cpu.memory import sparse, zeros
from engine.worker.kernels.cpu.row_products import (
    AT_ONCE,
    SPAN,
    TILE,
    Inputs,
    RowProducts,
    Tiles,
    bits_of,
    keep,
    multiply_rows,
    multiply_tile,
    share,
)
from engine.worker.kernels.cpu.threads import ThreadTeam, barrier, new_sync
from engine.worker.kernels.cpu.tiles import STORE, VECTORS, product, product_of
from engine.worker.state.kv_cache import KeyValueCache

QUERIES = 8  # of a head, that a thread takes together
Piece: TypeAlias = tuple[int, int, int]  # slot, first position, positions


class Memory(NamedTuple):
    """Memory of the kernel; its threads share what is not by thread."""

    x: Floats  # [rows, width]
    normed: Floats  # [rows, width]
    qkv: Floats  # [rows, outputs]
    attended: Floats  # [rows, heads * head_dim]
    inner: Floats  # [rows, intermediate]
    narrow: Inputs  # of products from `normed`
    mixed: Inputs  # from `attended`
    wide: Inputs  # from `inner`
    tiles: Tiles  # by thread
    keys: Floats  # [kv_heads, positions / LANES, head_dim, LANES] of one layer and slot
    values: Floats  # [kv_heads, head_dim / LANES, positions, LANES]
    scores: Floats  # [threads, QUERIES, positions]
    own: Floats  # [threads, head_dim]
    sync: NDArray[np.int64]  # of the barrier

    @classmethod
    def allocate(cls, config: TransformerConfig, positions: int, threads: int, bits: int) -> Memory:
        heads, kept = config.heads * config.head_dim, config.kv_heads * config.head_dim
        width, inner, rows = config.hidden_size, config.intermediate_size, AT_ONCE
        sizes = width, width, heads + 2 * kept, heads, inner
        positions = -(-positions // SPAN) * SPAN
        x, normed, qkv, attended, gated = (zeros((rows, size), np.float32) for size in sizes)
        return cls(
            x,
            normed,
            qkv,
            attended,
            gated,
            Inputs.allocate(rows, width, bits),
            Inputs.allocate(rows, heads, bits),
            Inputs.allocate(rows, inner, bits),
            Tiles.allocate(threads, max(width, heads, inner), bits),
            sparse(kept * positions, np.float32),
            sparse(kept * positions, np.float32),
            zeros((threads, QUERIES, positions), np.float32),
            zeros((threads, config.head_dim), np.float32),
            new_sync(),
        )


@compiled()
def _norm_rows(number, threads, weight, eps, rows, memory):
    for row in range(rows * number // threads, rows * (number + 1) // threads):
        norm(memory.x[row], weight, eps, memory.normed[row])
        keep(memory.normed, row, 0, memory.x.shape[1], memory.narrow)


@compiled()
def _gate_rows(number, threads, weights, scales, rows, memory):
    """inner[:rows] = silu(gate) * up, as inputs."""
    inner, tiles, before = memory.inner, memory.tiles, -1
    middle = inner.shape[1]
    begin, end, blocks = share(number, threads, middle, rows)
    for tile in range(begin, end):
        start, first = tile // blocks * SPAN, tile % blocks * TILE
        last = min(first + TILE, rows)
        for which in range(2):
            multiply_tile(
                weights, scales, memory.narrow, first, last, start + which * middle,
                start != before, number, which, tiles,
            )  # fmt: skip
        before = start
        for row in range(first, last):
            gates, ups = (
                tiles.results[number, 0, row - first],
                tiles.results[number, 1, row - first],
            )
            gate(gates, ups, inner[row, start : start + SPAN])
            keep(inner, row, start, start + SPAN, memory.wide)


@compiled()
def _store_keys(number, threads, weights, layer, cos, sin, piece, first, keys, values, memory):
    """Norm and rotate queries, keys and values of a piece whose rows begin with `first`; store keys
    and values, and lay all of the slot's out for products."""
    slot, start, count = piece
    dim, kept = keys.shape[4], keys.shape[2]
    heads, qkv, own = memory.attended.shape[1] // dim, memory.qkv, memory.own[number]
    q_norm, k_norm = weights.head_norms[layer, 0], weights.head_norms[layer, 1]
    room, shared = memory.scores.shape[2], heads // kept
    factor = float32(1) / math.sqrt(float32(dim))
    blocks = -(-(start + count) // LANES)
    for unit in range(number, blocks * kept, threads):
        block, head = unit // kept, unit % kept
        for at in range(block * LANES, min(block * LANES + LANES, start + count)):
            key, value = keys[layer, slot, head, at], values[layer, slot, head, at]
            if at >= start:
                row = qkv[first + at - start]
                place = (heads + head) * dim
                norm(row[place : place + dim], k_norm, weights.eps, own)
                rotate(own, cos[at], sin[at], key, float32(1))
                place += kept * dim
                for i in range(dim):
                    value[i] = row[place + i]
                for each in range(head * shared, (head + 1) * shared):
                    query = row[each * dim : (each + 1) * dim]
                    norm(query, q_norm, weights.eps, own)
                    rotate(own, cos[at], sin[at], query, factor)
            place = head * dim * room + block * dim * LANES + at % LANES
            for i in range(dim):
                memory.keys[place + i * LANES] = key[i]
            for i in range(0, dim, LANES):
                place = (head * dim + i) * room + at * LANES
                for lane in range(LANES):
                    memory.values[place + lane] = value[i + lane]


@compiled()
def _softmax(scores, seen, all_):
    """Of the first scores; the others become zero."""
    most = highest(scores, seen)
    for past in range(seen):
        scores[past] = exponential(scores[past] - most)
    inverse = float32(1) / sum_of(scores[:seen])
    for past in range(seen):
        scores[past] *= inverse
    for past in range(seen, all_):
        scores[past] = 0


@compiled()
def _attend_rows(number, threads, start, count, first, dim, kept, memory):
    """The attention of a piece, as inputs; see `_store_keys`."""
    scores, qkv, attended = memory.scores[number], memory.qkv, memory.attended
    room, biases = scores.shape[1], memory.tiles.biases
    outputs, width = attended.shape[1], qkv.shape[1]
    shared = outputs // dim // kept
    for unit in range(number, -(-count // QUERIES) * kept, threads):
        begin, head = unit // kept * QUERIES, unit % kept
        rows = min(QUERIES, count - begin)
        reach = -(-(start + begin + rows) // SPAN) * SPAN  # above the last row's position
        for each in range(head * shared, (head + 1) * shared):
            at, row = head * dim * room, first + begin
            for n in range(0, reach, VECTORS * LANES):
                product(
                    memory.keys, qkv, biases, scores, scores, at, row * width + each * dim, dim,
                    width, 1, 0, -n, room, n, rows, 0, 0, STORE,
                )  # fmt: skip
            for own in range(rows):
                _softmax(scores[own], start + begin + own + 1, reach)
            for n in range(0, dim, VECTORS * LANES):
                product_of(
                    memory.values, scores, biases, attended, attended, at + n * room,
                    room * LANES, 0, reach, room, 1, 0, 0, outputs,
                    min(VECTORS, (dim - n) // LANES), rows, 0,
                    row * outputs + each * dim + n, STORE,
                )  # fmt: skip
        for row in range(first + begin, first + begin + rows):
            keep(attended, row, head * shared * dim, (head + 1) * shared * dim, memory.mixed)


@compiled()
def _run(number, threads, weights, cos, sin, pieces, keys, values, memory):
    """memory.x -> normed hidden states in memory.normed. pieces [pieces, 3]: see `Piece`."""
    sync, tiles, rows = memory.sync, memory.tiles, int64(0)  # as 0 all would be compiled twice
    for piece in range(len(pieces)):
        rows += pieces[piece, 2]
    for layer in range(len(weights.qkv)):
        _norm_rows(number, threads, weights.norms[layer, 0], weights.eps, rows, memory)
        barrier(sync, threads)
        multiply_rows(
            number, threads, weights.qkv[layer], weights.qkv_scales[layer], memory.narrow, rows,
            tiles, memory.qkv, False,
        )  # fmt: skip
        barrier(sync, threads)
        first = int64(0)
        for piece in range(len(pieces)):
            slot, start, count = pieces[piece]
            _store_keys(
                number, threads, weights, layer, cos, sin, (slot, start, count), first, keys,
                values, memory,
            )  # fmt: skip
            barrier(sync, threads)
            _attend_rows(number, threads, start, count, first, keys.shape[4], keys.shape[2], memory)
            barrier(sync, threads)
            first += count
        multiply_rows(
            number, threads, weights.out[layer], weights.out_scales[layer], memory.mixed, rows,
            tiles, memory.x, True,
        )  # fmt: skip
        barrier(sync, threads)
        _norm_rows(number, threads, weights.norms[layer, 1], weights.eps, rows, memory)
        barrier(sync, threads)
        _gate_rows(
            number, threads, weights.gate_up[layer], weights.gate_up_scales[layer], rows, memory
        )
        barrier(sync, threads)
        multiply_rows(
            number, threads, weights.down[layer], weights.down_scales[layer], memory.wide, rows,
            tiles, memory.x, True,
        )  # fmt: skip
        barrier(sync, threads)
    for row in range(number, rows, threads):
        norm(memory.x[row], weights.last_norm, weights.eps, memory.normed[row])
    barrier(sync, threads)


_run_rows = Entry(_run)


class CpuPrompts:
    """The layers of a talker over its slots."""

    def __init__(
        self,
        config: TransformerConfig,
        weights: Weights,
        rotary: tuple[Floats, Floats],
        cache: KeyValueCache,
        team: ThreadTeam,
    ) -> None:
        bits = bits_of(weights.qkv)
        self.products = RowProducts(team)
        self._team, self.threads = team, team.size
        self._fixed = fixed(weights, *rotary)
        self._cache = fixed(array(cache.keys), array(cache.values))
        self._memory = Memory.allocate(config, cache.keys.shape[3], team.size, bits)

    def __call__(self, x: Tensor, pieces: Sequence[Piece]) -> Tensor:
        """Inputs [rows, width] of all pieces, one after the other -> hidden [rows, width]."""
        hidden, first = torch.empty_like(x), 0
        for some in _batches(pieces):
            table = np.array(some, np.int64)
            last = first + int(table[:, 2].sum())
            self._memory.x[: last - first] = array(x[first:last])
            kernel = _run_rows(*self._fixed, table, *self._cache, self._memory)
            self._team.run(kernel, self.threads)
            hidden[first:last] = torch.from_numpy(self._memory.normed[: last - first])
            first = last
        return hidden


def _batches(pieces: Sequence[Piece]) -> Iterator[list[Piece]]:
    """Pieces of at most AT_ONCE positions in all; a piece may be cut."""
    some: list[Piece] = []
    room = AT_ONCE
    for slot, start, count in pieces:
        stop = start + count
        while start < stop:
            taken = min(room, stop - start)
            some.append((slot, start, taken))
            start, room = start + taken, room - taken
            if not room:
                yield some
                some, room = [], AT_ONCE
    if some:
        yield some
