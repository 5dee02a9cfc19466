"""Attention that is shown where to look: at the text that is being said.

The teacher tells when it says each word. In some layers one head of the talker is asked to
look there, in training only, so that the way from text to sound need not be found by chance.
"""

from __future__ import annotations

import torch
from torch import Tensor

from engine.model.layers import Causal
from training.batching.batches import NONE

LAYERS = (2, 4)  # the later one can see where the earlier one looked
NEAR = 1  # rows beside the right one that are as good: a word's letters have no exact times


class Guided(Causal):
    """Causal attention that adds up how little the first head of `LAYERS` looks at `says`."""

    def __init__(self, says: Tensor) -> None:
        super().__init__()
        self._says = says  # [B, T] row of the text, or NONE
        self.losses: list[Tensor] = []  # a layer each: [B, T], 0 where there is none

    def __call__(self, layer: int, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        if layer in LAYERS:
            self.losses.append(missed(q[:, 0], k[:, 0], self._says))
        return super().__call__(layer, q, k, v)


def missed(q: Tensor, k: Tensor, says: Tensor) -> Tensor:
    """How unlikely it is to look near `says` [B, T], in nats, with q and k [B, T, d]; 0 if NONE."""
    rows = torch.arange(q.shape[1], device=q.device)
    scores = (q @ k.transpose(1, 2)).float() / q.shape[-1] ** 0.5
    scores = scores.masked_fill(rows > rows[:, None], -torch.inf)  # [B, T, T]
    near = ((rows - says[..., None]).abs() <= NEAR) | (says == NONE)[..., None]
    return scores.logsumexp(-1) - scores.masked_fill(~near, -torch.inf).logsumexp(-1)
