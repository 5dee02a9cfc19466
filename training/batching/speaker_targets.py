"""Where voices are at home among the speaker vectors: in a straight line along their axes.

So half way between two homes is the home of whoever is half way between the two voices. Knows
no speech and no networks.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor

from training import model_config
from training.data.speakers import BASES, FORMANTS, PACE

# How far apart an axis puts voices: by how well it is read off one sentence.
WEIGHTS = (2.6, 3.6, 0.7, 2.2, *(3.6 for _ in BASES))
MIDDLE = 3.0  # what all have in common, so that a cosine also tells more from less


def homes(axes: Tensor) -> Tensor:
    """Of voices with these axes [..., axes]: [..., width]."""
    scale = torch.tensor((*WEIGHTS, MIDDLE), device=axes.device)
    at = torch.cat((axes, torch.ones_like(axes[..., :1])), -1) * scale
    return at @ directions(len(scale)).to(axes.device)


def directions(count: int) -> Tensor:
    """So many directions at right angles to each other: [count, width]."""
    waves = torch.arange(1, count + 1)[:, None] * (torch.arange(model_config.WIDTH) + 0.5)
    return (waves * math.pi / model_config.WIDTH).cos() * math.sqrt(2 / model_config.WIDTH)


def faster(axes: Tensor, speed: float) -> Tensor:
    """Axes [..., axes] of the same voices played so much faster: higher, of shorter tracts."""
    moved = axes.clone()
    moved[..., :3] += math.log2(speed) * torch.tensor((1, FORMANTS, -PACE), device=axes.device)
    return moved
