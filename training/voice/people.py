"""Whether the vectors of lines are one person's or two people's. Knows no networks and no pages."""

from __future__ import annotations

import numpy as np

from engine.types import Vector

TWO_SPEAKERS = 0.15  # share of a second group of vectors that is one
APART = 2.0  # times the spread within, that two people's vectors lie apart
ALIKE = 0.93  # cosine of two groups' means from which both are one person in two ways of speaking
LEAST = 6  # vectors of which something can be told


def second_person(vectors: Vector) -> tuple[int, ...]:
    """The numbers of the vectors that are somebody else's; none where one person speaks."""
    if len(vectors) < LEAST:
        return ()
    unit = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    first, second = _two_groups(unit)
    if len(second) == 0 or not _apart(unit, first, second):
        return ()
    return tuple(map(int, second))


def are_two(others: int, vectors: int) -> bool:
    """Whether nobody can say which of the two is meant."""
    return others >= TWO_SPEAKERS * vectors


def _two_groups(unit: Vector) -> tuple[np.ndarray, np.ndarray]:
    """Two means, from the two lines that lie farthest apart; the larger group first."""
    one = int((unit @ unit.mean(0)).argmin())
    two = int((unit @ unit[one]).argmin())
    middles = unit[[one, two]]
    for _ in range(20):
        nearest = (unit @ middles.T).argmax(1)
        if nearest.min() == nearest.max():
            return np.arange(len(unit)), np.zeros(0, int)
        middles = np.stack([unit[nearest == k].mean(0) for k in (0, 1)])
    groups = [np.flatnonzero(nearest == k) for k in (0, 1)]
    groups.sort(key=len, reverse=True)
    return groups[0], groups[1]


def _apart(unit: Vector, first: np.ndarray, second: np.ndarray) -> bool:
    one, two = unit[first].mean(0), unit[second].mean(0)
    within = np.concatenate(
        [np.linalg.norm(unit[first] - one, axis=1), np.linalg.norm(unit[second] - two, axis=1)]
    )
    alike = one @ two / (np.linalg.norm(one) * np.linalg.norm(two))
    return bool(alike < ALIKE and np.linalg.norm(one - two) > APART * np.sqrt(np.mean(within**2)))
