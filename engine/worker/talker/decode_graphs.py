"""Frame steps of any rows of a talker: as they are written, or replayed by bucket.

A step has two halves: first the frame's codes, which can become sound from then on, then the
talker, which makes ready for the next frame. A replayed step has as many rows as its bucket; the
ones that are too many sit on the spare row, which belongs to nobody. Both forms make the same
codes. Which sequence a row belongs to is not known here.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterator
from functools import partial
from time import perf_counter
from typing import Protocol, TypeAlias

import torch
from torch import Tensor

from engine.worker.cuda_graphs import GraphCache, Record, finish
from engine.worker.state.kv_cache import Rows
from engine.worker.state.prompts import to_device
from engine.worker.talker.decode_step import BatchBounds, FrameStep, Opened

BUCKETS = (1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128, 192, 256, 384, 512, 768, 1024)
SHORTEST = 256  # positions; a recording has this many, or twice, four times, ...
ROUND = 64  # as it is written, attention reads up to a multiple of this many
TIMED = (1, 8, 64)  # row counts that are timed, beside all rows
TIMES = 3

# The other half of a step -> codes and the end [R, codebooks + 1]
Rest: TypeAlias = Callable[[], Tensor]


class Steps(Protocol):
    def __call__(self, rows: tuple[int, ...], extent: BatchBounds) -> Rest:
        """Make the codes of a frame of these rows, in rising order."""
        ...


class PlainSteps:
    def __init__(self, step: FrameStep) -> None:
        self._step = step

    def __call__(self, rows: tuple[int, ...], extent: BatchBounds) -> Rest:
        index = to_device(rows, self._step.device)
        length = min(-(-extent.positions // ROUND) * ROUND, self._step.slots.positions)
        some, reach = _neighbours(rows) or index, extent.upto(length)
        return partial(self._step.rest, some, index, reach, self._step.open(some, index, reach))


def _neighbours(rows: tuple[int, ...]) -> Rows | None:
    """Rows without a gap as a slice: a view rather than a copy of what they hold."""
    return slice(rows[0], rows[-1] + 1) if rows[-1] - rows[0] + 1 == len(rows) else None


class ReplayedSteps:
    def __init__(self, step: FrameStep, record: Record) -> None:
        self._step, self._replays = step, GraphCache(record)
        self._begun, self._spare = GraphCache(record), step.slots.spare
        self._index = torch.full((self._spare,), self._spare, device=step.device)
        self._rows: tuple[int, ...] = ()  # that the index holds
        self._between = Opened.none(step.slots)

    def __call__(self, rows: tuple[int, ...], extent: BatchBounds) -> Rest:
        index, reach = self.begin(rows, extent)

        def rest() -> Tensor:
            self._replays.run((len(index), reach), lambda: self._rest(index, reach))
            return self.between(len(rows)).made

        return rest

    def begin(self, rows: tuple[int, ...], extent: BatchBounds) -> tuple[Tensor, BatchBounds]:
        """The first half -> the bucket's rows, and what its recordings know of them."""
        index, reach = self._place(rows), extent.upto(reach_of(self._step, extent.positions))
        self._begun.run((len(index), reach.rest), lambda: self._begin(index, reach))
        return index, reach

    def between(self, rows: int) -> Opened:
        """What the first half has left of so many rows."""
        return Opened(*(each[:rows] for each in self._between))

    def warm(self, extent: BatchBounds) -> None:
        """Record every bucket, the largest first: the others find their memory there."""
        for bucket in sorted(self.buckets(), reverse=True):
            self((self._spare,) * bucket, extent)()

    def timings(self, extent: BatchBounds) -> dict[int, float]:
        """Seconds of a step by rows, at a few counts from one to all."""
        counts = sorted({*(rows for rows in TIMED if rows < self._spare), self._spare})
        return {rows: self._timed((self._spare,) * rows, extent) for rows in counts}

    def _timed(self, rows: tuple[int, ...], extent: BatchBounds) -> float:
        finish(self._step.device)
        begun = perf_counter()
        for _ in range(TIMES):
            self(rows, extent)()
        finish(self._step.device)
        return (perf_counter() - begun) / TIMES

    def buckets(self) -> Iterator[int]:
        yield from (size for size in BUCKETS if size < self._spare)
        yield self._spare

    def _begin(self, index: Tensor, extent: BatchBounds) -> None:
        opened = self._step.open(index, index, extent)
        for kept, new in zip(self.between(len(index)), opened, strict=True):
            kept.copy_(new)

    def _rest(self, index: Tensor, extent: BatchBounds) -> None:
        self._step.rest(index, index, extent, self.between(len(index)))
        self._step.slots.rest(self._spare)

    def _place(self, rows: tuple[int, ...]) -> Tensor:
        """Put the rows where recordings read them, unless they are there from the last step."""
        bucket = self._bucket(len(rows))
        wanted = rows + (self._spare,) * (bucket - len(rows))
        if wanted != self._rows[:bucket]:
            self._index[:bucket].copy_(to_device(wanted, self._step.device))
            self._rows = wanted
        return self._index[:bucket]

    def _bucket(self, rows: int) -> int:
        return min(BUCKETS[bisect_left(BUCKETS, rows)], self._spare)


def reach_of(step: FrameStep, positions: int) -> int:
    """Fused attention goes by each row's own length; the plain one by the longest."""
    reach = SHORTEST if step.talk is None else step.slots.positions
    while reach < positions:
        reach *= 2
    return min(reach, step.slots.positions)
