"""Estimates how long steps take on this machine from recent steps.

Two lines, fixed cost plus cost per row: one for decode rows, one for prompt rows. A table of
averages by row count would fit single counts better, but would keep a bad first measurement for as
long as that count is avoided because of it; a line forgets it. Before any measurement one row is
affordable, then what a line through the origin allows, so a burst on a cold engine is admitted
within a few steps and no further than it can be served. A talker that was timed while loading has
anchors instead, so that a burst after a single stream is not overestimated.
"""

from __future__ import annotations

from collections.abc import Mapping

from engine.thresholds import ANCHOR, ENOUGH, FORGET, OUTLIER


class LinearCost:
    """Seconds by rows: a least-squares line over recent steps and anchors.

    The default anchor is zero seconds for zero rows, so a single row count gives a line through the
    origin.
    """

    def __init__(self) -> None:
        self._recent = [0.0] * 5
        self.anchor({0: 0.0})
        self.anchored = False

    def anchor(self, seconds: Mapping[int, float]) -> None:
        """Set points that were measured beforehand."""
        points = [_sums(rows, value) for rows, value in seconds.items()]
        self._known = [ANCHOR * sum(column) for column in zip(*points, strict=True)]
        self.anchored = True

    def __bool__(self) -> bool:
        """Whether anything was measured."""
        return self._recent[0] > 0

    @property
    def measured(self) -> bool:
        """Whether enough was measured to trust the line."""
        return self._recent[0] > ENOUGH

    def observe(self, rows: int, seconds: float) -> None:
        usual = max(self.seconds(rows), self._mean)  # few measurements may be far from the line
        seconds = min(seconds, OUTLIER * usual) if usual else seconds
        now = _sums(rows, seconds)
        self._recent = [old * FORGET + new for old, new in zip(self._recent, now, strict=True)]

    @property
    def _mean(self) -> float:
        """Of recent measurements, whatever their rows; 0 if there are none."""
        weight, _, seconds, _, _ = self._recent
        return seconds / weight if weight else 0.0

    def seconds(self, rows: int) -> float:
        """0 if nothing is known."""
        return self.expected(rows) if rows and (self or self.anchored) else 0.0

    def expected(self, rows: int) -> float:
        """The same, from anchors alone if nothing was measured."""
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
    """One point's terms of the sums for a least-squares line."""
    return 1.0, rows, seconds, rows * rows, rows * seconds


class StepCost:
    """Seconds of a step by decode rows, and the additional seconds by prompt rows."""

    def __init__(self) -> None:
        self.decode, self.prefill = LinearCost(), LinearCost()
        self._codec = 0.0, 0.0  # weight and seconds of a frame, where it runs beside the steps
        self.latest = 0.0  # seconds of the last step; 0: it had prompts

    def observe(self, rows: int, prompt_rows: int, seconds: float) -> None:
        self.latest = 0.0 if prompt_rows else seconds
        if prompt_rows:
            self.prefill.observe(prompt_rows, max(0.0, seconds - self.seconds(rows)))
        elif rows:
            self.decode.observe(rows, seconds)

    def observe_codec(self, rows: int, frames: int, seconds: float) -> None:
        """The codec took so long for some frames, beside a step of so many rows."""
        if rows and frames and seconds:
            made, took = self._codec
            self._codec = made * FORGET + 1, took * FORGET + seconds / frames

    @property
    def codec_frame(self) -> float:
        """Seconds of a frame in the codec beside the steps; 0 if it is part of them."""
        weight, seconds = self._codec
        return seconds / weight if weight else 0.0

    def seconds(self, rows: int) -> float:
        """A step of this many decode rows, without prompts; what the codec takes for as many frames
        beside it, if that is more."""
        return max(self.decode.seconds(rows), rows * self.codec_frame)

    @property
    def alone(self) -> float:
        """The same for one row, as far as anything is known of it."""
        return max(self.decode.expected(1), self.codec_frame)

    def expected(self, seconds: float, most: int) -> tuple[int, float]:
        """How many rows a step takes in this time, at least one, and how long that step is.

        From what was timed while loading if nothing was measured since; 0 seconds if nothing was.
        """
        line = self.decode
        if not line and not line.anchored:
            return 1, 0.0

        def step(rows: int) -> float:
            return max(line.expected(rows), rows * self.codec_frame)

        rows = next((rows for rows in range(most, 1, -1) if step(rows) <= seconds), 1)
        return rows, step(rows)

    def rows_within(self, seconds: float, most: int) -> int:
        """The largest row count whose step takes no longer; at least one."""
        if not self.decode:
            return 1
        most = min(most, int(seconds / self.codec_frame)) if self.codec_frame else most
        return max(1, self.decode.within(seconds, most))
