"""Progress of a rendering and its remaining time, estimated by letters."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True)
class Progress:
    """Numbers of lines, and estimates; None before the first line is done."""

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
        self._started = clock()

    def start(self) -> None:
        self._started = self._clock()

    def made(self, size: int, seconds: float) -> None:
        self._left -= size
        self._done += size
        self._sound += seconds

    def dropped(self, size: int) -> None:
        """Remove a failed line from the estimate."""
        self._left -= size

    def progress(self, done: int, failed: int, total: int) -> Progress:
        elapsed = self._clock() - self._started
        left = elapsed / self._done * self._left if self._done else None
        speed = self._sound / elapsed if self._done and elapsed > 0 else None
        return Progress(done, failed, total, 0.0 if done + failed == total else left, speed)
