"""What lies between the networks of a frame: rows become a predictor's inputs, its codes the
talker's, and the talker's logits codebook 0 of the frame to come.

The plain form; `kernels.seams` has the same in a launch each, and its rules are these. Knows no
networks: embeddings and logits are given to it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import torch
from torch import Tensor

from engine.checkpoints.checkpoint import RESERVED_CODES, SpecialIds
from engine.worker.state.kv_cache import Rows
from engine.worker.state.sampling import (
    LEAST_FRAMES,
    SamplingTensors,
    first_uniforms,
    forbidden,
    knobs,
    pick,
    restrain,
    uniforms,
)
from engine.worker.state.slot_state import Slots


@dataclass(frozen=True)
class PredictorInputs:
    """What a frame's predictor takes of some rows, and where the talker's input goes."""

    hidden: Tensor  # [R, width]
    first: Tensor  # [R, width] codebook 0 as the talker takes it
    own: SamplingTensors
    uniforms: Tensor  # [R, 15]
    position: Tensor  # [R]


class FrameGlue(Protocol):
    """Rows are named twice: as they are read best, and one by one, `index` [R]."""

    def predictor_inputs(self, rows: Rows, index: Tensor) -> PredictorInputs: ...

    def talker_inputs(
        self, rows: Rows, index: Tensor, codes: Tensor, total: Tensor
    ) -> tuple[Tensor, Tensor]:
        """Codes [R, 15] and the sum of all embeddings -> the talker's input [R, width], and the
        frame's codes with room for the end [R, 17]."""
        ...

    def sample_next(
        self,
        rows: Rows,
        index: Tensor,
        hidden: Tensor,
        logits: Tensor,
        made: Tensor | None,
        count: int | None,
    ) -> None:
        """Draw codebook 0 of the frame to come from logits [R, codes] of hidden [R, width].

        Where a frame is `made`, rows go on by it, and its last column says whether it ends them.
        """
        ...


class PlainFrameGlue:
    def __init__(self, slots: Slots, ids: SpecialIds, embeddings: Tensor, pad: Tensor) -> None:
        self._slots, self._embeddings, self._pad = slots, embeddings, pad
        self._end, self._codebooks = ids.codec_eos, slots.made.shape[2]
        allowed = forbidden(slots.seen.shape[1], RESERVED_CODES, ids.codec_eos)
        self._allowed = allowed.to(slots.hidden.device)

    def predictor_inputs(self, rows: Rows, index: Tensor) -> PredictorInputs:
        slots = self._slots
        _, own, _ = knobs(slots.knobs[rows])
        lots = uniforms(slots.keys[rows], slots.frame[rows], self._codebooks)[:, :-1]
        first = torch.nn.functional.embedding(slots.code[rows], self._embeddings)
        return PredictorInputs(slots.hidden[rows], first, own, lots, slots.position[rows])

    def talker_inputs(
        self, rows: Rows, index: Tensor, codes: Tensor, total: Tensor
    ) -> tuple[Tensor, Tensor]:
        slots, first = self._slots, self._slots.code[rows][:, None]
        frame, whole = slots.frame[rows], torch.cat((first, codes, torch.zeros_like(first)), 1)
        slots.made[index, frame] = whole[:, :-1].to(slots.made.dtype)
        return total + self._text(rows, index, frame), whole

    def sample_next(
        self,
        rows: Rows,
        index: Tensor,
        hidden: Tensor,
        logits: Tensor,
        made: Tensor | None,
        count: int | None,
    ) -> None:
        slots, last = self._slots, self._slots.positions - 1
        if made is not None:
            slots.position[rows] = (slots.position[rows] + 1).clamp(max=last)
            slots.frame[rows] = (slots.frame[rows] + 1).clamp(max=last)
        own, _, penalty = knobs(slots.knobs[rows])
        allowed = self._allowed.repeat(len(index), 1)  # [R, codes]
        never = (slots.frame[rows] < LEAST_FRAMES) | slots.endless[rows]
        allowed[:, self._end].masked_fill_(never, -torch.inf)
        lots = first_uniforms(slots.keys[rows], slots.frame[rows], self._codebooks)
        code = pick(restrain(logits, slots.seen[rows], penalty, allowed), own, lots, count)
        slots.start(rows, index, hidden, code)
        if made is not None:
            made[:, -1] = code == self._end

    def _text(self, rows: Rows, index: Tensor, frame: Tensor) -> Tensor:
        """The text beside these frames: the track's, or padding past its end. [R, width]"""
        slots = self._slots
        at = slots.spoken[rows] + frame
        past = at >= slots.texts[rows]
        text = slots.text[index, at.clamp(max=slots.positions - 1)]
        return torch.where(past[:, None], self._pad, text)
