"""One frame for some slots, in a form that a CUDA graph can capture.

It reads and writes tensors of `Slots` only; its shapes depend only on the number of rows and
`bounds`, and it never waits for the device.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple, TypeAlias

import torch
from torch import Tensor

from engine.checkpoints.checkpoint import SpecialIds
from engine.model.layers import rotary_embedding
from engine.model.talker import Talker
from engine.worker.backends import Candidate, select_backend
from engine.worker.device import runs_cuda
from engine.worker.kernels.frame_glue import FrameGlue, PlainFrameGlue
from engine.worker.state.kv_cache import Rows, SlotAttend
from engine.worker.state.row_metadata import BatchBounds
from engine.worker.state.slot_state import Slots
from engine.worker.talker.code_predictor import CodePredictor
from engine.worker.talker.talker_forward import TalkerForward, select_talker_forward

# x [R, width] of rows [R] at positions [R] -> hidden [R, width]
TalkOne: TypeAlias = Callable[[Tensor, Tensor, Tensor], Tensor]
# x [rows, width] of pieces (slot, first position, positions) -> hidden [rows, width]
TalkPrompts: TypeAlias = Callable[[Tensor, Sequence[tuple[int, int, int]]], Tensor]


class FrameInputs(NamedTuple):
    """Results of a step's first half for its second half."""

    x: Tensor  # [R, width] the talker's inputs
    position: Tensor  # [R] of these inputs
    codes: Tensor  # [R, 17] codes, and a column for end of speech

    @classmethod
    def allocate(cls, slots: Slots) -> FrameInputs:
        """Zeros for all rows."""
        codes = slots.position.new_zeros(len(slots.position), slots.codes.shape[2] + 1)
        return cls(torch.zeros_like(slots.hidden), torch.zeros_like(slots.position), codes)


class FrameStep:
    """The parts of a decode step on a talker's slots."""

    def __init__(self, talker: Talker, ids: SpecialIds, slots: Slots, pad: Tensor) -> None:
        block, like = talker.config.transformer, slots.hidden
        self.talker, self.slots, self.ids, self.pad = talker, slots, ids, pad
        self.predict = CodePredictor(talker.code_predictor)
        self.glue = select_frame_glue(slots, ids, talker, pad)
        everywhere = torch.arange(slots.positions, device=like.device)[None]
        rotary = rotary_embedding(everywhere, block.head_dim, block.rope_theta)
        cos, sin = (part[0, 0].to(like.dtype).contiguous() for part in rotary)  # [positions, d]
        self.rotary = cos, sin
        self.talk: TalkerForward | None = None
        self.talk = select_talker_forward(talker.model, slots, cos, sin, self._alone)
        self.talk_one: TalkOne | None = None  # if set, for one new position per row
        self.talk_prompts: TalkPrompts | None = None  # if set, for pieces of prompts
        self.logits: Callable[[Tensor], Tensor] = talker.logits

    @property
    def device(self) -> torch.device:
        return self.slots.hidden.device

    def run(self, x: Tensor, rows: Rows, index: Tensor, positions: Tensor, bounds: int) -> Tensor:
        """New inputs [R, T, width] of the slots at positions [R, T] -> hidden [R, T, width]."""
        if self.talk is not None:
            return self.talk.prefill(x, index, positions)
        attend = SlotAttend(self.slots.cache, rows, index, positions, bounds)
        cos, sin = (part[positions][:, None] for part in self.rotary)  # [R, 1, T, d]
        return self.talker.model.run(x, (cos, sin), attend)

    def _alone(self, x: Tensor, index: Tensor, positions: Tensor) -> Tensor:
        return self.run(x, index, index, positions, int(positions.max()) + 1)

    def predict_frame(self, rows: Rows, index: Tensor, bounds: BatchBounds) -> FrameInputs:
        """The first half: the frame's codes, and the talker's inputs."""
        inputs = self.glue.predictor_inputs(rows, index)
        others, total = self.predict(
            inputs.hidden, inputs.first, inputs.sampling, inputs.uniforms, bounds.rest
        )
        x, codes = self.glue.talker_inputs(rows, index, others, total)
        return FrameInputs(x, inputs.position, codes)

    def run_talker(
        self, rows: Rows, index: Tensor, bounds: BatchBounds, inputs: FrameInputs
    ) -> Tensor:
        """The second half -> the frame's codes and whether speech ends after them: [R, 17]."""
        x, position, codes = inputs
        hidden = self._talk(x, rows, index, position, bounds.positions)
        self.sample_next(rows, index, hidden, codes, bounds)
        return codes

    def sample_next(
        self, rows: Rows, index: Tensor, hidden: Tensor, codes: Tensor, bounds: BatchBounds
    ) -> None:
        """Sample codebook 0 of the next frame from the talker's hidden states [R, width]."""
        self.glue.sample_next(rows, index, hidden, self.logits(hidden), codes, bounds.first)

    def sample_first(self, index: Tensor, hidden: Tensor, count: int | None) -> None:
        """Sample codebook 0 of the first frame of rows [R] whose prefill is complete."""
        self.glue.sample_next(index, index, hidden, self.logits(hidden), None, count)

    def _talk(self, x: Tensor, rows: Rows, index: Tensor, position: Tensor, bounds: int) -> Tensor:
        """One new position per row: x [R, width] at position [R] -> hidden [R, width]."""
        if talk := self.talk or self.talk_one:
            return talk(x, index, position)
        return self.run(x[:, None], rows, index, position[:, None], bounds)[:, 0]


def select_frame_glue(slots: Slots, ids: SpecialIds, talker: Talker, pad: Tensor) -> FrameGlue:
    """CUDA kernels if they run here, else the plain form. pad [width]: embedded padding text."""
    embeddings = talker.model.codec_embedding.weight.detach()
    plain = PlainFrameGlue(slots, ids, embeddings, pad)
    if not runs_cuda(slots.hidden.device):
        return plain
    from engine.worker.kernels.cuda.glue_kernels import FusedFrameGlue, build, difference

    kernels: Candidate[FusedFrameGlue] = Candidate(
        "the kernels between a frame's networks",
        lambda: build(slots, ids, talker, pad),
        lambda fused: difference(fused, ids, talker),
    )
    return select_backend([kernels], plain, 0.0)
