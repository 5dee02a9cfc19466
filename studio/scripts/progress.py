"""How far a rendering is, and how long it will take, judged by letters done and letters left."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True)
class Progress:
    """Lines, and what the time so far tells. `None`: nothing is done yet to judge by."""

    done: int
    failed: int
    total: int
    seconds_left: float | None
    speed: float | None  # seconds of sound made in a second

    @property
    def over(self) -> bool:
        return self.done + self.failed == self.total


class Forecast:
    """Counts what is made from `start` on."""

    def __init__(self, size: int, clock: Callable[[], float]) -> None:
        self._left = size  # letters still to be spoken
        self._done = 0
        self._sound = 0.0  # seconds made
        self._clock = clock
        self._started = clock()

    def start(self) -> None:
        self._started = self._clock()

    def made(self, size: int, seconds: float) -> None:
        self._left -= size
        self._done += size
        self._sound += seconds

    def dropped(self, size: int) -> None:
        """A line that has failed takes no more time."""
        self._left -= size

    def progress(self, done: int, failed: int, total: int) -> Progress:
        elapsed = self._clock() - self._started
        left = elapsed / self._done * self._left if self._done else None
        speed = self._sound / elapsed if self._done and elapsed > 0 else None
        return Progress(done, failed, total, 0.0 if done + failed == total else left, speed)
