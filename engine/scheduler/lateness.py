"""How late audio is made and delivered here, as a reserve for the next time.

A stream plays 80 ms for each step. What steps took longer than that, in a row, is what its listener
must have buffered, and so is the time for which a finished chunk waited for its event loop. The
most of both in the last while is what a listener should have in reserve. On a quiet machine it is
nothing. Where other work takes the cores it grows at once and is forgotten slowly. Knows no
streams.
"""

from __future__ import annotations

import math

from engine.thresholds import LATENESS_HALF_LIFE, LEAST_RESERVE, MOST_RESERVE
from engine.types import FRAME_SECONDS


class Peak:
    """The largest of recent values; each is forgotten by half in LATENESS_HALF_LIFE."""

    def __init__(self) -> None:
        self._value, self._at = 0.0, 0.0

    def observe(self, value: float, now: float) -> None:
        self._value, self._at = max(value, self.at(now)), now

    def at(self, now: float) -> float:
        return self._value * math.pow(2, (self._at - now) / LATENESS_HALF_LIFE)


class Lateness:
    """Measured while live streams run. Used by the engine's thread."""

    def __init__(self) -> None:
        self.behind = 0.0  # seconds by which steps are behind now
        self._steps, self._delivery = Peak(), Peak()

    def observe(self, seconds: float, now: float) -> None:
        """A step took so long."""
        self.behind = min(MOST_RESERVE, max(0.0, self.behind + seconds - FRAME_SECONDS))
        self._steps.observe(self.behind, now)

    def observe_delivery(self, seconds: float, now: float) -> None:
        """A chunk reached its reader so long after it was made."""
        self._delivery.observe(min(MOST_RESERVE, seconds), now)

    @property
    def late(self) -> bool:
        """Whether running streams should catch up before another one begins."""
        return self.behind >= LEAST_RESERVE

    def reset(self) -> None:
        """No live stream runs."""
        self.behind = 0.0

    def reserve(self, now: float, factor: float = 1.0) -> float:
        """Seconds of audio: `factor` times what late steps would have used up, and what late
        deliveries would have."""
        steps, delivery = self._steps.at(now), self._delivery.at(now)
        needed = (factor * steps if steps >= LEAST_RESERVE else 0.0) + delivery
        return min(MOST_RESERVE, needed) if needed >= LEAST_RESERVE else 0.0
