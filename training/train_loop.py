"""The training loop: steps for a number of minutes, with regular logs and saves.

A trainer counts its steps and seconds and has a learning rate.
"""

from __future__ import annotations

import argparse
import math
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, Protocol

import torch

from training import state as states
from training.graph_steps import Metrics
from training.peers import EVERY, Peers


class Trainer(Protocol):
    step: int
    seconds: float

    def rate(self, progress: float) -> None: ...


def begun(given: argparse.Namespace) -> torch.device:
    """Set TF32 and the seed, and return the device."""
    torch.backends.cuda.matmul.allow_tf32 = True
    torch.backends.cudnn.allow_tf32 = True
    torch.manual_seed(given.seed)
    return torch.device(given.device)


def options(about: str | None, hours: float, seed: int) -> argparse.ArgumentParser:
    """Command line options of all training scripts."""
    parser = argparse.ArgumentParser(description=about)
    parser.add_argument("--speech", type=Path, required=True)
    parser.add_argument("--state", type=Path, required=True)
    parser.add_argument("--again", action="store_true", help="a whole schedule from these weights")
    parser.add_argument("--minutes", type=float, default=15)
    parser.add_argument("--by", type=float, help="stop by this time, in seconds since 1970")
    parser.add_argument("--record", action="store_true", help="replay steps from CUDA graphs")
    parser.add_argument("--steps", type=int, default=10**9)
    parser.add_argument("--hours", type=float, default=hours)
    parser.add_argument("--wait-hours", type=float, default=0)
    parser.add_argument("--every", type=int, default=200)
    parser.add_argument("--save-every", type=float, default=120)
    parser.add_argument("--seed", type=int, default=seed)
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    return parser


def follow(
    trainer: Trainer,
    given: argparse.Namespace,
    step: Callable[[], Metrics],
    tell: Callable[[Metrics], None],
    state: Callable[[], dict[str, Any]],
    peers: Peers | None = None,
) -> None:
    """Run steps until the time or number of steps is over; call `tell` regularly.

    Among `peers`, weights are shared regularly, and the first of them tells, saves and ends it.
    """
    first = peers is None or peers.rank == 0
    clock, saved = states.Clock(trainer.seconds), time.monotonic()
    if given.by:
        given.minutes = min(given.minutes, (trainer.seconds + given.by - time.time()) / 60)
    while goes_on(trainer, given, peers):
        trainer.rate(progress(trainer, given))
        losses = step()
        trainer.step += 1
        trainer.seconds = clock.tick()
        if trainer.step % given.every == 0:
            tell(losses)
        if first and time.monotonic() - saved > given.save_every:
            states.save(state(), given.state)
            saved = time.monotonic()
    if first:
        states.save(state(), given.state)


def goes_on(trainer: Trainer, given: argparse.Namespace, peers: Peers | None) -> bool:
    """Whether another step is due; among peers, every few steps they share weights and agree."""
    over = progress(trainer, given) if trainer.step < given.steps else 1.0
    if peers is not None:
        if trainer.step % EVERY:
            return True
        peers.share()
        over = peers.agree(over)
    return over < 1


def rate_factor(step: int, warm: int, over: float, end: float = 0.0) -> float:
    """The learning rate's factor: linear warm-up, then cosine decay to `end`."""
    decay = end + (1 - end) * 0.5 * (1 + math.cos(math.pi * min(1.0, over)))
    return decay * min(1.0, (step + 1) / warm)


def starts_anew(given: argparse.Namespace) -> bool:
    """Whether no optimizer is to be restored: only then may its steps be captured before."""
    return given.again or not given.state.exists()


def progress(trainer: Trainer, given: argparse.Namespace) -> float:
    """The share of the available time that is over."""
    return float(trainer.seconds / (given.minutes * 60)) if given.minutes > 0 else 1.0


def line(trainer: Trainer, hours: float, losses: Metrics) -> str:
    told = " ".join(f"{name} {value.item():.3f}" for name, value in losses.items())
    return f"{trainer.step} {trainer.seconds:.0f}s {hours:.1f}h {told}"
