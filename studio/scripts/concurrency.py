"""How many lines may be made at once, so that the one that is heard next is not late.

Alone a line is made fastest. So a listener gets the first lines one by one, and more are made
beside them as the lead grows: on a fast engine that takes a moment, on a slow one it keeps the
sound from stopping. Knows nothing of how lines are made.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from engine import SAMPLE_RATE
from studio.scripts.tracks import Track

STEP = 4.0  # seconds of lead for each line more
PLENTY = 20.0  # seconds of lead from which on nothing is held back


class Pace:
    """Looks at the tracks in the order they are heard."""

    def __init__(self, tracks: Sequence[Track], at_once: int, clock: Callable[[], float]) -> None:
        self._tracks = tracks
        self._at_once = at_once
        self._clock = clock
        self._ended = 0  # so many tracks have ended, from the first on
        self._samples = 0  # of them
        self._began: float | None = None  # when the first sound came

    def allowed(self) -> int:
        """Lines in flight, at least one."""
        lead = self.lead()
        return self._at_once if lead >= PLENTY else min(self._at_once, 1 + int(max(0, lead) / STEP))

    def lead(self) -> float:
        """Seconds that can be heard without a gap and have not been heard yet."""
        while self._ended < len(self._tracks) and self._tracks[self._ended].ended:
            self._samples += self._tracks[self._ended].samples
            self._ended += 1
        going = self._tracks[self._ended].samples if self._ended < len(self._tracks) else 0
        made = self._samples + going
        if made and self._began is None:
            self._began = self._clock()
        return (
            made / SAMPLE_RATE - (self._clock() - self._began) if self._began is not None else 0.0
        )
