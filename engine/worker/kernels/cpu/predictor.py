"""The predictor's codebooks 1–15 of a frame, sampled in one call of numba's kernel.

Codes are drawn by the rules of `engine.worker.state.sampling`, with each row's own `top_k`.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
import torch
from numba import float32
from numpy.typing import NDArray
from torch import Tensor, nn

from engine.model.layers import rotary_embedding
from engine.model.predictor import Predictor
from engine.worker.kernels.cpu.compiler import compiled
from engine.worker.kernels.cpu.dots import as_float
from engine.worker.kernels.cpu.entries import Entry, fixed
from engine.worker.kernels.cpu.layers import (
    Floats,
    Scratch,
    array,
    layer_weights,
    pack,
    product,
    run_layers,
    side_by_side,
    span,
)
from engine.worker.kernels.cpu.memory import zeros
from engine.worker.kernels.cpu.threads import ThreadTeam, barrier
from engine.worker.state.sampling import SamplingTensors


class Books(NamedTuple):
    """Tables of each codebook, and the projection to the predictor's width."""

    heads: NDArray[Any]  # of each book, V outputs
    head_scales: Floats
    tables: NDArray[Any]  # [books, V, talker width]
    projection: NDArray[Any]  # of one layer, or of none
    projection_scales: Floats
    projection_bias: Floats  # [width]


class Frame(NamedTuple):
    """A frame's inputs and results for some rows."""

    hidden: Floats  # [R, talker width]
    first: Floats  # [R, talker width]
    sampling: Floats  # [R, 4]: the columns of SamplingTensors
    uniforms: Floats  # [R, books]
    codes: NDArray[np.int64]  # [R, books]
    total: Floats  # [R, talker width]


@compiled()
def _rank(logits, count, best, ids):
    """The `count` highest logits, in descending order, into best and ids."""
    held = 0
    for number in range(len(logits)):
        value = logits[number]
        if held == count and not value > best[held - 1]:
            continue
        place = min(held, count - 1)
        while place > 0 and best[place - 1] < value:
            best[place], ids[place] = best[place - 1], ids[place - 1]
            place -= 1
        best[place], ids[place] = value, number
        held = min(held + 1, count)


@compiled()
def pick(logits, sampling, uniform, best, ids):
    """Sample an id; best and ids: memory for the ranked ones."""
    inverse_temperature, top_k, top_p, mask = sampling[0], sampling[1], sampling[2], sampling[3]
    count = len(logits)
    if mask == 0:
        count = 1
    elif top_k < count:
        count = int(top_k)
    _rank(logits, count, best, ids)
    highest, total = best[0], float32(0)
    for place in range(count):
        best[place] = math.exp((best[place] - highest) * inverse_temperature)
        total += best[place]
    before, kept = float32(0), 0  # those that may be sampled are a prefix
    while kept < count and best[kept] > 0 and before < top_p:
        before += best[kept] / total
        kept += 1
    target, sums, place = uniform * before, float32(0), 0
    while place < kept:
        sums += best[place] / total
        if sums > target:
            break
        place += 1
    return ids[min(place, kept - 1)]


@compiled()
def predict(
    number,
    threads,
    weights,
    books,
    cos,
    sin,
    frame,
    keys,
    values,
    index,
    positions,
    inputs,
    logits,
    best,
    ids,
    scratch,
):
    """index counts the rows; positions [2 * R], inputs [2 * R, talker width], logits [R, V], best
    and ids [threads, V] are memory."""
    rows, size = len(frame.hidden), logits.shape[1]
    width, normed = scratch.x.shape[1], scratch.normed[number]
    for book in range(len(books.heads)):
        per_row = 2 if book == 0 else 1
        # the embedding of the code before this one
        for row in range(number, rows, threads):
            if book == 0:
                for i in range(inputs.shape[1]):
                    inputs[2 * row, i] = frame.hidden[row, i]
                    inputs[2 * row + 1, i] = frame.first[row, i]
                    frame.total[row, i] = frame.first[row, i]
            else:
                code = pick(
                    logits[row], frame.sampling[row], frame.uniforms[row, book - 1],
                    best[number], ids[number],
                )  # fmt: skip
                frame.codes[row, book - 1] = code
                for i in range(inputs.shape[1]):
                    inputs[row, i] = as_float(books.tables[book - 1, code, i])
                    frame.total[row, i] += inputs[row, i]
        count = rows * per_row
        if number == 0:
            for row in range(count):
                positions[row] = row % 2 if book == 0 else book + 1
        barrier(scratch.sync, threads)
        start, stop = span(width, number, threads)
        if len(books.projection):
            product(
                books.projection[0], books.projection_scales[0], inputs, count, start, stop,
                scratch.x,
            )  # fmt: skip
        for row in range(count):
            for n in range(start, stop):
                if len(books.projection):
                    scratch.x[row, n] += books.projection_bias[n]
                else:
                    scratch.x[row, n] = inputs[row, n]
        barrier(scratch.sync, threads)
        run_layers(
            number, threads, weights, cos, sin, index, positions, rows, per_row, keys, values,
            scratch,
        )  # fmt: skip
        start, stop = span(size, number, threads)
        for row in range(rows if per_row > 1 else 0):
            for i in range(width):  # the last of each row's positions
                normed[row, i] = normed[row * per_row + per_row - 1, i]
        product(books.heads[book], books.head_scales[book], normed, rows, start, stop, logits)
        barrier(scratch.sync, threads)
    book = len(books.heads)
    for row in range(number, rows, threads):
        code = pick(
            logits[row], frame.sampling[row], frame.uniforms[row, book - 1], best[number],
            ids[number],
        )  # fmt: skip
        frame.codes[row, book - 1] = code
        for i in range(inputs.shape[1]):
            frame.total[row, i] += as_float(books.tables[book - 1, code, i])
    barrier(scratch.sync, threads)


_predict = Entry(predict)


class CpuPredictor:
    """Frames of up to `rows` rows."""

    def __init__(self, predictor: Predictor, rows: int, team: ThreadTeam) -> None:
        config, count = predictor.model.config, len(predictor.lm_head)
        tables = _pack_tables(predictor)
        projection = predictor.small_to_mtp_projection
        scales = zeros((0, 0), np.float32)
        if isinstance(projection, nn.Identity):
            matrix = zeros((0, 0, 0, 0), np.float32), scales, scales.reshape(-1)
        else:
            matrix = *pack([projection]), projection.bias.detach().numpy()
        books = Books(*pack(list(predictor.lm_head)), tables, *matrix)
        self._team, self.threads = team, team.size
        weights = layer_weights(predictor.model)
        at = torch.arange(count + 1)[None]
        rotary = rotary_embedding(at, config.head_dim, config.rope_theta)
        self._fixed = fixed(weights, books, *(array(part[0, 0]) for part in rotary))
        size = (config.layers, rows, config.kv_heads, count + 1, config.head_dim)
        vocabulary = tables.shape[1]
        self._memory = fixed(
            zeros(size, np.float32),
            zeros(size, np.float32),
            np.arange(rows),
            zeros(2 * rows, np.int64),
            zeros((2 * rows, tables.shape[2]), np.float32),
            zeros((rows, vocabulary), np.float32),
            zeros((team.size, vocabulary), np.float32),
            zeros((team.size, vocabulary), np.int64),
            Scratch.allocate(config, 2 * rows, count + 1, team.size),
        )

    def __call__(
        self,
        hidden: Tensor,
        first: Tensor,
        sampling: SamplingTensors,
        uniforms: Tensor,
        count: int | None,
    ) -> tuple[Tensor, Tensor]:
        """As the plain form; `count` is not needed: each row says itself how many it ranks."""
        codes, total = torch.empty(uniforms.shape, dtype=torch.long), torch.empty_like(first)
        given = (hidden, first, torch.cat(sampling.tensors, 1), uniforms.contiguous(), codes, total)
        frame = Frame(*map(array, given))
        kernel = _predict(*self._fixed, frame, *self._memory)
        self._team.run(kernel, self.threads)
        return codes, total


def _pack_tables(predictor: Predictor) -> NDArray[Any]:
    """The codebooks' embeddings side by side, as they are or as bits of bfloat16; the network keeps
    views of them."""
    given = [each.weight.detach() for each in predictor.model.codec_embedding]
    tables = side_by_side(given)
    if tables is None:
        tables = torch.stack(given)
        for each, table in zip(predictor.model.codec_embedding, tables, strict=True):
            each.weight = nn.Parameter(table, requires_grad=False)
    return array(tables.view(torch.int16) if tables.dtype == torch.bfloat16 else tables)
