"""The queue: sequences that have no slot yet, in the order in which they get one.

Live requests stand by their arrival, files some seconds further back, so a file is passed by
younger live requests for that long and no longer.
"""

from __future__ import annotations

from bisect import insort
from collections.abc import Iterator

from engine.requests.sequence import Sequence

FIRST_GUESS = 5.0  # seconds a request keeps its slot, before any has been seen


class Waiting:
    """Kept in order; everybody knows their position and an estimate."""

    def __init__(self) -> None:
        self._order: list[Sequence] = []
        self._service = FIRST_GUESS

    def __len__(self) -> int:
        return len(self._order)

    def __iter__(self) -> Iterator[Sequence]:
        return iter(tuple(self._order))

    def add(self, sequence: Sequence) -> None:
        insort(self._order, sequence, key=lambda each: (each.turn, each.id))

    def remove(self, sequence: Sequence) -> None:
        self._order.remove(sequence)
        sequence.position = None

    def served(self, seconds: float) -> None:
        """Somebody has kept a slot for this long."""
        self._service += 0.1 * (seconds - self._service)

    def seconds(self, position: int, places: int) -> float:
        """How long the one at this position has to wait when so many are served at once."""
        return (position + 1) * self._service / max(1, places)

    def tell(self, places: int) -> None:
        """Give everybody their position and estimate."""
        for position, sequence in enumerate(self._order):
            sequence.position = position
            sequence.estimate = self.seconds(position, places)
