"""What is learned: a voice's vector, and rows after it in every prompt.

The model stays as it is. Row norms are kept below those of vectors that the model knows: a row far
outside of what the talker has seen is what makes it forget words.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import torch
from torch import Tensor, nn

from engine.model.talker import Talker
from engine.types import Clone, Vector

START = 0.01  # standard deviation of the rows at the start
LARGEST = 1.5  # times the norm of the vector that a row may have


class LearnedRows(nn.Module):
    RATE = 0.02

    def __init__(self, vector: Vector, rows: int, seed: int = 0) -> None:
        super().__init__()
        self.vector: Tensor
        self.register_buffer("vector", torch.from_numpy(vector).clone())
        random = torch.Generator().manual_seed(seed)
        start = START * torch.randn(rows, len(vector), generator=random)
        self.rows = nn.Parameter(start)

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
