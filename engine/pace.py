"""How long steps take on this machine, learnt from the steps themselves.

A moving straight line, fixed cost plus cost a row, over the rows of recent steps. A table of
averages by row count would be truer to steps in the line, but keeps a bad first measurement
of a count for as long as that count is avoided because of it; the line forgets it. Before
anything is measured one row is affordable; after that what a line through the origin allows,
so a burst on a cold engine is let in within a few steps, and no further than it can be served.
"""

from __future__ import annotations

FORGET = 0.96  # what a measurement counts for after one more
ORIGIN = 0.05  # weight of the point (0 rows, 0 s): one row count alone gives a line through it
OUTLIER = 2.0  # a slower step than this many times the estimate counts as this


class Pace:
    """Seconds of a step by its rows, and of a row of prefill."""

    def __init__(self) -> None:
        self.prefill_row = 0.0
        self._weight = ORIGIN
        self._x = self._y = self._xx = self._xy = 0.0

    def observe(self, rows: int, prefill_rows: int, seconds: float) -> None:
        if prefill_rows:
            self._observe_prefill(prefill_rows, seconds - self.seconds(rows))
        elif rows:
            self._observe_frames(rows, seconds)

    def seconds(self, rows: int) -> float:
        """A step of this many rows, without prefill."""
        if not self._xx or not rows:
            return 0.0
        spread = self._weight * self._xx - self._x * self._x
        slope = (self._weight * self._xy - self._x * self._y) / spread if spread > 0 else 0.0
        slope = max(0.0, slope)
        fixed = max(0.0, (self._y - slope * self._x) / self._weight)
        return fixed + slope * rows

    def rows_within(self, seconds: float, most: int) -> int:
        """The largest row count whose step takes no longer; at least one."""
        if not self._xx:
            return 1
        low, high = 1, max(1, most)
        while low < high:
            middle = (low + high + 1) // 2
            low, high = (middle, high) if self.seconds(middle) <= seconds else (low, middle - 1)
        return low

    def _observe_frames(self, rows: int, seconds: float) -> None:
        known = self.seconds(rows)
        seconds = min(seconds, OUTLIER * known) if known else seconds
        self._weight = ORIGIN + (self._weight - ORIGIN) * FORGET + 1.0
        self._x = self._x * FORGET + rows
        self._y = self._y * FORGET + seconds
        self._xx = self._xx * FORGET + rows * rows
        self._xy = self._xy * FORGET + rows * seconds

    def _observe_prefill(self, rows: int, seconds: float) -> None:
        each = max(0.0, seconds) / rows
        self.prefill_row = 0.7 * self.prefill_row + 0.3 * each if self.prefill_row else each
