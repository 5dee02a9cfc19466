"""Frames of some rows and prompts of others, in one pass over the talker's weights.

What a frame needs before the talker is one recording by bucket, the pass and what comes after it
another, by bucket and blocks of prompts; between them things lie in tensors that stay. For many
rows: few are heard sooner when their prompts go first, and a kernel of their own reads the weights.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from engine.worker.filling import Piece, ReplayedFilling
from engine.worker.frames import Extent, FrameStep
from engine.worker.graphs import Record, Replays
from engine.worker.steps import ReplayedSteps, reach_of
from engine.worker.talking import FEW, New

BLOCKS = (2, 4, 8, 16, 32)  # of prompts, in one recording: what the policy may have side by side


class Together:
    def __init__(
        self, step: FrameStep, steps: ReplayedSteps, filling: ReplayedFilling, record: Record
    ) -> None:
        self._step, self._steps, self._filling = step, steps, filling
        self._replays, slots = Replays(record), step.slots
        self._usual: tuple[int | None, ...] | None = None  # ranked ids that are recorded
        self._x = torch.zeros_like(slots.hidden)
        self._position = torch.zeros_like(slots.position)
        codes = slots.made.shape[2] + 1
        self._made = torch.zeros(len(slots.frame), codes, dtype=torch.long, device=step.device)

    def takes(self, pieces: Sequence[Piece], rows: Sequence[int], extent: Extent) -> bool:
        """Rows that make a frame are not those that are filled, and all fit what is recorded."""
        fits = len(rows) > FEW and 0 < sum(piece.blocks for piece in pieces) <= BLOCKS[-1]
        if not fits or {piece.row for piece in pieces} & {*rows}:
            return False
        ranked = extent.first, extent.rest, self._filling.count(pieces)
        return self._usual in (None, ranked)

    def __call__(self, pieces: Sequence[Piece], rows: tuple[int, ...], extent: Extent) -> Tensor:
        """A frame of these rows, in rising order -> codes and the end [R, codebooks + 1]."""
        return self._speak(pieces, rows, extent, self._filling.count(pieces))

    def _speak(
        self, pieces: Sequence[Piece], rows: tuple[int, ...], extent: Extent, count: int | None
    ) -> Tensor:
        index, size = self._steps.place(rows), self._filling.stage(pieces, BLOCKS)
        reach = extent.upto(reach_of(self._step, extent.positions))
        self._replays.run((len(index), reach), lambda: self._open(index, reach))
        key = len(index), reach, size, count
        self._replays.run(key, lambda: self._close(index, reach, size, count))
        return self._made[: len(rows)]

    def warm(self, extent: Extent) -> None:
        """Record every size, the largest first."""
        nobody, self._usual = self._filling.nobody, (extent.first, extent.rest, extent.first)
        for bucket in sorted(self._steps.buckets(), reverse=True):
            for blocks in reversed(BLOCKS) if bucket > FEW else ():
                self._speak([nobody] * blocks, (nobody.row,) * bucket, extent, extent.first)

    def _open(self, index: Tensor, extent: Extent) -> None:
        rows = len(index)
        made = self._step.open(index, index, extent)
        for kept, new in zip((self._x, self._position, self._made), made, strict=True):
            kept[:rows].copy_(new)

    def _close(self, index: Tensor, extent: Extent, size: int, count: int | None) -> None:
        step, talk, rows = self._step, self._step.talk, len(index)
        assert talk is not None
        blocks = self._filling.blocks(size)
        frames = New(self._x[:rows], index, self._position[:rows])
        hidden, prompts = talk.both(frames, blocks.new)
        step.close(index, index, hidden, self._made[:rows], extent)
        self._filling.begin(blocks, prompts, count)
        step.slots.rest(step.slots.spare)
