"""Target vectors of speakers: a linear function of their axes.

So the midpoint of two targets is the target of the voice half way between the two. Knows no speech
and no networks.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor

from training import model_config
from training.data.speakers import FIRST_STYLES, FORMANTS, PACE

# The scale of each axis, by how well it can be read from one sentence.
WEIGHTS = (2.6, 2.4, 0.7, 2.2, *(3.6 for _ in range(FIRST_STYLES)))
MIDDLE = 3.0  # common to all, so that a cosine also depends on the distance
FURTHER = 3.6  # of what styles differ by from mixtures of the first ones


def speaker_targets(axes: Tensor) -> Tensor:
    """Targets of voices with these axes [..., axes]: [..., width]."""
    known, further = axes.split((len(WEIGHTS), axes.shape[-1] - len(WEIGHTS)), -1)
    scale = torch.tensor((*WEIGHTS, MIDDLE, *(FURTHER,) * further.shape[-1]), device=axes.device)
    at = torch.cat((known, torch.ones_like(axes[..., :1]), further), -1) * scale
    return at @ directions(len(scale)).to(axes.device)


def directions(count: int) -> Tensor:
    """Orthogonal directions: [count, width]."""
    waves = torch.arange(1, count + 1)[:, None] * (torch.arange(model_config.WIDTH) + 0.5)
    return (waves * math.pi / model_config.WIDTH).cos() * math.sqrt(2 / model_config.WIDTH)


def faster(axes: Tensor, speed: float) -> Tensor:
    """Axes [..., axes] of the same voices played faster: higher pitch, shorter vocal tract."""
    moved = axes.clone()
    moved[..., :3] += math.log2(speed) * torch.tensor((1, FORMANTS, -PACE), device=axes.device)
    return moved
