"""What is learned: a voice's vector, and rows after it in every prompt.

The model stays as it is. Rows begin as the padding that the talker knows beside a text, since rows
of about nothing change pitch and words before anything is learned. Their norms are kept below those
of vectors that the model knows: a row far outside of what the talker has seen is what makes it
forget words.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import torch
from torch import Tensor, nn

from engine.checkpoints.checkpoint import LocalCheckpoint
from engine.model.talker import Talker
from engine.types import Clone, Vector

START = 0.01  # standard deviation of the rows at the start, so that no two are the same
LARGEST = 1.5  # times the norm of the vector that a row may have


def padding_of(talker: Talker, checkpoint: LocalCheckpoint) -> Tensor:
    """What the talker hears beside a text where nothing is said [width]."""
    ids = torch.tensor([checkpoint.ids.codec_pad], device=talker.codec_head.weight.device)
    return talker.embed_first(ids)[0]


class LearnedRows(nn.Module):
    RATE = 0.02

    def __init__(self, vector: Vector, rows: int, padding: Tensor, seed: int = 0) -> None:
        """`padding`: a row that says nothing to the talker [width]."""
        super().__init__()
        self.vector: Tensor
        self.register_buffer("vector", torch.from_numpy(vector).clone())
        random = torch.Generator().manual_seed(seed)
        noise = START * torch.randn(rows, len(vector), generator=random)
        self.rows = nn.Parameter(padding.detach().float().cpu() + noise)

    def forward(self) -> Tensor:
        """The voice's rows in the prompt: [1 + rows, width]."""
        return torch.cat((self.vector[None], self.rows))

    @contextmanager
    def attached(self, talker: Talker) -> Iterator[None]:
        """The talker stays as it is."""
        yield

    @torch.no_grad()
    def limit(self) -> None:
        """Scale rows down that have grown too long."""
        most = LARGEST * self.vector.norm()
        self.rows.mul_((most / self.rows.norm(dim=1, keepdim=True).clamp(min=1e-6)).clamp(max=1))

    def voice(self, model: str, digest: str) -> Clone:
        rows = self.rows.detach().float().cpu().numpy().copy()
        return Clone(self.vector.cpu().numpy().copy(), model=model, rows=rows, digest=digest)
