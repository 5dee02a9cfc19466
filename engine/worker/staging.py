"""Uploads tables of host numbers in one transfer for device work that reads only them.

With CUDA graphs the work is one replay per bucket of table rows; padding rows of a table refer to
the slots' padding row.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from engine.worker.cuda_graphs import Capture, GraphRunner

Numbers: TypeAlias = npt.NDArray[np.int64]


def place(kept: Tensor, numbers: npt.NDArray[Any]) -> None:
    """Copy host numbers into a static tensor without waiting for the device."""
    source = torch.from_numpy(numbers)
    kept.copy_(source.pin_memory() if kept.is_cuda else source, non_blocking=True)


class StagingBuffer:
    """Device work on tables [rows, columns] whose first column is a row of the slots."""

    def __init__(
        self,
        work: Callable[[Tensor], None],
        columns: int,
        sizes: Sequence[int],
        padding_row: int,
        device: torch.device,
        capture: Capture | None,
    ) -> None:
        self._work, self._padding_row = work, padding_row
        self._static = torch.zeros(sizes[-1], columns, dtype=torch.long, device=device)
        self._graphs = GraphRunner(capture, sizes) if capture else None

    def __call__(self, table: Numbers) -> None:
        if self._graphs is None:
            self._work(torch.from_numpy(table).to(self._static.device))
            return
        most = self._graphs.sizes[-1]
        for first in range(0, len(table), most):
            self._replay(table[first : first + most], self._graphs)

    def warm(self) -> None:
        graphs = self._graphs
        if graphs is not None:
            graphs.warm(lambda size: self._replay(self._padding(size), graphs))

    def _replay(self, table: Numbers, graphs: GraphRunner) -> None:
        size = graphs.bucket(len(table))
        padded, static = self._padding(size), self._static[:size]
        padded[: len(table)] = table
        place(static, padded)
        graphs.run(size, lambda: self._work(static))

    def _padding(self, size: int) -> Numbers:
        table = np.zeros((size, self._static.shape[1]), np.int64)
        table[:, 0] = self._padding_row
        return table
