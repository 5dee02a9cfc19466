"""Host copies of a talker's row positions and candidate counts, so that no step reads them from
the device.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from engine.errors import StepFailed
from engine.plan import ResolvedSampling
from engine.worker.state.sampling import candidates

_ALL = 1 << 30  # ids to rank: the whole vocabulary


@dataclass(frozen=True)
class BatchBounds:
    """Bounds over a step's rows, known on the host; shapes depend on them."""

    positions: int  # above every row's position
    first: int | None  # candidates ranked for codebook 0
    rest: int | None  # and for codebooks 1–15

    def with_positions(self, positions: int) -> BatchBounds:
        """The same with another bound for positions."""
        return replace(self, positions=positions)


class RowMetadata:
    def __init__(self, rows: int) -> None:
        self._positions = np.zeros(rows, np.int64)  # of the row's next input; 0: a free row
        self._ranked = np.ones((rows, 2), np.int64)  # for codebook 0, for codebooks 1–15

    def open(self, row: int, positions: int, draw: ResolvedSampling) -> None:
        self._positions[row] = positions
        drawn = draw.greedy, draw.top_k
        rest = draw.predictor_greedy, draw.predictor_top_k
        self._ranked[row] = [candidates([choice]) or _ALL for choice in (drawn, rest)]

    def close(self, row: int) -> None:
        self._positions[row] = 0

    def bounds(self, rows: Sequence[int]) -> BatchBounds:
        """The bounds of the next frame of these rows."""
        index = np.fromiter(rows, np.int64, len(rows))
        held = self._positions[index]
        if not held.all():
            raise StepFailed(
                "A slot without a sequence cannot speak. This is a fault of the engine."
            )
        first, rest = self._ranked[index].max(0).tolist()
        return BatchBounds(int(held.max()) + 1, _count(first), _count(rest))

    def step(self, rows: Sequence[int]) -> None:
        """These rows advance by a frame."""
        self._positions[np.fromiter(rows, np.int64, len(rows))] += 1


def _count(ranked: int) -> int | None:
    return None if ranked == _ALL else ranked
