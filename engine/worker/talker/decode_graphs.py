"""Decode steps for any rows of a talker, eager or by CUDA graphs.

A step has two halves: first the frame's codes, which the codec can decode at once, then the talker,
which prepares the next frame. Both forms give the same codes. Knows rows, no sequences.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from time import perf_counter
from typing import Protocol

import torch
from torch import Tensor

from engine.worker.cuda_graphs import Capture, GraphRunner, synchronize
from engine.worker.state.kv_cache import Rows
from engine.worker.state.prompts import to_device
from engine.worker.state.row_metadata import BatchBounds
from engine.worker.talker.decode_step import FrameInputs, FrameStep

BUCKETS = (1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128, 192, 256, 384, 512, 768, 1024)
MIN_GRAPH_POSITIONS = 256  # of a graph without fused attention: this times a power of two
POSITION_MULTIPLE = 64  # eager attention reads up to a multiple of this
TIMED_ROWS = (1, 8, 64)  # row counts that are timed, besides all rows
TIMED_STEPS = 3
LONG = 0.1  # seconds


class DecodeStep(Protocol):
    """A step whose codes were launched; `advance` runs the talker for the next frame."""

    def codes(self) -> Tensor:
        """[R, codebooks + 1]; the last column, the end of speech, is written by `advance`."""
        ...

    def advance(self) -> Tensor:
        """Run the second half and return the codes with the end of speech."""
        ...


class Decoder(Protocol):
    def __call__(self, rows: tuple[int, ...], bounds: BatchBounds) -> DecodeStep:
        """Launch the codes of a frame of these rows, given in ascending order."""
        ...


@dataclass(frozen=True, eq=False)
class EagerStep:
    step: FrameStep
    rows: Rows
    index: Tensor
    bounds: BatchBounds
    inputs: FrameInputs

    def codes(self) -> Tensor:
        return self.inputs.codes

    def advance(self) -> Tensor:
        return self.step.run_talker(self.rows, self.index, self.bounds, self.inputs)


class EagerDecoder:
    def __init__(self, step: FrameStep) -> None:
        self._step = step

    def __call__(self, rows: tuple[int, ...], bounds: BatchBounds) -> DecodeStep:
        index = to_device(rows, self._step.device)
        length = -(-bounds.positions // POSITION_MULTIPLE) * POSITION_MULTIPLE
        length = min(length, self._step.slots.positions)
        some, reach = _as_slice(rows) or index, bounds.with_positions(length)
        inputs = self._step.predict_frame(some, index, reach)
        return EagerStep(self._step, some, index, reach, inputs)

    def seconds(self, bounds: BatchBounds) -> float:
        """Seconds of a step of one row: the best of a few runs on the padding row, of two where a
        run is long."""
        seconds: list[float] = []
        while len(seconds) < 2 or (len(seconds) < TIMED_STEPS and sum(seconds) < LONG):
            begun = perf_counter()
            self.run(1, bounds)
            seconds.append(perf_counter() - begun)
        return min(seconds)

    def run(self, rows: int, bounds: BatchBounds) -> None:
        """A step that nobody hears, as long as one of so many rows: the padding row's."""
        slots = self._step.slots
        self((slots.padding_row,) * rows, bounds).advance()
        slots.reset_row(slots.padding_row)


def _as_slice(rows: tuple[int, ...]) -> Rows | None:
    """Adjacent rows as a slice, which gives views instead of copies."""
    return slice(rows[0], rows[-1] + 1) if rows[-1] - rows[0] + 1 == len(rows) else None


@dataclass(frozen=True, eq=False)
class GraphStep:
    decoder: GraphDecoder
    rows: int
    index: Tensor
    bounds: BatchBounds

    def codes(self) -> Tensor:
        return self.decoder.frame_inputs(self.rows).codes

    def advance(self) -> Tensor:
        self.decoder.launch_talker(self.index, self.bounds)
        return self.codes()


class GraphDecoder:
    """Steps by CUDA graph; a bucket is filled with the padding row."""

    def __init__(self, step: FrameStep, capture: Capture) -> None:
        self._step, self._padding_row = step, step.slots.padding_row
        sizes = [*(size for size in BUCKETS if size < self._padding_row), self._padding_row]
        self._code_graphs, self._graphs = GraphRunner(capture, sizes), GraphRunner(capture, sizes)
        size = (self._padding_row,)
        self._index = torch.full(size, self._padding_row, device=step.device)  # static
        self._rows: tuple[int, ...] = ()  # in `_index` now
        self._inputs = FrameInputs.allocate(step.slots)

    @property
    def sizes(self) -> Sequence[int]:
        return self._graphs.sizes

    def __call__(self, rows: tuple[int, ...], bounds: BatchBounds) -> DecodeStep:
        return GraphStep(self, len(rows), *self.launch_codes(rows, bounds))

    def launch_codes(
        self, rows: tuple[int, ...], bounds: BatchBounds
    ) -> tuple[Tensor, BatchBounds]:
        """Launch the first half; returns the bucket's rows and its graph's bounds."""
        index = self._place(rows)
        reach = bounds.with_positions(graph_positions(self._step, bounds.positions))
        self._code_graphs.run((len(index), reach.rest), lambda: self._predict(index, reach))
        return index, reach

    def frame_inputs(self, rows: int) -> FrameInputs:
        """The results of the first half for `rows` rows."""
        return FrameInputs(*(each[:rows] for each in self._inputs))

    def launch_talker(self, index: Tensor, bounds: BatchBounds) -> None:
        """Launch the second half."""
        self._graphs.run((len(index), bounds), lambda: self._run_talker(index, bounds))

    def warm(self, bounds: BatchBounds) -> None:
        """Capture every bucket."""
        self._graphs.warm(lambda size: self((self._padding_row,) * size, bounds).advance())

    def timings(self, bounds: BatchBounds) -> dict[int, float]:
        """Seconds of a step by rows, at a few row counts."""
        counts = sorted(
            {*(rows for rows in TIMED_ROWS if rows < self._padding_row), self._padding_row}
        )
        return {rows: self._timed((self._padding_row,) * rows, bounds) for rows in counts}

    def _timed(self, rows: tuple[int, ...], bounds: BatchBounds) -> float:
        synchronize(self._step.device)
        begun = perf_counter()
        for _ in range(TIMED_STEPS):
            self(rows, bounds).advance()
        synchronize(self._step.device)
        return (perf_counter() - begun) / TIMED_STEPS

    def _predict(self, index: Tensor, bounds: BatchBounds) -> None:
        inputs = self._step.predict_frame(index, index, bounds)
        for kept, new in zip(self.frame_inputs(len(index)), inputs, strict=True):
            kept.copy_(new)

    def _run_talker(self, index: Tensor, bounds: BatchBounds) -> None:
        self._step.run_talker(index, index, bounds, self.frame_inputs(len(index)))
        self._step.slots.reset_row(self._padding_row)

    def _place(self, rows: tuple[int, ...]) -> Tensor:
        """Write the rows to the graphs' static index, unless they are unchanged."""
        bucket = self._graphs.bucket(len(rows))
        wanted = rows + (self._padding_row,) * (bucket - len(rows))
        if wanted != self._rows[:bucket]:
            self._index[:bucket].copy_(to_device(wanted, self._step.device))
            self._rows = wanted
        return self._index[:bucket]


def graph_positions(step: FrameStep, positions: int) -> int:
    """The positions that a graph reads: all with fused attention, which uses each row's length,
    else a bucket for the longest row."""
    reach = MIN_GRAPH_POSITIONS if step.talk is None else step.slots.positions
    while reach < positions:
        reach *= 2
    return min(reach, step.slots.positions)
