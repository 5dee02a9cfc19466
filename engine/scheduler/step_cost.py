"""How long steps take on this machine, estimated from recent steps.

Two straight lines, fixed cost plus cost per row: one for decode rows, one for prompt rows. A table
of averages by row count would follow single counts better, but would keep a bad first measurement
for as long as that count is avoided because of it; a line forgets it. Before anything is measured
one row is affordable, then what a line through the origin allows, so a burst on a cold engine is
admitted within a few steps and no further than it can be served. A device that was timed while
loading has anchors instead, so that a burst after a single stream is not overestimated.
"""

from __future__ import annotations

from collections.abc import Mapping

FORGET = 0.96  # weight of a measurement after one more
ANCHOR = 0.05  # weight of a point known beforehand: it matters only where nothing else is measured
ENOUGH = 8.0  # remembered measurements from which a line is more than a guess
OUTLIER = 2.0  # a step slower than this many times the estimate counts as this many times


class LinearCost:
    """Seconds by rows: a least-squares line over recent steps and anchors.

    The first anchor says that no rows take no time, which gives a single row count a line through
    the origin.
    """

    def __init__(self) -> None:
        self._recent = [0.0] * 5
        self.anchor({0: 0.0})

    def anchor(self, seconds: Mapping[int, float]) -> None:
        """Points that are known beforehand."""
        points = [_sums(rows, value) for rows, value in seconds.items()]
        self._known = [ANCHOR * sum(column) for column in zip(*points, strict=True)]

    def __bool__(self) -> bool:
        """Whether anything was measured."""
        return self._recent[0] > 0

    @property
    def measured(self) -> bool:
        """Whether enough was measured for more than a guess."""
        return self._recent[0] > ENOUGH

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
        """The largest row count that takes no longer, at most `most`; 0 if none does."""
        low, high = 0, max(0, most)
        while low < high:
            middle = (low + high + 1) // 2
            low, high = (middle, high) if self.seconds(middle) <= seconds else (low, middle - 1)
        return low


def _sums(rows: int, seconds: float) -> tuple[float, ...]:
    """The sums that a least-squares line needs, for one point."""
    return 1.0, rows, seconds, rows * rows, rows * seconds


class StepCost:
    """Seconds of a step by its decode rows, and of the prompt rows in it."""

    def __init__(self) -> None:
        self.decode, self.prefill = LinearCost(), LinearCost()

    def observe(self, rows: int, prompt_rows: int, seconds: float) -> None:
        if prompt_rows:
            self.prefill.observe(prompt_rows, max(0.0, seconds - self.seconds(rows)))
        elif rows:
            self.decode.observe(rows, seconds)

    def seconds(self, rows: int) -> float:
        """A step of this many rows, without prompts."""
        return self.decode.seconds(rows)

    def rows_within(self, seconds: float, most: int) -> int:
        """The largest row count whose step takes no longer; at least one."""
        return max(1, self.decode.within(seconds, most)) if self.decode else 1
