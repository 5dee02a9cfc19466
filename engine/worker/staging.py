"""Host numbers as tables, for work on the device that reads nothing else: one upload each.

Where recordings can be made the work is one replay, by the table's size; the rows that are
too many name the spare row of the slots, which belongs to nobody.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from engine.worker.cuda_graphs import GraphCache, Record

Numbers: TypeAlias = npt.NDArray[np.int64]


def place(kept: Tensor, numbers: npt.NDArray[Any]) -> None:
    """Host numbers into a tensor that stays, without waiting for the device."""
    source = torch.from_numpy(numbers)
    kept.copy_(source.pin_memory() if kept.is_cuda else source, non_blocking=True)


class StagingBuffer:
    """One kind of work, on tables [rows, columns] whose first column is a row of the slots."""

    def __init__(
        self,
        work: Callable[[Tensor], None],
        columns: int,
        sizes: Sequence[int],
        spare: int,
        device: torch.device,
        record: Record | None,
    ) -> None:
        self._work, self._sizes, self._spare = work, sizes, spare
        self._kept = torch.zeros(sizes[-1], columns, dtype=torch.long, device=device)
        self._replays = GraphCache(record) if record else None

    def __call__(self, table: Numbers) -> None:
        if self._replays is None:
            self._work(torch.from_numpy(table).to(self._kept.device))
            return
        most = self._sizes[-1]
        for first in range(0, len(table), most):
            self._replay(table[first : first + most], self._replays)

    def warm(self) -> None:
        """Record every size, the largest first."""
        if self._replays is not None:
            for size in reversed(self._sizes):
                self._replay(self._idle(size), self._replays)

    def _replay(self, table: Numbers, replays: GraphCache) -> None:
        size = self._sizes[bisect_left(self._sizes, len(table))]
        padded, kept = self._idle(size), self._kept[:size]
        padded[: len(table)] = table
        place(kept, padded)
        replays.run(size, lambda: self._work(kept))

    def _idle(self, size: int) -> Numbers:
        table = np.zeros((size, self._kept.shape[1]), np.int64)
        table[:, 0] = self._spare
        return table
