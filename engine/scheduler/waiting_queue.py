"""Sequences that wait for a slot, in the order in which they get one.

Live requests are ordered by arrival, files as if they had arrived some seconds later, so live
requests overtake a file for that long and no longer.
"""

from __future__ import annotations

from bisect import insort
from collections.abc import Iterator

from engine.requests.sequence import Sequence

FIRST_GUESS = 5.0  # seconds that a request holds its slot, before any was measured


class WaitingQueue:
    """A sorted queue; each sequence has its position and an estimated wait."""

    def __init__(self) -> None:
        self._order: list[Sequence] = []
        self._service = FIRST_GUESS  # seconds, a moving average

    def __len__(self) -> int:
        return len(self._order)

    def __iter__(self) -> Iterator[Sequence]:
        return iter(tuple(self._order))

    def add(self, sequence: Sequence) -> None:
        insort(self._order, sequence, key=lambda each: (each.turn, each.id))

    def remove(self, sequence: Sequence) -> None:
        self._order.remove(sequence)
        sequence.position = None

    def record_service(self, seconds: float) -> None:
        """Record how long a request held its slot."""
        self._service += 0.1 * (seconds - self._service)

    def seconds(self, position: int, capacity: int) -> float:
        """Estimated wait at this position if `capacity` requests run at a time."""
        return (position + 1) * self._service / max(1, capacity)

    def update(self, capacity: int) -> None:
        """Write position and estimate to every sequence."""
        for position, sequence in enumerate(self._order):
            sequence.position = position
            sequence.estimate = self.seconds(position, capacity)
