"""Optimizers whose learning rate is a tensor, so that a captured step follows it."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Sequence
from typing import Any, Protocol

import torch
from torch import Tensor, nn

# A step of Newton and Schulz that makes all singular values about one (Keller Jordan's Muon).
NEWTON_SCHULZ = (3.4445, -4.7750, 2.0315)
NEWTON_SCHULZ_STEPS = 5
UPDATE_SIZE = 0.2  # root mean square of an update at a rate of one, about AdamW's


class Optimizer(Protocol):
    @property
    def param_groups(self) -> list[dict[str, Any]]: ...
    def zero_grad(self) -> None: ...
    def step(self) -> Any: ...
    def state_dict(self) -> dict[str, Any]: ...
    def load_state_dict(self, state_dict: dict[str, Any]) -> None: ...


def make_optimizer(
    network: nn.Module | Sequence[Tensor],
    rate: Tensor,
    betas: tuple[float, float] = (0.8, 0.99),
    weight_decay: float = 0.01,
) -> torch.optim.AdamW:
    cuda = rate.device.type == "cuda"
    return torch.optim.AdamW(
        network.parameters() if isinstance(network, nn.Module) else network,
        lr=rate,
        betas=betas,
        weight_decay=weight_decay,
        fused=cuda,
        capturable=cuda,
    )


def reset_optimizer(optimizer: Any) -> None:
    """Set an optimizer's moments and step counts to zero, where they are."""
    for state in optimizer.state.values():
        for value in state.values():
            value.zero_()


class Muon(torch.optim.Optimizer):
    """Momentum for matrices whose updates are made orthogonal, so that every direction of a layer
    learns as fast. A fused weight is several matrices: `blocks` says how many rows each has.

    The same steps as torch.optim.Muon (`match_rms_adamw`), which takes its rate as a number, so
    that a captured step would not follow it, and one matrix at a time.
    """

    def __init__(
        self,
        weights: Sequence[tuple[Tensor, Sequence[int]]],
        rate: Tensor,
        momentum: float = 0.95,
        weight_decay: float = 0.03,
    ) -> None:
        self._blocks = [blocks for _, blocks in weights]
        defaults = {"lr": rate, "momentum": momentum, "weight_decay": weight_decay}
        super().__init__([weight for weight, _ in weights], defaults)

    @torch.no_grad()
    def step(self, closure: Any = None) -> None:  # type: ignore[override]  # takes none
        (group,) = self.param_groups
        matrices, updates = defaultdict(list), defaultdict(list)
        for weight, blocks in zip(group["params"], self._blocks, strict=True):
            update = self._momentum(weight, group["momentum"])
            for matrix, new in zip(weight.split(blocks), update.split(blocks), strict=True):
                matrices[matrix.shape].append(matrix)
                updates[matrix.shape].append(new)
        for (rows, columns), alike in matrices.items():
            change = orthogonal(torch.stack(updates[rows, columns]))
            change = change * (UPDATE_SIZE * math.sqrt(max(rows, columns)) * group["lr"])
            torch._foreach_mul_(alike, 1 - group["lr"] * group["weight_decay"])
            torch._foreach_sub_(alike, list(change.to(alike[0].dtype)))

    def _momentum(self, weight: Tensor, share: float) -> Tensor:
        state = self.state[weight]
        if not state:
            state["momentum"] = torch.zeros_like(weight)
        state["momentum"].lerp_(weight.grad, 1 - share)
        return weight.grad.lerp(state["momentum"], share)  # type: ignore[union-attr]


def orthogonal(matrices: Tensor) -> Tensor:
    """About the nearest orthogonal matrix of each [n, rows, columns]."""
    tall = matrices.shape[1] > matrices.shape[2]
    x = matrices.mT if tall else matrices
    x = x.bfloat16() if x.is_cuda else x
    x = x / (x.norm(dim=(1, 2), keepdim=True) + 1e-7)
    a, b, c = NEWTON_SCHULZ
    for _ in range(NEWTON_SCHULZ_STEPS):
        square = x @ x.mT
        x = a * x + (b * square + c * square @ square) @ x
    return (x.mT if tall else x).float()


class Optimizers:
    """Several that step together."""

    def __init__(self, *parts: torch.optim.Optimizer) -> None:
        self.parts = parts

    @property
    def param_groups(self) -> list[dict[str, Any]]:
        return [group for part in self.parts for group in part.param_groups]

    def zero_grad(self) -> None:
        for part in self.parts:
            part.zero_grad()

    def step(self) -> None:
        for part in self.parts:
            part.step()

    def reset(self) -> None:
        for part in self.parts:
            reset_optimizer(part)

    def state_dict(self) -> dict[str, Any]:
        return {"parts": [part.state_dict() for part in self.parts]}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        for part, state in zip(self.parts, state_dict["parts"], strict=True):
            part.load_state_dict(state)


def rate_factor(step: int, warm_up: int, over: float, end: float = 0.0) -> float:
    """The learning rate's factor: linear warm-up, then cosine decay to `end`."""
    decay = end + (1 - end) * 0.5 * (1 + math.cos(math.pi * min(1.0, over)))
    return decay * min(1.0, (step + 1) / warm_up)
