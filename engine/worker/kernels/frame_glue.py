"""The work between the networks of a frame: the predictor's inputs from a slot's rows, the
talker's from the predictor's codes, and codebook 0 of the next frame from the talker's logits.

This is the plain form; `cuda.glue_kernels` has a kernel for each by its rules. Knows no networks:
embeddings and logits are arguments.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import torch
from torch import Tensor

from engine.checkpoints.checkpoint import RESERVED_CODES, SpecialIds
from engine.worker.state.kv_cache import Rows
from engine.worker.state.sampling import (
    MIN_FRAMES,
    SamplingTensors,
    apply_penalties,
    code_mask,
    first_uniforms,
    pick,
    sampling_tensors,
    uniforms,
)
from engine.worker.state.slot_state import Slots


@dataclass(frozen=True)
class PredictorInputs:
    """The predictor's inputs for some rows, and the position of the talker's next input."""

    hidden: Tensor  # [R, width]
    first: Tensor  # [R, width] codebook 0's embedding in the talker's table
    sampling: SamplingTensors
    uniforms: Tensor  # [R, 15]
    position: Tensor  # [R]


class FrameGlue(Protocol):
    """Rows are passed twice: in the form that is fastest to read, and as `index` [R]."""

    def predictor_inputs(self, rows: Rows, index: Tensor) -> PredictorInputs: ...

    def talker_inputs(
        self, rows: Rows, index: Tensor, codes: Tensor, total: Tensor
    ) -> tuple[Tensor, Tensor]:
        """Codes [R, 15] and the sum of all embeddings -> the talker's input [R, width], and the
        frame [R, 17]: its codes, and a column that says whether the speech ends."""
        ...

    def sample_next(
        self,
        rows: Rows,
        index: Tensor,
        hidden: Tensor,
        logits: Tensor,
        frame: Tensor | None,
        count: int | None,
    ) -> None:
        """Sample codebook 0 of the next frame from logits [R, codes] of hidden [R, width].

        With a `frame` the rows advance past it, and its last column is set. None: after prefill.
        """
        ...


class PlainFrameGlue:
    def __init__(self, slots: Slots, ids: SpecialIds, embeddings: Tensor, pad: Tensor) -> None:
        self._slots, self._embeddings, self._pad = slots, embeddings, pad
        self._end, self._codebooks = ids.codec_eos, slots.codes.shape[2]
        allowed = code_mask(slots.seen.shape[1], RESERVED_CODES, ids.codec_eos)
        self._allowed = allowed.to(slots.hidden.device)

    def predictor_inputs(self, rows: Rows, index: Tensor) -> PredictorInputs:
        slots = self._slots
        _, sampling, _ = sampling_tensors(slots.sampling[rows])
        return PredictorInputs(
            hidden=slots.hidden[rows],
            first=torch.nn.functional.embedding(slots.code[rows], self._embeddings),
            sampling=sampling,
            uniforms=uniforms(slots.keys[rows], slots.frame[rows], self._codebooks)[:, :-1],
            position=slots.position[rows],
        )

    def talker_inputs(
        self, rows: Rows, index: Tensor, codes: Tensor, total: Tensor
    ) -> tuple[Tensor, Tensor]:
        slots, first = self._slots, self._slots.code[rows][:, None]
        number, frame = slots.frame[rows], torch.cat((first, codes, torch.zeros_like(first)), 1)
        slots.codes[index, number] = frame[:, :-1].to(slots.codes.dtype)
        return total + self._text(rows, index, number), frame

    def sample_next(
        self,
        rows: Rows,
        index: Tensor,
        hidden: Tensor,
        logits: Tensor,
        frame: Tensor | None,
        count: int | None,
    ) -> None:
        slots, last = self._slots, self._slots.positions - 1
        if frame is not None:
            slots.position[rows] = (slots.position[rows] + 1).clamp(max=last)
            slots.frame[rows] = (slots.frame[rows] + 1).clamp(max=last)
        code = self.draw(rows, index, logits, count)
        slots.start(rows, index, hidden, code)
        if frame is not None:
            frame[:, -1] = code == self._end

    def draw(self, rows: Rows, index: Tensor, logits: Tensor, count: int | None) -> Tensor:
        """Codebook 0 of these rows' frames [R]."""
        slots = self._slots
        sampling, _, penalty = sampling_tensors(slots.sampling[rows])
        allowed = self._allowed.repeat(len(index), 1)  # [R, codes]
        never = (slots.frame[rows] < MIN_FRAMES) | slots.endless[rows]
        allowed[:, self._end].masked_fill_(never, -torch.inf)
        drawn = first_uniforms(slots.keys[rows], slots.frame[rows], self._codebooks)
        scores = apply_penalties(logits, slots.seen[rows], penalty, allowed)
        return pick(scores, sampling, drawn, count)

    def _text(self, rows: Rows, index: Tensor, number: Tensor) -> Tensor:
        """The text rows of these frames, or padding past the text's end: [R, width]."""
        slots = self._slots
        at = slots.spoken[rows] + number
        past = at >= slots.texts[rows]
        text = slots.text[index, at.clamp(max=slots.positions - 1)]
        return torch.where(past[:, None], self._pad, text)
