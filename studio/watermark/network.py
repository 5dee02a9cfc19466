"""A stack of convolutions over time, in NumPy. Knows no sound."""

from __future__ import annotations

import numpy as np

from studio.watermark.weights import Floats, Layer, Net

LEAK = 0.01  # of what is below zero


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
        total += padded[at : at + len(values)] @ tap
    return total


def _bent(values: Floats) -> Floats:
    return np.asarray(np.maximum(values, LEAK * values), np.float32)
