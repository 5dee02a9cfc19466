"""Decodes some rows and prefills others in one pass over the talker's weights.

The first half of the frames is that of any decode step; the rest is one graph per bucket of rows
and of prompt blocks. Used for many rows only: with few, prefill runs first and frames use the
kernels for few rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from torch import Tensor

from engine.worker.cuda_graphs import Capture, GraphRunner
from engine.worker.state.row_metadata import BatchBounds
from engine.worker.talker.decode_graphs import DecodeStep, GraphDecoder
from engine.worker.talker.decode_step import FrameStep
from engine.worker.talker.prefill import GraphPrefiller, PromptPiece
from engine.worker.talker.talker_forward import FUSED_ROWS, RowInputs

BLOCKS = (2, 4, 8, 16, 32)  # of prompts in one graph, 512 rows at most


@dataclass(frozen=True, eq=False)
class MixedStep:
    batch: MixedBatch
    rows: int
    index: Tensor
    bounds: BatchBounds
    blocks: int
    count: int | None  # candidates ranked for the prompts' first codes

    def codes(self) -> Tensor:
        return self.batch.decoder.frame_inputs(self.rows).codes

    def advance(self) -> Tensor:
        self.batch.finish(self)
        return self.codes()


class MixedBatch:
    def __init__(
        self, step: FrameStep, decoder: GraphDecoder, prefiller: GraphPrefiller, capture: Capture
    ) -> None:
        self.decoder = decoder
        self._step, self._prefiller = step, prefiller
        self._graphs = GraphRunner(capture, BLOCKS)
        self._captured: tuple[int | None, ...] | None = None  # candidate counts that have graphs

    def takes(
        self, pieces: Sequence[PromptPiece], rows: Sequence[int], bounds: BatchBounds
    ) -> bool:
        """Whether no row is in both, and captured graphs fit."""
        fits = len(rows) > FUSED_ROWS and 0 < sum(piece.blocks for piece in pieces) <= BLOCKS[-1]
        if not fits or {piece.row for piece in pieces} & {*rows}:
            return False
        ranked = bounds.first, bounds.rest, self._prefiller.count(pieces)
        return self._captured in (None, ranked)

    def __call__(
        self, pieces: Sequence[PromptPiece], rows: tuple[int, ...], bounds: BatchBounds
    ) -> DecodeStep:
        """Launch the codes of a frame of these rows, given in ascending order."""
        return self._begin(pieces, rows, bounds, self._prefiller.count(pieces))

    def _begin(
        self,
        pieces: Sequence[PromptPiece],
        rows: tuple[int, ...],
        bounds: BatchBounds,
        count: int | None,
    ) -> MixedStep:
        index, reach = self.decoder.launch_codes(rows, bounds)
        blocks = self._prefiller.stage(pieces, BLOCKS)
        return MixedStep(self, len(rows), index, reach, blocks, count)

    def finish(self, step: MixedStep) -> None:
        """Launch the second half of the frames, and the prefill."""
        key = len(step.index), step.bounds, step.blocks, step.count
        self._graphs.run(key, lambda: self._finish(step))

    def warm(self, bounds: BatchBounds) -> None:
        """Capture all buckets of rows and blocks."""
        padding = self._prefiller.placeholder
        self._captured = bounds.first, bounds.rest, bounds.first
        for size in reversed(self.decoder.sizes):
            if size > FUSED_ROWS:
                rows = (padding.row,) * size
                self._graphs.warm(
                    lambda blocks, rows=rows: self._begin(  # type: ignore[misc]
                        [padding] * blocks, rows, bounds, bounds.first
                    ).advance()
                )

    def _finish(self, mixed: MixedStep) -> None:
        step, talk, index = self._step, self._step.talk, mixed.index
        assert talk is not None
        blocks = self._prefiller.blocks(mixed.blocks)
        x, position, codes = self.decoder.frame_inputs(len(index))
        hidden, prompts = talk.mixed(RowInputs(x, index, position), blocks.new)
        step.sample_next(index, index, hidden, codes, mixed.bounds)
        self._prefiller.sample_first(blocks, prompts, mixed.count)
        step.slots.reset_row(step.slots.padding_row)
