"""Speaker vectors in two dimensions: the plane in which some reference voices differ most.

The plane is that of the reference alone, so a voice stays where it is while others come and go.
Pure numpy; knows no names and no files.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from engine import Vector

Places: TypeAlias = NDArray[np.float64]  # [voices, 2]
LEAST = 1e-6  # of the first axis's spread; a second one below it is noise


@dataclass(frozen=True, eq=False)
class VoicePlane:
    """A point and two axes in the space of speaker vectors."""

    middle: NDArray[np.float64]  # [width]
    axes: NDArray[np.float64]  # [2, width], orthonormal; zeros where the reference has no spread

    def places(self, vectors: Sequence[Vector]) -> Places:
        rows = np.asarray(vectors, np.float64).reshape(len(vectors), len(self.middle))
        return (rows - self.middle) @ self.axes.T

    def shifts(self, shifts: Sequence[Vector]) -> Places:
        """Where shifts of voices point."""
        rows = np.asarray(shifts, np.float64).reshape(len(shifts), len(self.middle))
        return rows @ self.axes.T


def voice_plane(reference: Sequence[Vector]) -> VoicePlane:
    """The plane of the two principal components. Their signs are those of their largest numbers,
    so that the same voices give the same map."""
    rows = np.asarray(reference, np.float64)  # [voices, width]
    middle = rows.mean(0)
    _, spread, components = np.linalg.svd(rows - middle, full_matrices=False)
    axes = np.zeros((2, rows.shape[1]))
    for axis, (size, component) in enumerate(zip(spread[:2], components[:2], strict=True)):
        if size > LEAST * spread[0]:
            axes[axis] = component * np.sign(component[np.abs(component).argmax()])
    return VoicePlane(middle, axes)
