"""From a position on the blend pad to the voices' weights, and back.

The pad is a square with a voice at each corner; weights are bilinear. Two voices are its left and
right edges; with three, the third is the bottom edge.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, TypeAlias

Point: TypeAlias = tuple[float, float]  # right, down; each 0 to 1

MOST = 4
CENTRE: Final[Point] = (0.5, 0.5)
# The voice of each corner: top left, top right, bottom left, bottom right.
CORNERS: Final = {1: (0, 0, 0, 0), 2: (0, 1, 0, 1), 3: (0, 1, 2, 2), 4: (0, 1, 2, 3)}


def weights_at(point: Point, voices: int) -> tuple[float, ...]:
    """The weight of each voice; they sum to one."""
    x, y = (min(1.0, max(0.0, value)) for value in point)
    areas = ((1 - x) * (1 - y), x * (1 - y), (1 - x) * y, x * y)
    weights = [0.0] * voices
    for voice, area in zip(CORNERS[voices], areas, strict=True):
        weights[voice] += area
    return tuple(weights)


def point_of(weights: Sequence[float]) -> Point:
    """The position that has these weights; with four voices, the closest one."""
    total = sum(weights)
    shares = [weight / total for weight in weights]
    if len(shares) == 4:
        return shares[1] + shares[3], shares[2] + shares[3]
    below = shares[2] if len(shares) == 3 else 0.5
    across = sum(shares[:2])
    right = shares[1] / across if len(shares) > 1 and across else 0.5
    return right, below


def percents(weights: Sequence[float]) -> tuple[int, ...]:
    """Whole percentages that sum to 100, by the largest remainder method."""
    total = sum(weights)
    exact = [100 * weight / total for weight in weights]
    whole = [int(value) for value in exact]
    by_rest = sorted(range(len(exact)), key=lambda index: whole[index] - exact[index])
    for index in by_rest[: 100 - sum(whole)]:
        whole[index] += 1
    return tuple(whole)
