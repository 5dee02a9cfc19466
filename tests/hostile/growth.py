"""Growth: four times the input takes about four times the time, and far from sixteen."""

from __future__ import annotations

import gc
import math
import time
from collections.abc import Callable, Sequence

MOST = 2.2  # times, for twice the input
ENOUGH = 0.01  # seconds beside which the clock and the call itself count little

Work = Callable[[], object]


def check_linear(
    prepared: Callable[[int], Work], smallest: int, largest: int, rounds: int = 24
) -> None:
    """Work on four times the input takes at most 2.2² times as long.

    `prepared`: work on an input of a size. It is told by CPU time of this thread, and the quickest
    of several runs counts: what others do to the cores makes runs longer, and none shorter. The
    smaller one is done four times, so that both are as long and as likely to be left alone. On
    busy cores more rounds are needed until both are.
    """
    size = smallest
    while size < largest and _seconds([prepared(size)]) < ENOUGH:
        size *= 2
    short, long = prepared(size), prepared(4 * size)
    one = four = math.inf
    for _ in range(rounds):
        one, four = min(one, _seconds([short] * 4) / 4), min(four, _seconds([long]))
        if four <= max(MOST**2 * one, ENOUGH):
            return
    raise AssertionError(f"{size} in {one:.4f} s, {4 * size} in {four:.4f} s")


def _seconds(works: Sequence[Work]) -> float:
    """Seconds without Python's collector, whose time depends on all else in the process."""
    gc.disable()
    try:
        started = time.thread_time()
        for work in works:
            work()
        return time.thread_time() - started
    finally:
        gc.enable()
