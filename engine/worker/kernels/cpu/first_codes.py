"""Codebook 0 of the next frame from the talker's logits, in one call of numba's kernel.

Codes are drawn by the rules of `engine.worker.state.sampling`, as those of the predictor are. The
rest of a frame's glue is the plain form's.
"""

from __future__ import annotations

import numpy as np
import torch
from numba import float32
from torch import Tensor

from engine.checkpoints.checkpoint import SpecialIds
from engine.model.talker import Talker
from engine.worker.kernels.cpu.compiler import compiled
from engine.worker.kernels.cpu.entries import Entry, fixed
from engine.worker.kernels.cpu.layers import array
from engine.worker.kernels.cpu.memory import zeros
from engine.worker.kernels.cpu.predictor import pick
from engine.worker.kernels.frame_glue import PlainFrameGlue
from engine.worker.lean_torch import seeded
from engine.worker.state.kv_cache import Rows
from engine.worker.state.sampling import CANDIDATES, MIN_FRAMES
from engine.worker.state.slot_state import Slots

WORD = 0xFFFFFFFF
# of a trial's rows: inverse temperature, top-k, top-p, factor of the uniforms
TRIAL = ((1.0, 1.0, 1.0, 0.0), (1.1, 50.0, 0.9, 1.0), (0.9, 12.0, 1.0, 1.0))
TRIALS, PENALTY = 8, 1.1


@compiled()
def _mix(word):
    word = ((word ^ (word >> 16)) * 0x21F0AAAD) & WORD
    word = ((word ^ (word >> 15)) * 0x735A2D97) & WORD
    return word ^ (word >> 15)


@compiled()
def _uniform(keys, counter):
    """See `sampling.random_numbers`."""
    mixed = _mix(_mix((counter + keys[0]) & WORD) ^ keys[1])
    return float32(mixed >> 9) * float32(2**-23)


@compiled()
def _sample(number, threads, index, logits, frames, sampling, keys, endless, seen, allowed, end,
            codebooks, scores, best, ids, codes):  # fmt: skip
    """codes [R] of slots `index` from logits [R, codes]; what is not by row is by slot."""
    for row in range(len(index)):
        slot = index[row]
        penalty = sampling[slot, 8]
        for code in range(len(scores)):
            score = logits[row, code]
            if seen[slot, code]:
                score = score * penalty if score < 0 else score / penalty
            scores[code] = score + allowed[code]
        if frames[slot] < MIN_FRAMES or endless[slot]:
            scores[end] = -np.inf
        uniform = _uniform(keys[slot], frames[slot] * codebooks)
        codes[row] = pick(scores, sampling[slot], uniform, best, ids)


_sample_codes = Entry(_sample)


class CpuFrameGlue(PlainFrameGlue):
    def __init__(self, slots: Slots, ids: SpecialIds, talker: Talker, pad: Tensor) -> None:
        super().__init__(slots, ids, talker.model.codec_embedding.weight.detach(), pad)
        size = slots.seen.shape[1]
        by_slot = slots.frame, slots.sampling, slots.keys, slots.endless, slots.seen, self._allowed
        self._fixed = fixed(*map(array, by_slot), self._end, self._codebooks)
        self._memory = fixed(
            zeros(size, np.float32), zeros(size, np.float32), zeros(size, np.int64)
        )

    def draw(self, rows: Rows, index: Tensor, logits: Tensor, count: int | None) -> Tensor:
        if count is not None:
            return self._sample(index, logits)
        codes = super().draw(rows, index, logits, count)  # a sort of all codes is torch's
        _, top_k, _, mask = self._slots.sampling[index, :4].unbind(1)
        few = ((top_k <= CANDIDATES) | (mask == 0)).nonzero()[:, 0]
        if len(few):  # as they are drawn alone
            codes[few] = self._sample(index[few], logits[few])
        return codes

    def _sample(self, index: Tensor, logits: Tensor) -> Tensor:
        codes = torch.empty_like(index)
        given = array(index.contiguous()), array(logits.contiguous())
        _sample_codes(*given, *self._fixed, *self._memory, array(codes))(0, 1)
        return codes


@torch.inference_mode()
def agrees(ids: SpecialIds, talker: Talker, pad: Tensor) -> bool:
    """Whether the kernel draws the plain form's codes from random logits."""
    cpu, random, rows = torch.device("cpu"), seeded(0), len(TRIAL)
    slots = Slots.allocate(talker.config, rows, 2, cpu, torch.float32)
    slots.sampling[:rows, :4] = torch.tensor(TRIAL)
    slots.sampling[:, 8] = PENALTY
    glue, index = CpuFrameGlue(slots, ids, talker, pad), torch.arange(rows)
    for trial in range(TRIALS):
        logits = 3 * torch.randn(rows, slots.seen.shape[1], generator=random)
        slots.frame[:rows], slots.keys[:rows] = trial, index[:, None] + torch.tensor([7, 1 << 31])
        slots.endless[0] = trial % 2 > 0
        kernel, plain = (
            draw(index, index, logits, CANDIDATES)
            for draw in (glue.draw, super(CpuFrameGlue, glue).draw)
        )
        if not torch.equal(kernel, plain):
            return False
        slots.seen[index, plain] = True
    return True
