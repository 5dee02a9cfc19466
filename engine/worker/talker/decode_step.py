"""One frame for some slots: the plain form of the step that a graph may capture.

Everything it reads and writes is a tensor of `Slots`; its shapes follow from the number of
rows, `bounds` and the candidate counts alone, and it never waits for the device.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import NamedTuple

import torch
from torch import Tensor

from engine.checkpoints.checkpoint import SpecialIds
from engine.model.layers import rotary_embedding
from engine.model.talker import Talker
from engine.worker.state.kv_cache import Rows, SlotAttend
from engine.worker.state.slot_state import Slots
from engine.worker.talker.code_predictor import CodePredictor
from engine.worker.talker.frame_glue import select_frame_glue
from engine.worker.talker.talker_forward import TalkerForward, select_talker_forward


@dataclass(frozen=True)
class BatchBounds:
    """What the host knows of a step's rows, and the shapes depend on."""

    positions: int  # every row's position is below
    first: int | None  # candidates ranked for codebook 0
    rest: int | None  # and for codebooks 1–15

    def upto(self, positions: int) -> BatchBounds:
        """With room for more."""
        return replace(self, positions=positions)


class FrameInputs(NamedTuple):
    """What a frame's first half leaves to its second."""

    x: Tensor  # [R, width] the talker's inputs
    position: Tensor  # [R] where they go
    codes: Tensor  # [R, 17] codes, with room for the end

    @classmethod
    def none(cls, slots: Slots) -> FrameInputs:
        """Room for all rows."""
        made = slots.position.new_zeros(len(slots.position), slots.codes.shape[2] + 1)
        return cls(torch.zeros_like(slots.hidden), torch.zeros_like(slots.position), made)


class FrameStep:
    """A talker's networks over its slots."""

    def __init__(self, talker: Talker, ids: SpecialIds, slots: Slots, pad: Tensor) -> None:
        block, like = talker.config.transformer, slots.hidden
        self.talker, self.slots = talker, slots
        self.predict = CodePredictor(talker.code_predictor)
        self.glue = select_frame_glue(slots, ids, talker, pad)
        everywhere = torch.arange(slots.positions, device=like.device)[None]
        turn = rotary_embedding(everywhere, block.head_dim, block.rope_theta)
        self._cos, self._sin = (part[0, 0].to(like.dtype) for part in turn)  # [positions, d]
        self.talk: TalkerForward | None = None
        self.talk = select_talker_forward(talker.model, slots, self._cos, self._sin, self._alone)

    @property
    def device(self) -> torch.device:
        return self.slots.hidden.device

    def run(self, x: Tensor, rows: Rows, index: Tensor, positions: Tensor, bounds: int) -> Tensor:
        """New inputs [R, T, width] of the slots at positions [R, T] -> hidden [R, T, width]."""
        if self.talk is not None:
            return self.talk.prefill(x, index, positions)
        attend = SlotAttend(self.slots.cache, rows, index, positions, bounds)
        turn = self._cos[positions][:, None], self._sin[positions][:, None]  # [R, 1, T, d]
        return self.talker.model.run(x, turn, attend)

    def _alone(self, x: Tensor, index: Tensor, positions: Tensor) -> Tensor:
        return self.run(x, index, index, positions, int(positions.max()) + 1)

    def open(self, rows: Rows, index: Tensor, bounds: BatchBounds) -> FrameInputs:
        """Up to the talker: the codes are there."""
        begun = self.glue.predictor_inputs(rows, index)
        others, total = self.predict(
            begun.hidden, begun.first, begun.sampling, begun.uniforms, bounds.rest
        )
        x, made = self.glue.talker_inputs(rows, index, others, total)
        return FrameInputs(x, begun.position, made)

    def rest(self, rows: Rows, index: Tensor, bounds: BatchBounds, opened: FrameInputs) -> Tensor:
        """From there on -> the frames' codes, and whether the speech ends after them: [R, 17]."""
        x, position, made = opened
        hidden = self._talk(x, rows, index, position, bounds.positions)
        self.close(rows, index, hidden, made, bounds)
        return made

    def close(
        self, rows: Rows, index: Tensor, hidden: Tensor, made: Tensor, bounds: BatchBounds
    ) -> None:
        """From the talker's hidden states [R, width] on."""
        self.glue.sample_next(rows, index, hidden, self.talker.logits(hidden), made, bounds.first)

    def begin(self, index: Tensor, hidden: Tensor, count: int | None) -> None:
        """Prompts of these rows [R] are done: draw codebook 0 of their first frames."""
        self.glue.sample_next(index, index, hidden, self.talker.logits(hidden), None, count)

    def _talk(self, x: Tensor, rows: Rows, index: Tensor, position: Tensor, bounds: int) -> Tensor:
        """One new position a row: x [R, width] at position [R] -> hidden [R, width]."""
        if self.talk is not None:
            return self.talk(x, index, position)
        return self.run(x[:, None], rows, index, position[:, None], bounds)[:, 0]
