"""Progress of a rendering and its remaining time, estimated by letters.

The rate is the median of what was spoken in the windows so far, and the time left counts down with
the clock until the estimate is clearly another: neither a slow line nor a quick one makes it jump.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from statistics import median
from typing import Final

WINDOW: Final = 15.0  # seconds, at least, in which a rate is measured
WINDOWS: Final = 60  # that are remembered
EARLY: Final = 0.1  # of the letters left that tell a rate before there is a window
CLEARLY: Final = 0.25  # of the time left by which an estimate differs before it is shown


@dataclass(frozen=True)
class Progress:
    """Numbers of lines, and estimates; None before enough is done."""

    done: int
    failed: int
    total: int
    seconds_left: float | None
    speed: float | None  # seconds of audio per second

    @property
    def over(self) -> bool:
        return self.done + self.failed == self.total


class Forecast:
    """Counts generated audio from `start` on."""

    def __init__(self, size: int, clock: Callable[[], float]) -> None:
        self._left = size  # letters still to be spoken
        self._done = 0
        self._sound = 0.0  # seconds of audio
        self._clock = clock
        self._started = self._began = clock()  # of all, and of the window
        self._in_window = 0  # letters
        self._rates: deque[float] = deque(maxlen=WINDOWS)  # letters per second
        self._estimate: tuple[float, float] | None = None  # when how many seconds were left

    def start(self) -> None:
        self._started = self._began = self._clock()

    def made(self, size: int, seconds: float) -> None:
        self._left -= size
        self._done += size
        self._sound += seconds
        self._in_window += size
        passed = self._clock() - self._began
        if passed >= WINDOW:
            self._rates.append(self._in_window / passed)
            self._began, self._in_window = self._clock(), 0

    def dropped(self, size: int) -> None:
        """Remove a failed line from the estimate."""
        self._left -= size

    def expect(self, size: int) -> None:
        """Other letters than before are still to be spoken."""
        if size != self._left:
            self._left, self._estimate = size, None

    def progress(self, done: int, failed: int, total: int) -> Progress:
        elapsed = self._clock() - self._started
        speed = self._sound / elapsed if self._done and elapsed > 0 else None
        left = 0.0 if done + failed == total else self._seconds_left(elapsed)
        return Progress(done, failed, total, left, speed)

    def _seconds_left(self, elapsed: float) -> float | None:
        if elapsed <= 0 or (not self._rates and self._done < EARLY * self._left):
            return None
        rate = median(self._rates) if self._rates else self._done / elapsed
        now, left = self._clock(), max(0, self._left) / rate if rate else 0.0
        if self._estimate:
            counted = self._estimate[1] - (now - self._estimate[0])
            if abs(left - counted) <= CLEARLY * max(left, counted):
                return max(0.0, counted)
        self._estimate = now, left
        return left
