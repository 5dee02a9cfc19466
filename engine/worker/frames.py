"""One frame for some slots: the plain form of the step that a graph may capture.

Everything it reads and writes is a tensor of `Slots`; its shapes follow from the number of
rows, `extent` and the candidate counts alone, and it never waits for the device.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import torch
from torch import Tensor

from engine.checkpoint import RESERVED_CODES, SpecialIds
from engine.model.layers import rotation
from engine.model.talker import Talker
from engine.worker.cache import Rows, SlotAttend
from engine.worker.prediction import Prediction
from engine.worker.sampling import (
    LEAST_FRAMES,
    forbidden,
    knobs,
    pick,
    restrain,
    uniforms,
)
from engine.worker.slots import Slots
from engine.worker.talking import Talking, talking


@dataclass(frozen=True)
class Extent:
    """What the host knows of a step's rows, and the shapes depend on."""

    positions: int  # every row's position is below
    first: int | None  # candidates ranked for codebook 0
    rest: int | None  # and for codebooks 1–15

    def upto(self, positions: int) -> Extent:
        """With room for more."""
        return replace(self, positions=positions)


class FrameStep:
    """A talker's networks over its slots."""

    def __init__(self, talker: Talker, ids: SpecialIds, slots: Slots, pad: Tensor) -> None:
        shape, like = talker.shape, slots.hidden
        self.talker, self.slots = talker, slots
        self.predict = Prediction(talker.code_predictor)
        self._pad, self._end, self._codebooks = pad, ids.codec_eos, shape.codebooks
        allowed = forbidden(shape.codes, RESERVED_CODES, ids.codec_eos)
        self._allowed = allowed.to(like.device)
        everywhere = torch.arange(slots.text.shape[1], device=like.device)[None]
        turn = rotation(everywhere, shape.block.head_dim, shape.block.theta)
        self._cos, self._sin = (part[0, 0].to(like.dtype) for part in turn)  # [positions, d]
        self.talk: Talking | None = None
        self.talk = talking(talker.model, slots, self._cos, self._sin, self._alone)

    @property
    def device(self) -> torch.device:
        return self.slots.hidden.device

    def run(self, x: Tensor, rows: Rows, index: Tensor, positions: Tensor, extent: int) -> Tensor:
        """New inputs [R, T, width] of the slots at positions [R, T] -> hidden [R, T, width]."""
        if self.talk is not None:
            return self.talk.prompt(x, index, positions)
        attend = SlotAttend(self.slots.cache, rows, index, positions, extent)
        turn = self._cos[positions][:, None], self._sin[positions][:, None]  # [R, 1, T, d]
        return self.talker.model.run(x, turn, attend)

    def _alone(self, x: Tensor, index: Tensor, positions: Tensor) -> Tensor:
        return self.run(x, index, index, positions, int(positions.max()) + 1)

    def __call__(self, rows: Rows, index: Tensor, extent: Extent) -> Tensor:
        """-> the frames' codes, and whether the speech ends after them: [R, 17]."""
        slots = self.slots
        position, frame = slots.position[rows], slots.frame[rows]
        _, rest, _ = knobs(slots.knobs[rows])
        lots = uniforms(slots.keys[rows], frame, self._codebooks)
        begun = self.talker.embed_first(slots.code[rows])
        others, total = self.predict(slots.hidden[rows], begun, rest, lots[:, :-1], extent.rest)
        codes = torch.cat((slots.code[rows][:, None], others), 1)
        slots.made[index, frame] = codes.to(slots.made.dtype)
        x = total + self._text(rows, index, frame)
        hidden = self._talk(x, rows, index, position, extent.positions)
        slots.position[rows] = (position + 1).clamp(max=slots.text.shape[1] - 1)
        slots.frame[rows] = frame = (frame + 1).clamp(max=slots.text.shape[1] - 1)
        ended = self.choose(rows, index, hidden, frame, lots[:, -1:], extent.first)
        return torch.cat((codes, ended[:, None].to(codes)), 1)

    def begin(self, index: Tensor, hidden: Tensor, count: int | None) -> None:
        """Prompts of these rows [R] are done: draw codebook 0 of their first frames."""
        before = torch.full_like(index, -1)
        lots = uniforms(self.slots.keys[index], before, self._codebooks)[:, -1:]
        self.choose(index, index, hidden, before + 1, lots, count)

    def choose(
        self,
        rows: Rows,
        index: Tensor,
        hidden: Tensor,
        frame: Tensor,
        lots: Tensor,
        count: int | None,
    ) -> Tensor:
        """Draw codebook 0 of the frame to come; whether the speech ends instead [R]."""
        own, _, penalty = knobs(self.slots.knobs[rows])
        allowed = self._allowed.repeat(len(index), 1)  # [R, codes]
        never = (frame < LEAST_FRAMES) | self.slots.endless[rows]
        allowed[:, self._end].masked_fill_(never, -torch.inf)
        logits = self.talker.logits(hidden)
        logits = restrain(logits, self.slots.seen[rows], penalty, allowed)
        code = pick(logits, own, lots, count)
        self.slots.start(rows, index, hidden, code)
        return code == self._end

    def _talk(self, x: Tensor, rows: Rows, index: Tensor, position: Tensor, extent: int) -> Tensor:
        """One new position a row: x [R, width] at position [R] -> hidden [R, width]."""
        if self.talk is not None:
            return self.talk(x, index, position)
        return self.run(x[:, None], rows, index, position[:, None], extent)[:, 0]

    def _text(self, rows: Rows, index: Tensor, frame: Tensor) -> Tensor:
        """The text beside these frames: the track's, or padding past its end. [R, width]"""
        at = self.slots.spoken[rows] + frame
        past = at >= self.slots.texts[rows]
        text = self.slots.text[index, at.clamp(max=self.slots.text.shape[1] - 1)]
        return torch.where(past[:, None], self._pad, text)
