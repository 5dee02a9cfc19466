"""The training loop: steps for a number of minutes, with regular logs and saves.

A trainer is networks with their optimizer, learning rate and progress; its subclasses have the
losses. A saved state has all of it, so that training that was stopped continues exactly.
"""

from __future__ import annotations

import argparse
import time
from abc import ABC, abstractmethod
from collections.abc import Callable
from pathlib import Path
from typing import Any, ClassVar

import torch
from torch import nn

from training import state as states
from training.graph_steps import GraphedStep, Metrics, Step, values
from training.optimizers import Optimizer, rate_factor
from training.peers import EVERY, Peers


class Trainer(ABC):
    """`learning_rate` is a tensor on the device, so that a captured step follows it."""

    optimizer: Optimizer
    advance: Step  # one step on a batch
    warm_up: Callable[..., None]  # compiles and captures steps, without learning from them
    OPTIMIZER: ClassVar[str]  # its name in a saved state
    WARM_UP: ClassVar[int]  # steps
    END: ClassVar[float]  # of the highest rate, which is left in the end

    def __init__(self, device: torch.device, highest: float) -> None:
        self.device, self.highest = device, highest
        self.learning_rate = torch.tensor(highest, device=device)
        self.step, self.seconds = 0, 0.0

    @abstractmethod
    def weights(self) -> dict[str, Any]:
        """The states of all networks, and of optimizers that belong to losses."""

    @abstractmethod
    def load_weights(self, state: dict[str, Any], restart: bool) -> None:
        """Load what `weights` saved; what fits of it on a `restart`."""

    def state(self) -> dict[str, Any]:
        return {
            **self.weights(),
            self.OPTIMIZER: self.optimizer.state_dict(),
            "step": self.step,
            "seconds": self.seconds,
            "rng_state": states.rng_state(self.device),
        }

    def resume(self, path: Path, restart: bool) -> None:
        """Continue exactly, or `restart`: a new schedule from the weights."""
        state = states.load(path)
        restart = restart or self.OPTIMIZER not in state
        self.load_weights(state, restart)
        if restart:
            return
        self.optimizer.load_state_dict(state[self.OPTIMIZER])
        for group in self.optimizer.param_groups:
            group["lr"] = self.learning_rate
        self.step, self.seconds = state["step"], state["seconds"]
        states.set_rng_state(state["rng_state"])

    def set_learning_rate(self, progress: float) -> None:
        self.learning_rate.fill_(
            self.highest * rate_factor(self.step, self.WARM_UP, progress, self.END)
        )

    def descend(self, networks: nn.Module, largest_norm: float) -> torch.Tensor:
        """A step along the gradients, clipped; their norm before that."""
        norm = nn.utils.clip_grad_norm_(networks.parameters(), largest_norm)
        self.optimizer.step()
        return norm


def set_up(args: argparse.Namespace) -> torch.device:
    """Set TF32 and the seed, and return the device."""
    torch.backends.cuda.matmul.allow_tf32 = True
    torch.backends.cudnn.allow_tf32 = True
    torch.manual_seed(args.seed)
    return torch.device(args.device)


def base_parser(about: str | None, **defaults: float) -> argparse.ArgumentParser:
    """Command line options of all training scripts."""
    parser = argparse.ArgumentParser(description=about)
    parser.add_argument("--speech", type=Path, required=True)
    parser.add_argument("--hours", type=float, help="of speech on the device, at most")
    parser.add_argument("--wait-hours", type=float, default=0, help="of speech to wait for")
    parser.add_argument("--minutes", type=float, default=15)
    parser.add_argument("--until", type=float, help="stop by this time, in seconds since 1970")
    parser.add_argument("--rate", type=float, help="of learning, at most")
    parser.add_argument("--log-every", type=int, default=200, help="steps")
    parser.add_argument("--seed", type=int)
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.set_defaults(**defaults)
    return parser


def trainer_parser(about: str | None, **defaults: float) -> argparse.ArgumentParser:
    """Command line options of scripts that have a `Trainer`."""
    parser = base_parser(about, **defaults)
    parser.add_argument("--state", type=Path, required=True)
    parser.add_argument("--restart", action="store_true", help="a schedule from these weights")
    parser.add_argument("--cuda-graphs", action="store_true", help="capture and replay steps")
    parser.add_argument("--compile", action="store_true", help="networks, by torch.compile")
    parser.add_argument("--steps", type=int, default=10**9)
    parser.add_argument("--save-every", type=float, default=120, help="seconds")
    return parser


def make_step(trainer: Trainer, args: argparse.Namespace, *sizes: int) -> Step:
    """The trainer's step. If steps are captured and no optimizer state is to be restored, this one
    is captured now, in these sizes."""
    if not args.cuda_graphs:
        return trainer.advance
    step = GraphedStep(trainer.advance)
    if is_fresh(args):
        trainer.warm_up(step, *sizes)
        print("warm", flush=True)
    return step


def train(
    trainer: Trainer,
    args: argparse.Namespace,
    step: Callable[[], Metrics],
    log: Callable[[Metrics], None],
    peers: Peers | None = None,
) -> None:
    """Run steps until the time or number of steps is over; call `log` regularly.

    Among `peers`, weights are shared regularly, and the first of them tells, saves and ends it.
    """
    first = peers is None or peers.rank == 0
    clock, saved = states.Clock(trainer.seconds), time.monotonic()
    if args.until:
        args.minutes = min(args.minutes, (trainer.seconds + args.until - time.time()) / 60)
    while goes_on(trainer, args, peers):
        trainer.set_learning_rate(progress(trainer, args))
        losses = step()
        trainer.step += 1
        trainer.seconds = clock.tick()
        if trainer.step % args.log_every == 0:
            log(losses)
        if first and time.monotonic() - saved > args.save_every:
            states.save(trainer.state(), args.state)
            saved = time.monotonic()
    if first:
        states.save(trainer.state(), args.state)


def goes_on(trainer: Trainer, args: argparse.Namespace, peers: Peers | None) -> bool:
    """Whether another step is due; among peers, every few steps they share weights and agree."""
    over = progress(trainer, args) if trainer.step < args.steps else 1.0
    if peers is not None:
        if trainer.step % EVERY:
            return True
        peers.share()
        over = peers.agree(over)
    return over < 1


def is_fresh(args: argparse.Namespace) -> bool:
    """Whether no optimizer is to be restored: only then may its steps be captured before."""
    return args.restart or not args.state.exists()


def progress(trainer: Trainer, args: argparse.Namespace) -> float:
    """The share of the available time that is over."""
    return float(trainer.seconds / (args.minutes * 60)) if args.minutes > 0 else 1.0


def wait_for(*paths: Path | None, until: float | None) -> None:
    """Return when these files are there; fail if they are not by a time in seconds since 1970."""
    while missing := [str(path) for path in paths if path and not path.exists()]:
        if until and time.time() > until:
            raise SystemExit(f"{' and '.join(missing)} did not come in time")
        time.sleep(0.5)


def log_line(trainer: Trainer, hours: float, losses: Metrics) -> str:
    return f"{trainer.step} {trainer.seconds:.0f}s {hours:.1f}h {values(losses)}"
