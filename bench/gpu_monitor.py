"""How busy the card is while something runs, as nvidia-smi samples it four times a second.

Busy is the share of time in which any kernel ran, so it tells idle gaps and not how full the
kernels are. Without nvidia-smi there are no figures.
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field


def asking(*options: str) -> tuple[str, ...]:
    """nvidia-smi about the first card that this process may see."""
    seen, _, _ = os.environ.get("CUDA_VISIBLE_DEVICES", "").partition(",")
    return "nvidia-smi", "-i", seen or "0", *options


SAMPLED = (
    "--query-gpu=utilization.gpu,memory.used",
    *("--format=csv,noheader,nounits", "-lms", "250"),
)


@dataclass
class Card:
    """What was sampled: busy in percent and memory in MiB."""

    samples: list[tuple[float, float]] = field(default_factory=list)

    def figures(self) -> dict[str, float]:
        if not self.samples:
            return {}
        busy, memory = zip(*self.samples, strict=True)
        return {"card_busy": sum(busy) / len(busy) / 100, "card_memory_mib": max(memory)}


@contextmanager
def watched(command: Sequence[str] = ()) -> Iterator[Card]:
    """The first card, sampled until the block ends."""
    card = Card()
    try:
        sampling = subprocess.Popen(command or asking(*SAMPLED), stdout=subprocess.PIPE, text=True)
    except OSError:
        yield card
        return
    try:
        yield card
    finally:
        sampling.terminate()
        told, _ = sampling.communicate()
        card.samples += [sample for line in told.splitlines() if (sample := _sample(line))]


def _sample(line: str) -> tuple[float, float] | None:
    """A line cut short by the end, or one that says [N/A], is none."""
    try:
        busy, memory = map(float, line.split(","))
    except ValueError:
        return None
    return busy, memory
