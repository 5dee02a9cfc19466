"""An adapter (LoRA): a low-rank change of every attention and MLP matrix of talker and predictor.

Float32 beside a model of any precision, attached by hooks, so that the model's own weights stay as
they are: with B all zeros no output changes by a bit. The fused matrices (q, k and v; gate and up)
have one A and one B, which is the same as one of each with a shared A.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import torch
from safetensors import safe_open
from safetensors.torch import save
from torch import Tensor, nn

from engine import CheckpointError, write_atomic
from engine.model.talker import Talker
from engine.types import Vector

ADAPTED = ("qkv_proj", "o_proj", "gate_up_proj", "down_proj")
RANK, SCALE = 16, 2.0


class LowRank(nn.Module):
    """What is added to one matrix's output."""

    def __init__(self, linear: nn.Linear, rank: int, random: torch.Generator) -> None:
        super().__init__()
        size = linear.in_features
        self.a = nn.Parameter(torch.randn(rank, size, generator=random) / math.sqrt(size))
        self.b = nn.Parameter(torch.zeros(linear.out_features, rank))

    def forward(self, x: Tensor) -> Tensor:
        return SCALE * (x.to(self.a.dtype) @ self.a.T) @ self.b.T

    def change(self) -> Tensor:
        """What is added to the weight."""
        return SCALE * self.b @ self.a


class Adapter(nn.Module):
    """The adapter of a talker, and the vector of the voice that it is for."""

    RATE = 3e-4

    def __init__(self, talker: Talker, vector: Vector, rank: int = RANK, seed: int = 0) -> None:
        super().__init__()
        self.vector: Tensor
        self.register_buffer("vector", torch.from_numpy(vector).clone())
        random = torch.Generator().manual_seed(seed)
        self.changes = nn.ModuleDict(
            {_key(name): LowRank(linear, rank, random) for name, linear in adapted(talker)}
        )

    def forward(self) -> Tensor:
        """The voice's rows in the prompt: its vector alone."""
        return self.vector[None]

    @contextmanager
    def attached(self, talker: Talker) -> Iterator[None]:
        """Within, the talker's matrices are changed."""
        handles = []
        for name, linear in adapted(talker):
            net = self.changes[_key(name)]

            def add(_: nn.Module, x: tuple[Tensor], out: Tensor, net: nn.Module = net) -> Tensor:
                return out + net(x[0]).to(out.dtype)

            handles.append(linear.register_forward_hook(add))
        try:
            yield
        finally:
            for handle in handles:
                handle.remove()

    def limit(self) -> None:
        """Does nothing: here the hold alone keeps the words."""

    @torch.no_grad()
    def merge(self, talker: Talker) -> None:
        """Add the changes to the weights, in float32, rounded once."""
        for name, linear in adapted(talker):
            net = self.changes[_key(name)]
            assert isinstance(net, LowRank)
            weight = linear.weight
            merged = weight.float() + net.change().to(weight.device)
            linear.weight = nn.Parameter(merged.to(weight.dtype), requires_grad=False)

    def save(self, path: Path, digest: str) -> None:
        """The adapter as a file; `digest`: of the weights that it belongs to."""
        tensors = {name: value.detach().cpu() for name, value in self.state_dict().items()}
        write_atomic(path, bytes(save(tensors, {"timbre_adapter": json.dumps({"digest": digest})})))

    def load(self, path: Path, digest: str) -> None:
        """Raises CheckpointError for another model's adapter."""
        with safe_open(path, "pt") as file:
            card = json.loads((file.metadata() or {}).get("timbre_adapter", "{}"))
            if card.get("digest") != digest:
                raise CheckpointError(
                    "{name} was trained for other weights. Load that model, or train it again.",
                    name=path.name,
                )
            tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
        self.load_state_dict(tensors)


def adapted(talker: Talker) -> Iterator[tuple[str, nn.Linear]]:
    """The matrices that are adapted, by name."""
    for name, module in talker.named_modules():
        if name.rpartition(".")[2] in ADAPTED and isinstance(module, nn.Linear):
            yield name, module


def _key(name: str) -> str:
    """A name that a ModuleDict takes."""
    return name.replace(".", "/")
