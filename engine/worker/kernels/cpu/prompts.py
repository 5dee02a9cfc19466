"""Products of many rows with weights of 8 bits, where the processor multiplies bfloat16.

Some outputs' weights at a time become bfloat16, which holds them exactly, and meet all rows. Each
result is one sum in one order, whatever other rows there are and however many threads.
"""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from engine.worker.kernels.cpu.compiler import compiled
from engine.worker.kernels.cpu.layers import array
from engine.worker.kernels.cpu.threads import ThreadTeam, barrier
from engine.worker.kernels.cpu.tiles import LANES, ROWS, STORE, VECTORS, product

SPAN = VECTORS * LANES
_LEVELS = torch.arange(-128, 128).bfloat16().view(torch.int16).numpy()  # as bfloat16


@compiled()
def _unpack(weights, first, last, levels, panel):
    """Weights [outputs, inputs] of some outputs as `product` reads them."""
    inputs = weights.shape[1]
    for n in range(first, last):
        start = (n - first) // LANES * inputs * LANES + (n - first) % LANES * 2
        own = weights[n]
        for pair in range(inputs // 2):
            at = start + pair * 2 * LANES
            panel[at] = levels[own[2 * pair] + 128]
            panel[at + 1] = levels[own[2 * pair + 1] + 128]


@compiled()
def _multiply(number, threads, weights, scales, x, levels, panels, constants, out, counter):
    outputs, inputs = weights.shape
    rows, panel = len(x) // inputs, panels[number]
    groups = -(-outputs // SPAN)
    for group in range(groups * number // threads, groups * (number + 1) // threads):
        first, last = group * SPAN, min(group * SPAN + SPAN, outputs)
        _unpack(weights, first, last, levels, panel)
        for row in range(0, rows, ROWS):
            count = min(ROWS, rows - row)
            product(
                panel, x, constants, out, out, -(first // LANES) * inputs * LANES, row * inputs,
                inputs, 1, 0, -first, outputs, first, count, row * outputs, row * outputs, STORE,
            )  # fmt: skip
            for each in range(row, row + count):
                for n in range(first, last):
                    out[each * outputs + n] *= scales[n]
    barrier(counter, threads)


class RowProducts:
    """The products of a model's layers, on all threads of a team."""

    def __init__(self, team: ThreadTeam) -> None:
        self._team = team
        self._panels = np.zeros((team.size, 0), np.int16)
        self._counter = np.zeros(1, np.int64)

    def __call__(self, rows: Tensor, weight: Tensor, scales: Tensor) -> Tensor:
        """rows [M, inputs] in bfloat16, weight [outputs, inputs] in 8 bits -> [M, outputs]."""
        size = SPAN * rows.shape[1]
        if self._panels.shape[1] < size:
            self._panels = np.zeros((self._team.size, size), np.int16)
        out = torch.empty(len(rows), len(weight))
        flat = rows.contiguous().view(torch.int16).flatten()
        given = (
            array(weight), array(scales.float()), array(flat), _LEVELS, self._panels,
            np.zeros(SPAN, np.float32), array(out.flatten()), self._counter,
        )  # fmt: skip

        def kernel(number: int, threads: int) -> None:
            _multiply(number, threads, *given)

        self._team.run(kernel, self._team.size)
        return out
