"""A clock that is slower than the wall's, so that few cores do the work of many.

One second of it takes `factor` seconds. Twins step by it, streams collect chunks by it, listeners
play by it, and rates are for each of its seconds: all is as on cores that are `factor` times as
fast. Timers of Ray, of the API and of sockets keep to the wall's clock.
"""

from __future__ import annotations

import time
from types import SimpleNamespace

from engine import stream
from engine.testing import Clock


class SlowClock(Clock):
    """The clock of twins and listeners."""

    def __init__(self, factor: float) -> None:
        self.factor = factor

    def now(self) -> float:
        return time.monotonic() / self.factor

    def sleep(self, seconds: float) -> None:
        super().sleep(seconds * self.factor)


def slow_streams(clock: SlowClock) -> None:
    """In this process. Streams rest for seconds of their event loop, which has the wall's."""
    stream.__dict__["time"] = SimpleNamespace(monotonic=clock.now)
    stream.__dict__["RESTED"] *= clock.factor
    stream.__dict__["LONGEST_REST"] *= clock.factor
