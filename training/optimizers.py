"""Optimizers whose learning rate is a tensor, so that a captured step follows it."""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn


def make_optimizer(
    network: nn.Module,
    rate: Tensor,
    betas: tuple[float, float] = (0.8, 0.99),
    weight_decay: float = 0.01,
) -> torch.optim.AdamW:
    cuda = rate.device.type == "cuda"
    return torch.optim.AdamW(
        network.parameters(),
        lr=rate,
        betas=betas,
        weight_decay=weight_decay,
        fused=cuda,
        capturable=cuda,
    )


def reset_optimizer(optimizer: torch.optim.Optimizer) -> None:
    """Set an optimizer's moments and step counts to zero, where they are."""
    for state in optimizer.state.values():
        for value in state.values():
            value.zero_()


def rate_factor(step: int, warm_up: int, over: float, end: float = 0.0) -> float:
    """The learning rate's factor: linear warm-up, then cosine decay to `end`."""
    decay = end + (1 - end) * 0.5 * (1 + math.cos(math.pi * min(1.0, over)))
    return decay * min(1.0, (step + 1) / warm_up)
