"""Voices between voices: which two, mixed, come near a third one.

With it a talker learns what a point between two vectors is to sound like. Knows axes, no vectors.
"""

from __future__ import annotations

from functools import cache
from typing import NamedTuple

import torch
from torch import Tensor

from training.speakers import TRAINED, everyone

TRIES, KEPT = 4000, 8  # pairs looked at and kept for each voice
APART = 0.8  # on the axes: nearer ones say nothing about the way between them
INSIDE = 0.15  # of the way at least, from either end


class Mixes(NamedTuple):
    """For each voice some pairs of others, and how much of the second to take: [voices, KEPT]."""

    first: Tensor
    second: Tensor
    share: Tensor

    def draw(self, voices: Tensor, vectors: Tensor) -> Tensor:
        """A mix near each of these voices [B], of everybody's vectors [voices, width]."""
        pick = torch.randint(KEPT, voices.shape, device=voices.device)
        first, second, share = (each[voices, pick] for each in self)
        return vectors[first].lerp(vectors[second], share[:, None])


@cache
def trained() -> Mixes:
    """Of the voices that are learned."""
    return mixes(torch.tensor([speaker.axes() for speaker in everyone()[:TRAINED]]))


def mixes(axes: Tensor) -> Mixes:
    """The same for the same voices. Axes [voices, …]."""
    random = torch.Generator().manual_seed(0)
    found = [_near(voice, axes, random) for voice in range(len(axes))]
    return Mixes(*(torch.stack(column) for column in zip(*found, strict=True)))


def _near(voice: int, axes: Tensor, random: torch.Generator) -> tuple[Tensor, Tensor, Tensor]:
    """The pairs [KEPT] whose way comes nearest, among some drawn by chance."""
    others = torch.arange(len(axes) - 1)
    others += others >= voice
    first, second = others[torch.randint(len(others), (2, TRIES), generator=random)]
    start, way = axes[first], axes[second] - axes[first]
    length = way.square().sum(1).clamp(min=1e-9)
    share = (((axes[voice] - start) * way).sum(1) / length).clamp(INSIDE, 1 - INSIDE)
    off = (start + share[:, None] * way - axes[voice]).square().sum(1)
    off[length < APART**2] = torch.inf
    best = off.topk(KEPT, largest=False).indices
    return first[best], second[best], share[best]
