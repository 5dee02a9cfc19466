"""A stack of convolutions over time, in NumPy. Knows no sound."""

from __future__ import annotations

import numpy as np

from studio.watermark.perth_weights import Floats, Layer, Net

LEAK = 0.01  # of what is below zero
ROWS, COLUMNS = 16, 64  # with 256 between them, the largest product that OpenBLAS does alone


def run(net: Net, values: Floats) -> Floats:
    """[moments, in] to [moments, out]."""
    for layer in net[:-1]:
        values = _bent(_convolved(layer, values))
    return _convolved(net[-1], values)


def _convolved(layer: Layer, values: Floats) -> Floats:
    half = len(layer.taps) // 2
    padded = np.pad(values, ((half, half), (0, 0)))
    total = np.tile(layer.bias, (len(values), 1))
    for at, tap in enumerate(layer.taps):
        total += _product(padded[at : at + len(values)], tap)
    return total


def _product(values: Floats, tap: Floats) -> Floats:
    """[moments, in] by [in, out], in pieces.

    Larger products are spread over all cores and wait for each; beside an engine, which wants
    them too, that took up to forty times as long as one core alone.
    """
    width, outs = tap.shape
    rows = np.pad(values, ((0, -len(values) % ROWS), (0, 0))).reshape(-1, 1, ROWS, width)
    columns = tap.reshape(width, -1, min(COLUMNS, outs)).transpose(1, 0, 2)
    pieces = rows @ columns  # [pieces of rows, pieces of columns, ROWS, COLUMNS]
    return pieces.transpose(0, 2, 1, 3).reshape(-1, outs)[: len(values)]


def _bent(values: Floats) -> Floats:
    return np.asarray(np.maximum(values, LEAK * values), np.float32)
