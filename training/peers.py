"""Processes that train the same networks, a GPU each, on speech of their own.

Each takes its steps alone, so that they can be replayed from CUDA graphs; every few steps the
weights are averaged. Running means (codebooks) are those of the first process, and so is the clock.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from datetime import timedelta
from pathlib import Path

import torch
import torch.distributed as dist
from torch import Tensor, nn

EVERY = 8  # steps from one average to the next
PATIENCE = timedelta(minutes=5)  # for a process that does not come


class Peers:
    """This process among `count`, which find each other by a file that is not there before."""

    def __init__(
        self,
        rank: int,
        count: int,
        meeting: Path,
        device: torch.device,
        networks: Sequence[nn.Module],
    ) -> None:
        self.rank, self.count, self.device = rank, count, device
        self._weights = [x for network in networks for x in network.parameters()]
        buffers = [x for network in networks for x in network.buffers()]
        self._means = [x for x in buffers if x.is_floating_point()]
        dist.init_process_group(
            "nccl" if device.type == "cuda" else "gloo",
            store=dist.FileStore(str(meeting), count),  # type: ignore[attr-defined]
            rank=rank,
            world_size=count,
            timeout=PATIENCE,
        )

    @torch.no_grad()
    def share(self) -> None:
        """The networks' weights become the average, their buffers those of the first process."""
        flat = flatten(self._weights)
        dist.all_reduce(flat)
        unflatten(flat / self.count, self._weights)
        flat = flatten(self._means)
        dist.broadcast(flat, 0)
        unflatten(flat, self._means)

    def agree(self, value: float) -> float:
        """What the first process says."""
        shared = torch.tensor(value, dtype=torch.float64, device=self.device)
        dist.broadcast(shared, 0)
        return float(shared)

    @staticmethod
    def leave() -> None:
        dist.destroy_process_group()


def flatten(tensors: Sequence[Tensor]) -> Tensor:
    return torch.cat([x.flatten() for x in tensors])


def unflatten(flat: Tensor, tensors: Sequence[Tensor]) -> None:
    """Write back what `flatten` made of these tensors."""
    parts = flat.split([x.numel() for x in tensors])
    for x, part in zip(tensors, parts, strict=True):
        x.copy_(part.view_as(x))


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--peers", type=int, default=1, help="processes that train together")
    parser.add_argument("--rank", type=int, default=0, help="which of them this one is")
    parser.add_argument("--meeting", type=Path, help="the file by which they find each other")


def join(
    args: argparse.Namespace, device: torch.device, networks: Sequence[nn.Module]
) -> Peers | None:
    """The processes that train these networks with this one, if there are any."""
    if args.peers == 1:
        return None
    return Peers(args.rank, args.peers, args.meeting, device, networks)
