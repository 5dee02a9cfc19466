"""Whether the vectors of lines are one person's or two people's. Knows no networks and no pages."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from engine.types import Vector

TWO_SPEAKERS = 0.15  # share of a second group of vectors that is one
APART = 2.0  # times the spread within, that two people's vectors lie apart
ALIKE = 0.93  # cosine of two groups' means from which both are one person in two ways of speaking
FEW, OF_FEW = 2, 0.91  # so few lines may be one person's loud or laughing ones: then so alike
LEAST = 6  # vectors of which something can be told


def second_person(vectors: Vector) -> tuple[int, ...]:
    """The numbers of the vectors that are somebody else's; none where one person speaks."""
    if len(vectors) < LEAST:
        return ()
    unit = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    found = [groups for groups in _two_groups(unit) if _apart(unit, *groups)]
    return tuple(
        map(int, min(found, key=lambda groups: _spread(unit, *groups))[1] if found else ())
    )


def are_two(others: int, vectors: int) -> bool:
    """Whether nobody can say which of the two is meant."""
    return others >= TWO_SPEAKERS * vectors


def _two_groups(unit: Vector) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Two groups, the larger first: grown from the two lines that lie farthest apart, and from all
    and the one that is least like them, since a single stranger is no middle of a group."""
    one = int((unit @ unit.mean(0)).argmin())
    two = int((unit @ unit[one]).argmin())
    for middles in (unit[[one, two]], np.stack([unit[one], unit.mean(0)])):
        groups = _grown(unit, middles)
        if groups is not None:
            yield groups


def _grown(unit: Vector, middles: Vector) -> tuple[np.ndarray, np.ndarray] | None:
    for _ in range(20):
        nearest = np.linalg.norm(unit[:, None] - middles, axis=2).argmin(1)
        if nearest.min() == nearest.max():
            return None
        middles = np.stack([unit[nearest == k].mean(0) for k in (0, 1)])
    groups = [np.flatnonzero(nearest == k) for k in (0, 1)]
    groups.sort(key=len, reverse=True)
    return groups[0], groups[1]


def _apart(unit: Vector, first: np.ndarray, second: np.ndarray) -> bool:
    one, two = unit[first].mean(0), unit[second].mean(0)
    alike = one @ two / (np.linalg.norm(one) * np.linalg.norm(two))
    far = np.linalg.norm(one - two) > APART * _spread(unit, first, second)
    return bool(alike < (ALIKE if len(second) > FEW else OF_FEW) and far)


def _spread(unit: Vector, first: np.ndarray, second: np.ndarray) -> float:
    """How far lines lie from the middle of their group, in the mean."""
    within = [np.linalg.norm(unit[each] - unit[each].mean(0), axis=1) for each in (first, second)]
    return float(np.sqrt(np.mean(np.concatenate(within) ** 2)))
