"""Guided attention: a loss that makes one head attend to the text that is being spoken.

The teacher's timing of words is known. In some layers one head of the talker is trained to attend
to the current word, so that the alignment of text and speech is learned sooner.
"""

from __future__ import annotations

import torch
from torch import Tensor

from engine.model.layers import Causal
from training.batching.batches import NONE

LAYERS = (2, 4)  # the later layer can use the earlier one's alignment
NEAR = 1  # rows beside the target that count as well, since times within a word are estimates


class UncompiledAttention(Causal):
    """Causal attention that is no part of what is compiled around it."""

    @torch.compiler.disable  # type: ignore[untyped-decorator]
    def __call__(self, layer: int, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        return super().__call__(layer, q, k, v)


class GuidedAttention(UncompiledAttention):
    """Causal attention that collects the guidance loss of the first head of `LAYERS`."""

    def __init__(self, spoken_row: Tensor) -> None:
        super().__init__()
        self._spoken_row = spoken_row  # [B, T] row of the text, or NONE
        self.losses: list[Tensor] = []  # one per layer: [B, T], 0 without a target

    @torch.compiler.disable  # type: ignore[untyped-decorator]
    def __call__(self, layer: int, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        if layer in LAYERS:
            self.losses.append(guidance_loss(q[:, 0], k[:, 0], self._spoken_row))
        return super().__call__(layer, q, k, v)


def guidance_loss(q: Tensor, k: Tensor, spoken_row: Tensor) -> Tensor:
    """Negative log of the attention near `spoken_row` [B, T], with q and k [B, T, d]; 0 if NONE."""
    rows = torch.arange(q.shape[1], device=q.device)
    scores = (q @ k.transpose(1, 2)).float() / q.shape[-1] ** 0.5
    scores = scores.masked_fill(rows > rows[:, None], -torch.inf)  # [B, T, T]
    near = ((rows - spoken_row[..., None]).abs() <= NEAR) | (spoken_row == NONE)[..., None]
    return scores.logsumexp(-1) - scores.masked_fill(~near, -torch.inf).logsumexp(-1)
