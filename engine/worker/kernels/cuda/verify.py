"""Whether a form of the predictor does on this device what the plain one does.

Asked once, before anything is served by it: a card, a driver or a compiler that nobody has
tried must not be found out by ear. Knows no kernels.
"""

from __future__ import annotations

from typing import Protocol

import torch
from torch import Tensor

from engine.model.predictor import Predictor
from engine.worker.state.sampling import CANDIDATES, SamplingTensors

TOP = 8  # ids that rows which draw may draw from
DOUBT = 0.2  # of the logits' spread: ten times what rounding does to them


class Form(Protocol):
    """One frame: hidden and first [R, W], uniforms [R, books] -> codes and the sum."""

    def __call__(
        self,
        hidden: Tensor,
        first: Tensor,
        own: SamplingTensors,
        uniforms: Tensor,
        count: int | None,
    ) -> tuple[Tensor, Tensor]: ...


@torch.inference_mode()
def agrees(predictor: Predictor, form: Form, rows: int) -> bool:
    """For random inputs: every other row takes the best id, the others draw."""
    like = predictor.model.codec_embedding[0].weight
    random = torch.Generator().manual_seed(rows)
    hidden, first = (torch.randn(2, rows, like.shape[1], generator=random).to(like)).unbind()
    uniforms = torch.rand(rows, len(predictor.lm_head), generator=random).to(like.device)
    draws = (torch.arange(rows, device=like.device) % 2).float()[:, None]
    own = SamplingTensors(
        torch.ones_like(draws), TOP * torch.ones_like(draws), torch.ones_like(draws), draws
    )
    codes, total = form(hidden, first, own, uniforms, CANDIDATES)
    again, _ = form(hidden, first, own, uniforms, CANDIDATES)
    logits, wanted = _told(predictor, hidden, first, codes)
    same = torch.equal(codes, again) and torch.equal(total, wanted)
    return same and bool((_shortfall(logits, codes, draws) < DOUBT).all())


def _told(
    predictor: Predictor, hidden: Tensor, first: Tensor, codes: Tensor
) -> tuple[Tensor, Tensor]:
    """The plain logits [R, books, V] where the codes before are these, and the sum."""
    logits: list[Tensor] = []

    def choose(book: int, each: Tensor) -> Tensor:
        logits.append(each.float())
        return codes[:, book - 1]

    _, total = predictor.sample(hidden, first, choose)
    return torch.stack(logits, 1), total


def _shortfall(logits: Tensor, codes: Tensor, draws: Tensor) -> Tensor:
    """How far below what a row may take its codes lie, in spreads of the logits [R, books]."""
    best = logits.topk(TOP).values
    least = torch.where(draws > 0, best[..., -1], best[..., 0])
    found = logits.gather(2, codes[..., None])[..., 0]
    return (least - found) / logits.std(-1)
