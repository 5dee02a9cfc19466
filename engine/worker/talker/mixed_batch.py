"""Frames of some rows and prompts of others, in one pass over the talker's weights.

A frame's first half is that of any step; the pass and what comes after it are a recording by
bucket and blocks of prompts. For many rows: few are heard sooner when their prompts go first, and
a kernel of their own reads the weights.
"""

from __future__ import annotations

from collections.abc import Sequence

from torch import Tensor

from engine.worker.cuda_graphs import GraphCache, Record
from engine.worker.talker.decode_graphs import ReplayedSteps, Rest
from engine.worker.talker.decode_step import BatchBounds, FrameStep
from engine.worker.talker.prefill import Piece, ReplayedFilling
from engine.worker.talker.talker_forward import FUSED_ROWS, RowInputs

BLOCKS = (2, 4, 8, 16, 32)  # of prompts, in one recording: what the policy may have side by side


class Together:
    def __init__(
        self, step: FrameStep, steps: ReplayedSteps, filling: ReplayedFilling, record: Record
    ) -> None:
        self._step, self._steps, self._filling = step, steps, filling
        self._replays = GraphCache(record)
        self._usual: tuple[int | None, ...] | None = None  # ranked ids that are recorded

    def takes(self, pieces: Sequence[Piece], rows: Sequence[int], extent: BatchBounds) -> bool:
        """Rows that make a frame are not those that are filled, and all fit what is recorded."""
        fits = len(rows) > FUSED_ROWS and 0 < sum(piece.blocks for piece in pieces) <= BLOCKS[-1]
        if not fits or {piece.row for piece in pieces} & {*rows}:
            return False
        ranked = extent.first, extent.rest, self._filling.count(pieces)
        return self._usual in (None, ranked)

    def __call__(self, pieces: Sequence[Piece], rows: tuple[int, ...], extent: BatchBounds) -> Rest:
        """Make the codes of a frame of these rows, in rising order."""
        return self._speak(pieces, rows, extent, self._filling.count(pieces))

    def _speak(
        self, pieces: Sequence[Piece], rows: tuple[int, ...], extent: BatchBounds, count: int | None
    ) -> Rest:
        index, reach = self._steps.begin(rows, extent)
        size = self._filling.stage(pieces, BLOCKS)
        key = len(index), reach, size, count

        def rest() -> Tensor:
            self._replays.run(key, lambda: self._rest(index, reach, size, count))
            return self._steps.between(len(rows)).made

        return rest

    def warm(self, extent: BatchBounds) -> None:
        """Record every size, the largest first."""
        nobody, self._usual = self._filling.nobody, (extent.first, extent.rest, extent.first)
        for bucket in sorted(self._steps.buckets(), reverse=True):
            for blocks in reversed(BLOCKS) if bucket > FUSED_ROWS else ():
                self._speak([nobody] * blocks, (nobody.row,) * bucket, extent, extent.first)()

    def _rest(self, index: Tensor, extent: BatchBounds, size: int, count: int | None) -> None:
        step, talk = self._step, self._step.talk
        assert talk is not None
        blocks, (x, position, made) = self._filling.blocks(size), self._steps.between(len(index))
        hidden, prompts = talk.mixed(RowInputs(x, index, position), blocks.new)
        step.close(index, index, hidden, made, extent)
        self._filling.begin(blocks, prompts, count)
        step.slots.rest(step.slots.spare)
