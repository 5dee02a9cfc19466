"""A recording as a card makes it, played on the CPU: it fills the same memory every time."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from torch import Tensor

Made = TypeVar("Made", Tensor, "Tensor | None")


def record(work: Callable[[], Made]) -> Callable[[], Made]:
    kept: list[Tensor] = []

    def replay() -> Made:
        made = work()
        if made is None:
            return None
        if not kept:
            kept.append(made)
        return kept[0].copy_(made)

    return replay
