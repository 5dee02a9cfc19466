"""Decode steps for any rows of a talker, eager or replayed by bucket.

A step has two halves: the frame's codes, which the codec can decode from then on, and the talker,
which prepares the next frame. Both forms give the same codes. Knows rows, no sequences.
"""

from __future__ import annotations

from collections.abc import Sequence
from time import perf_counter
from typing import NamedTuple, Protocol

import torch
from torch import Tensor

from engine.worker.cuda_graphs import Capture, GraphRunner, synchronize
from engine.worker.state.kv_cache import Rows
from engine.worker.state.prompts import to_device
from engine.worker.talker.decode_step import BatchBounds, FrameInputs, FrameStep

BUCKETS = (1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128, 192, 256, 384, 512, 768, 1024)
SHORTEST = 256  # positions of a graph: this many, or twice, four times, ...
ROUND = 64  # eager attention reads up to a multiple of this many positions
TIMED = (1, 8, 64)  # row counts that are timed, beside all rows
TIMES = 3


class DecodeStep(Protocol):
    """A frame of some rows whose codes are launched; `advance` runs the talker for the next."""

    def codes(self) -> Tensor:
        """[R, codebooks + 1]; the last column, the end of speech, is written by `advance`."""
        ...

    def advance(self) -> Tensor:
        """Run the second half and return the codes with the end of speech."""
        ...


class Decoder(Protocol):
    def __call__(self, rows: tuple[int, ...], bounds: BatchBounds) -> DecodeStep:
        """Launch the codes of a frame of these rows, in rising order."""
        ...


class EagerStep(NamedTuple):
    step: FrameStep
    rows: Rows
    index: Tensor
    bounds: BatchBounds
    inputs: FrameInputs

    def codes(self) -> Tensor:
        return self.inputs.codes

    def advance(self) -> Tensor:
        return self.step.rest(self.rows, self.index, self.bounds, self.inputs)


class EagerDecoder:
    def __init__(self, step: FrameStep) -> None:
        self._step = step

    def __call__(self, rows: tuple[int, ...], bounds: BatchBounds) -> DecodeStep:
        index = to_device(rows, self._step.device)
        length = min(-(-bounds.positions // ROUND) * ROUND, self._step.slots.positions)
        some, reach = _neighbours(rows) or index, bounds.upto(length)
        return EagerStep(self._step, some, index, reach, self._step.open(some, index, reach))


def _neighbours(rows: tuple[int, ...]) -> Rows | None:
    """Rows without a gap as a slice: a view rather than a copy of what they hold."""
    return slice(rows[0], rows[-1] + 1) if rows[-1] - rows[0] + 1 == len(rows) else None


class GraphStep(NamedTuple):
    decoder: GraphDecoder
    rows: int
    index: Tensor
    bounds: BatchBounds

    def codes(self) -> Tensor:
        return self.decoder.between(self.rows).codes

    def advance(self) -> Tensor:
        self.decoder.finish(self.index, self.bounds)
        return self.codes()


class GraphDecoder:
    """Steps replayed by bucket; rows beyond those asked for sit on the padding row."""

    def __init__(self, step: FrameStep, capture: Capture) -> None:
        self._step, self._padding_row = step, step.slots.padding_row
        sizes = [*(size for size in BUCKETS if size < self._padding_row), self._padding_row]
        self._first_half, self._graphs = GraphRunner(capture, sizes), GraphRunner(capture, sizes)
        self._index = torch.full(
            (self._padding_row,), self._padding_row, device=step.device
        )  # static
        self._rows: tuple[int, ...] = ()  # in the index now
        self._between = FrameInputs.none(step.slots)

    @property
    def sizes(self) -> Sequence[int]:
        return self._graphs.sizes

    def __call__(self, rows: tuple[int, ...], bounds: BatchBounds) -> DecodeStep:
        return GraphStep(self, len(rows), *self.begin(rows, bounds))

    def begin(self, rows: tuple[int, ...], bounds: BatchBounds) -> tuple[Tensor, BatchBounds]:
        """Launch the first half; the bucket's rows, and the bounds that its graphs belong to."""
        index, reach = self._place(rows), bounds.upto(reach_of(self._step, bounds.positions))
        self._first_half.run((len(index), reach.rest), lambda: self._begin(index, reach))
        return index, reach

    def between(self, rows: int) -> FrameInputs:
        """What the first half has written for so many rows."""
        return FrameInputs(*(each[:rows] for each in self._between))

    def finish(self, index: Tensor, bounds: BatchBounds) -> None:
        """Launch the second half."""
        self._graphs.run((len(index), bounds), lambda: self._rest(index, bounds))

    def warm(self, bounds: BatchBounds) -> None:
        """Capture every bucket."""
        self._graphs.warm(lambda size: self((self._padding_row,) * size, bounds).advance())

    def timings(self, bounds: BatchBounds) -> dict[int, float]:
        """Seconds of a step by rows, at a few counts from one to all."""
        counts = sorted({*(rows for rows in TIMED if rows < self._padding_row), self._padding_row})
        return {rows: self._timed((self._padding_row,) * rows, bounds) for rows in counts}

    def _timed(self, rows: tuple[int, ...], bounds: BatchBounds) -> float:
        synchronize(self._step.device)
        begun = perf_counter()
        for _ in range(TIMES):
            self(rows, bounds).advance()
        synchronize(self._step.device)
        return (perf_counter() - begun) / TIMES

    def _begin(self, index: Tensor, bounds: BatchBounds) -> None:
        opened = self._step.open(index, index, bounds)
        for kept, new in zip(self.between(len(index)), opened, strict=True):
            kept.copy_(new)

    def _rest(self, index: Tensor, bounds: BatchBounds) -> None:
        self._step.rest(index, index, bounds, self.between(len(index)))
        self._step.slots.rest(self._padding_row)

    def _place(self, rows: tuple[int, ...]) -> Tensor:
        """Put the rows where recordings read them, unless they are there from the last step."""
        bucket = self._graphs.bucket(len(rows))
        wanted = rows + (self._padding_row,) * (bucket - len(rows))
        if wanted != self._rows[:bucket]:
            self._index[:bucket].copy_(to_device(wanted, self._step.device))
            self._rows = wanted
        return self._index[:bucket]


def reach_of(step: FrameStep, positions: int) -> int:
    """Fused attention goes by each row's own length; the plain one by the longest."""
    reach = SHORTEST if step.talk is None else step.slots.positions
    while reach < positions:
        reach *= 2
    return min(reach, step.slots.positions)
