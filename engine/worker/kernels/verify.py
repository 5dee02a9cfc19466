"""Measures how far an implementation of the predictor is from the plain one.

Rounding differs between kernels, so codes may differ where two ids are about equally likely. A code
counts as right if its logit in the plain form is within the tolerance of the logits that may be
sampled.
"""

from __future__ import annotations

import math
from typing import Protocol

import torch
from torch import Tensor

from engine.model.predictor import Predictor
from engine.worker.lean_torch import seeded
from engine.worker.state.sampling import CANDIDATES, SamplingTensors

TOP_K = 8  # of the rows that sample
TOLERANCE = 0.2  # in standard deviations of the logits: ten times the effect of rounding


class SampleFrame(Protocol):
    """Codebooks 1–15 of one frame: hidden and first [R, width], uniforms [R, books] -> codes
    [R, books] and the sum of all 16 embeddings [R, width]. `count` ids are ranked."""

    def __call__(
        self,
        hidden: Tensor,
        first: Tensor,
        sampling: SamplingTensors,
        uniforms: Tensor,
        count: int | None,
    ) -> tuple[Tensor, Tensor]: ...


@torch.inference_mode()
def predictor_difference(predictor: Predictor, form: SampleFrame, rows: int) -> float:
    """The difference for random inputs; every other row is greedy, the others sample.

    Infinite if a second call gives other codes, or the sum is not that of the codes' embeddings.
    """
    like = predictor.model.codec_embedding[0].weight
    random = seeded(rows)
    inputs = torch.randn(2, rows, like.shape[1], generator=random)
    hidden, first = inputs.to(like.device, predictor.dtype).unbind()
    uniforms = torch.rand(rows, len(predictor.lm_head), generator=random).to(like.device)
    sample_mask = (torch.arange(rows, device=like.device) % 2).float()[:, None]
    ones = torch.ones_like(sample_mask)
    sampling = SamplingTensors(ones, TOP_K * ones, ones, sample_mask)
    codes, total = form(hidden, first, sampling, uniforms, CANDIDATES)
    again, _ = form(hidden, first, sampling, uniforms, CANDIDATES)
    logits, plain_total = plain_logits(predictor, hidden, first, codes)
    if not torch.equal(codes, again) or not torch.equal(total, plain_total):
        return math.inf
    shortfall = _shortfall(logits, codes, sample_mask).clamp(min=0)
    return float(shortfall.nan_to_num(nan=math.inf).max())


def plain_logits(
    predictor: Predictor, hidden: Tensor, first: Tensor, codes: Tensor
) -> tuple[Tensor, Tensor]:
    """The plain form's logits [R, books, V], each given the codes before it, and the sum."""
    logits: list[Tensor] = []

    def choose(book: int, each: Tensor) -> Tensor:
        logits.append(each)
        return codes[:, book - 1]

    _, total = predictor.sample(hidden, first, choose)
    return torch.stack(logits, 1), total


def _shortfall(logits: Tensor, codes: Tensor, sample_mask: Tensor) -> Tensor:
    """How far the codes' logits are below the lowest logit that may be sampled, in standard
    deviations of the logits: [R, books]."""
    logits = logits.float()
    best = logits.topk(TOP_K).values
    lowest = torch.where(sample_mask > 0, best[..., -1], best[..., 0])
    found = logits.gather(2, codes[..., None])[..., 0]
    return (lowest - found) / logits.std(-1)
