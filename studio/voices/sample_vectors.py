"""Recordings of one person as speaker vectors: how alike they are, and which does not fit.

Knows vectors only; whoever makes them has asked for consent.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np

from engine import Vector

MOST: Final = 10  # recordings of one person
# Cosines below the median at which a recording counts as another voice, or one that was recorded
# quite differently. On Timbre Mini one person's differ by up to 0.02, a stranger's by 0.25 to 0.35.
FAR: Final = 0.12


def similarities(vectors: Sequence[Vector]) -> list[float]:
    """The cosine of each vector with the mean of the others."""
    every = np.stack(vectors).astype(np.float64)
    units = every / np.maximum(np.linalg.norm(every, axis=1, keepdims=True), 1e-12)
    rest = units.sum(0) - units
    return [
        float(vector @ others / max(float(np.linalg.norm(others)), 1e-12))
        for vector, others in zip(units, rest, strict=True)
    ]


def outliers(found: Sequence[float]) -> set[int]:
    """The places of those that are far from the others; of two nobody can tell which it is."""
    if len(found) < 3:
        return set()
    middle = float(np.median(found))
    return {place for place, each in enumerate(found) if middle - each > FAR}


def mean_vector(vectors: Sequence[Vector]) -> Vector:
    """Their direction on average, with their length on average."""
    every = np.stack(vectors).astype(np.float64)
    mean = every.mean(0)
    length = float(np.linalg.norm(every, axis=1).mean())
    scale = length / max(float(np.linalg.norm(mean)), 1e-12)
    return np.asarray(mean * scale, np.float32)
