"""A stack of convolutions over time, in NumPy."""

from __future__ import annotations

import numpy as np

from studio.watermark.perth_weights import Floats, Layer, Net

LEAK = 0.01  # slope of the leaky ReLU
ROWS, COLUMNS = 16, 64  # larger products would use several threads of OpenBLAS


def run(net: Net, values: Floats) -> Floats:
    """[frames, in] to [frames, out]."""
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
    """[frames, in] by [in, out], in pieces.

    OpenBLAS spreads larger products over all cores and waits for each; with an engine on the same
    cores that took up to forty times as long as one thread.
    """
    width, outs = tap.shape
    rows = np.pad(values, ((0, -len(values) % ROWS), (0, 0))).reshape(-1, 1, ROWS, width)
    columns = tap.reshape(width, -1, min(COLUMNS, outs)).transpose(1, 0, 2)
    pieces = rows @ columns  # [pieces of rows, pieces of columns, ROWS, COLUMNS]
    return pieces.transpose(0, 2, 1, 3).reshape(-1, outs)[: len(values)]


def _bent(values: Floats) -> Floats:
    return np.asarray(np.maximum(values, LEAK * values), np.float32)
