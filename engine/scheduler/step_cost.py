"""How long steps take on this machine, learnt from the steps themselves.

Moving straight lines, fixed cost plus cost a row, over the rows of recent steps: one for
frames, one for prompts. A table of averages by row count would be truer to steps in the line,
but keeps a bad first measurement of a count for as long as that count is avoided because of
it; the line forgets it. Before anything is measured one row is affordable; after that what a
line through the origin allows, so a burst on a cold engine is let in within a few steps, and
no further than it can be served. A device that was timed beforehand has anchors instead: there
a burst after a time alone is not taken for so many times the work.
"""

from __future__ import annotations

from collections.abc import Mapping

FORGET = 0.96  # what a measurement counts for after one more
ANCHOR = 0.05  # weight of a point that is known beforehand: it counts where nothing else does
GUESSES = 8.0  # measurements, as they are remembered
OUTLIER = 2.0  # a slower step than this many times the estimate counts as this


class Line:
    """Seconds by rows, as they were of late.

    Anchors are what is known beforehand; at first only that no rows take no time, which gives
    one row count alone a line through the origin.
    """

    def __init__(self) -> None:
        self._recent = [0.0] * 5
        self.anchor({0: 0.0})

    def anchor(self, seconds: Mapping[int, float]) -> None:
        points = [_sums(rows, value) for rows, value in seconds.items()]
        self._known = [ANCHOR * sum(column) for column in zip(*points, strict=True)]

    def __bool__(self) -> bool:
        """Something has been measured."""
        return self._recent[0] > 0

    @property
    def settled(self) -> bool:
        """Enough has been measured for more than a guess."""
        return self._recent[0] > GUESSES

    def observe(self, rows: int, seconds: float) -> None:
        known = self.seconds(rows)
        seconds = min(seconds, OUTLIER * known) if known else seconds
        now = _sums(rows, seconds)
        self._recent = [old * FORGET + new for old, new in zip(self._recent, now, strict=True)]

    def seconds(self, rows: int) -> float:
        if not self or not rows:
            return 0.0
        weight, x, y, xx, xy = map(sum, zip(self._recent, self._known, strict=True))
        spread = weight * xx - x * x
        slope = max(0.0, (weight * xy - x * y) / spread) if spread > 0 else 0.0
        fixed = max(0.0, (y - slope * x) / weight)
        return fixed + slope * rows

    def within(self, seconds: float, most: int) -> int:
        """The largest row count that takes no longer; none where one does."""
        low, high = 0, max(0, most)
        while low < high:
            middle = (low + high + 1) // 2
            low, high = (middle, high) if self.seconds(middle) <= seconds else (low, middle - 1)
        return low


def _sums(rows: int, seconds: float) -> tuple[float, ...]:
    """What a least-squares line needs of a point."""
    return 1.0, rows, seconds, rows * rows, rows * seconds


class StepCost:
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
