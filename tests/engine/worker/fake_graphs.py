"""A recording as a card makes it, played on the CPU: it fills the same memory every time."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from torch import Tensor

Result = TypeVar("Result", Tensor, "Tensor | None")


def fake_capture(work: Callable[[], Result]) -> Callable[[], Result]:
    kept: list[Tensor] = []

    def replay() -> Result:
        made = work()
        if made is None:
            return None
        if not kept:
            kept.append(made)
        return kept[0].copy_(made)

    return replay
