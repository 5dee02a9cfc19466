"""How many lines may be generated at once, so that the line played next is not late.

A single line is generated fastest. So the first lines are generated one by one, and more in
parallel as the lead grows: on a fast engine that is soon, on a slow one it prevents gaps.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from engine import SAMPLE_RATE
from studio.scripts.tracks import Track

STEP = 4.0  # seconds of lead for each additional line
PLENTY = 20.0  # seconds of lead above which there is no limit


class Pace:
    """Computes the lead from the tracks in playing order."""

    def __init__(self, tracks: Sequence[Track], at_once: int, clock: Callable[[], float]) -> None:
        self._tracks = tracks
        self._at_once = at_once
        self._clock = clock
        self._ended = 0  # number of leading tracks that have ended
        self._samples = 0  # of these tracks
        self._began: float | None = None  # when the first audio came

    def allowed(self) -> int:
        """Lines in flight, at least one."""
        lead = self.lead()
        return self._at_once if lead >= PLENTY else min(self._at_once, 1 + int(max(0, lead) / STEP))

    def lead(self) -> float:
        """Seconds of contiguous audio that were not played yet."""
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
