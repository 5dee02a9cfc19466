"""How long steps take on this machine, learnt from the steps themselves.

Moving straight lines, fixed cost plus cost a row, over the rows of recent steps: one for
frames, one for prompts. A table of averages by row count would be truer to steps in the line,
but keeps a bad first measurement of a count for as long as that count is avoided because of
it; the line forgets it. Before anything is measured one row is affordable; after that what a
line through the origin allows, so a burst on a cold engine is let in within a few steps, and
no further than it can be served.
"""

from __future__ import annotations

FORGET = 0.96  # what a measurement counts for after one more
ORIGIN = 0.05  # weight of the point (0 rows, 0 s): one row count alone gives a line through it
OUTLIER = 2.0  # a slower step than this many times the estimate counts as this


class Line:
    """Seconds by rows, as they were of late."""

    def __init__(self) -> None:
        self._weight = ORIGIN
        self._x = self._y = self._xx = self._xy = 0.0

    def __bool__(self) -> bool:
        """Something has been measured."""
        return bool(self._xx)

    def observe(self, rows: int, seconds: float) -> None:
        known = self.seconds(rows)
        seconds = min(seconds, OUTLIER * known) if known else seconds
        self._weight = ORIGIN + (self._weight - ORIGIN) * FORGET + 1.0
        self._x = self._x * FORGET + rows
        self._y = self._y * FORGET + seconds
        self._xx = self._xx * FORGET + rows * rows
        self._xy = self._xy * FORGET + rows * seconds

    def seconds(self, rows: int) -> float:
        if not self._xx or not rows:
            return 0.0
        spread = self._weight * self._xx - self._x * self._x
        slope = (self._weight * self._xy - self._x * self._y) / spread if spread > 0 else 0.0
        slope = max(0.0, slope)
        fixed = max(0.0, (self._y - slope * self._x) / self._weight)
        return fixed + slope * rows

    def within(self, seconds: float, most: int) -> int:
        """The largest row count that takes no longer; none where one does."""
        low, high = 0, max(0, most)
        while low < high:
            middle = (low + high + 1) // 2
            low, high = (middle, high) if self.seconds(middle) <= seconds else (low, middle - 1)
        return low


class Pace:
    """Seconds of a step by its rows, and of the rows of prompts in it."""

    def __init__(self) -> None:
        self.frames, self.prompts = Line(), Line()

    def observe(self, rows: int, prompt_rows: int, seconds: float) -> None:
        if prompt_rows:
            self.prompts.observe(prompt_rows, max(0.0, seconds - self.seconds(rows)))
        elif rows:
            self.frames.observe(rows, seconds)

    def seconds(self, rows: int) -> float:
        """A step of this many rows, without prompts."""
        return self.frames.seconds(rows)

    def rows_within(self, seconds: float, most: int) -> int:
        """The largest row count whose step takes no longer; at least one."""
        return max(1, self.frames.within(seconds, most)) if self.frames else 1
