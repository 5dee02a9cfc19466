"""How far steps fall behind the playback of their frames, as a reserve for the next time.

A stream plays 80 ms for each step. What steps took longer than that, in a row, is what its listener
must have buffered; the most of it in the last while is what a listener should have in reserve. On a
quiet machine it is nothing. Where other work takes the cores it grows at once and is forgotten
slowly. Knows no streams.
"""

from __future__ import annotations

import math
from typing import Final

from engine.types import FRAME_SECONDS

HALF_LIFE: Final = 20.0  # seconds
MOST: Final = 1.5  # seconds; who would need more waits too long for the first sound
LEAST: Final = 0.05  # seconds; less is in every stream's own chunks


class Lateness:
    """Measured at each step while live streams run."""

    def __init__(self) -> None:
        self.behind = 0.0  # seconds, now
        self._most, self._at = 0.0, 0.0

    def observe(self, seconds: float, now: float) -> None:
        """A step took so long."""
        self.behind = min(MOST, max(0.0, self.behind + seconds - FRAME_SECONDS))
        self._most, self._at = max(self.behind, self._decayed(now)), now

    @property
    def late(self) -> bool:
        """Whether running streams should catch up before another one begins."""
        return self.behind >= LEAST

    def reset(self) -> None:
        """No live stream runs."""
        self.behind = 0.0

    def reserve(self, now: float, factor: float = 1.0) -> float:
        """`factor` times the seconds of audio that the last hold-ups would have used up."""
        most = self._decayed(now)
        return min(MOST, factor * most) if most >= LEAST else 0.0

    def _decayed(self, now: float) -> float:
        return self._most * math.exp2((self._at - now) / HALF_LIFE)
