"""General texts as the untouched model says them: what keeps a learned voice's words.

The clone that training begins from speaks sentences that are none of the recordings'; what the
model then finds likely for codebook 0, row by row, is what the learned voice is held to.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from engine.model.talker import Talker
from training.voice.losses import forward, hold
from training.voice.sequences import Batch


@dataclass(frozen=True, eq=False)
class Held:
    """A batch, and the untouched model's log probabilities at the rows that predict."""

    batch: Batch
    wanted: Tensor  # [rows, codes]

    def loss(self, logits: Tensor) -> Tensor:
        """How far these logits [B, T, codes] have moved."""
        return hold(logits[self.batch.first], self.wanted)


@torch.no_grad()
def held(
    talker: Talker, plain: Sequence[Batch], learned: Sequence[Batch], vector: Tensor
) -> list[Held]:
    """The same lines laid out without learned rows, which the untouched model hears, and with."""
    wanted = (forward(talker, batch, vector[None]).logits[batch.first] for batch in plain)
    pairs = zip(learned, wanted, strict=True)
    return [Held(batch, logits.log_softmax(-1)) for batch, logits in pairs]
