"""What a voice is learned by: cross-entropy of its codes, and a hold on the words.

Codebook 0 carries the words; its cross-entropy is of all rows that predict a frame or the end. The
acoustic codebooks are the predictor's, from the talker's hidden state of the row that predicts
the frame. The hold is how far codebook 0 has moved from what the untouched model says of the same
rows (Kullback-Leibler), so that a voice that is learned from minutes does not unlearn to speak.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor

from engine.model.layers import Causal
from engine.model.talker import Talker
from training.voice.sequences import NONE, Batch, embed


@dataclass(frozen=True, eq=False)
class Forward:
    """Hidden states and codebook 0's logits of a batch."""

    hidden: Tensor  # [B, T, width]
    logits: Tensor  # [B, T, codes], float32


def forward(talker: Talker, batch: Batch, voice: Tensor) -> Forward:
    """Every row at once, each with all rows before it."""
    x = embed(talker, batch, voice)
    positions = torch.arange(x.shape[1], device=x.device)[None]
    hidden = talker(x, positions, Causal())
    return Forward(hidden, _wide(talker.logits(hidden)))


def first_loss(logits: Tensor, batch: Batch, end: int) -> Tensor:
    """Cross-entropy of codebook 0 at each row [B, T]; 0 where nothing is predicted."""
    wanted = torch.where(batch.ends, end, batch.target[..., 0])
    lost = F.cross_entropy(
        logits.flatten(0, 1), wanted.flatten(), ignore_index=NONE, reduction="none"
    )
    return lost.view_as(wanted)


def rest_losses(talker: Talker, hidden: Tensor, target: Tensor) -> Tensor:
    """Cross-entropy of each acoustic codebook [15]: hidden [frames, width], target [frames, 16]."""
    logits = _wide(talker.predict(hidden, target))
    books = logits.shape[1]
    lost = F.cross_entropy(logits.flatten(0, 1), target[:, 1:].reshape(-1), reduction="none")
    return lost.view(-1, books).mean(0)


def predicting(batch: Batch) -> Tensor:
    """The rows that predict a frame, as numbers in [B * T]."""
    return (batch.target[..., 0] != NONE).flatten().nonzero()[:, 0]


def hold(logits: Tensor, held: Tensor) -> Tensor:
    """Mean divergence of codebook 0 from the untouched model's log probabilities `held`, both
    [rows, codes]."""
    logs = logits.log_softmax(-1)
    return (held.exp() * (held - logs)).sum(-1).mean()


def _wide(logits: Tensor) -> Tensor:
    """At least float32."""
    return logits.to(torch.promote_types(logits.dtype, torch.float32))
