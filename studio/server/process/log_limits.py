"""The same line again and again does not fill the disk: a few of it a minute, then their number.

A client decides how often some lines are written: a request that cannot be read, a connection that
cannot be accepted. Knows no sentences.
"""

from __future__ import annotations

import logging
import time
from typing import Final

LOGGERS: Final = ("uvicorn.error", "asyncio", "timbre")
MOST: Final = 5
SECONDS: Final = 60.0


class RepeatFilter(logging.Filter):
    """Passes MOST of the same line in SECONDS; the first one after that tells what was left out."""

    def __init__(self) -> None:
        super().__init__()
        self._start = 0.0
        self._counts: dict[tuple[object, ...], int] = {}

    def filter(self, record: logging.LogRecord) -> bool:
        now = time.monotonic()
        if now - self._start > SECONDS:
            left_out = sum(max(0, count - MOST) for count in self._counts.values())
            self._start, self._counts = now, {}
            if left_out:
                record.msg = f"{record.msg} ({left_out} lines like the last ones were left out)"
        key = _kind(record)
        self._counts[key] = self._counts.get(key, 0) + 1
        return self._counts[key] <= MOST


def limit_repeats() -> None:
    """To be called when logging has been configured."""
    only = RepeatFilter()
    for name in LOGGERS:
        logging.getLogger(name).addFilter(only)


def _kind(record: logging.LogRecord) -> tuple[object, ...]:
    """What two lines have in common that differ in their values alone."""
    raised, _, place = record.exc_info or (None, None, None)
    while place and place.tb_next:
        place = place.tb_next
    line = (place.tb_frame.f_code.co_filename, place.tb_lineno) if place else ()
    first = str(record.msg).partition("\n")[0][:80]
    return record.name, record.pathname, record.lineno, first, raised, *line
