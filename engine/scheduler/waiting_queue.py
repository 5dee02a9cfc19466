"""Sequences that wait for a slot, in the order in which they get one.

Live requests are ordered by arrival, files as if they had arrived some seconds later, so live
requests overtake a file for that long and no longer. A text whose next group waits goes first.
"""

from __future__ import annotations

from bisect import insort
from collections.abc import Iterable, Iterator

from engine.requests.sequence import Sequence


class WaitingQueue:
    """A sorted queue; each sequence has its position and an estimated wait."""

    def __init__(self) -> None:
        self._sequences: list[Sequence] = []

    def __len__(self) -> int:
        return len(self._sequences)

    def __iter__(self) -> Iterator[Sequence]:
        return iter(tuple(self._sequences))

    def add(self, sequence: Sequence) -> None:
        insort(self._sequences, sequence, key=_sort_key)

    def remove(self, sequence: Sequence) -> None:
        self._sequences.remove(sequence)
        sequence.position = None

    def update(self, estimates: Iterable[float]) -> None:
        """Write position and estimated wait to every sequence."""
        for position, (sequence, seconds) in enumerate(
            zip(self._sequences, estimates, strict=False)
        ):
            sequence.position = position
            sequence.estimate = seconds


def _sort_key(sequence: Sequence) -> tuple[bool, float, int]:
    """A text that is heard already and continues with its next group goes first."""
    return not sequence.continues, sequence.turn, sequence.id
