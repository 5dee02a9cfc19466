"""Samples GPU utilization with nvidia-smi, four times per second.

Utilization is the share of time in which any kernel ran; it shows idle gaps, not how full kernels
are. Without nvidia-smi there are no figures.
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field


def asking(*options: str) -> tuple[str, ...]:
    """The nvidia-smi command for the first visible GPU."""
    seen, _, _ = os.environ.get("CUDA_VISIBLE_DEVICES", "").partition(",")
    return "nvidia-smi", "-i", seen or "0", *options


SAMPLED = (
    "--query-gpu=utilization.gpu,memory.used",
    *("--format=csv,noheader,nounits", "-lms", "250"),
)


@dataclass
class Card:
    """Samples: utilization in percent and memory in MiB."""

    samples: list[tuple[float, float]] = field(default_factory=list)

    def figures(self) -> dict[str, float]:
        if not self.samples:
            return {}
        busy, memory = zip(*self.samples, strict=True)
        return {"card_busy": sum(busy) / len(busy) / 100, "card_memory_mib": max(memory)}


@contextmanager
def watched(command: Sequence[str] = ()) -> Iterator[Card]:
    """Sample the first GPU until the block ends."""
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
        output, _ = sampling.communicate()
        card.samples += [sample for line in output.splitlines() if (sample := _sample(line))]


def _sample(line: str) -> tuple[float, float] | None:
    """Parse a line; None for a truncated line or [N/A]."""
    try:
        busy, memory = map(float, line.split(","))
    except ValueError:
        return None
    return busy, memory
