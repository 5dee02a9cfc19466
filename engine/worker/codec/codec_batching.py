"""Splits the codec's streams over graph replays at the least cost.

A replay costs a fixed amount plus its rows times frames, padding included, so a few rows with fewer
frames are cheaper in a larger replay than in one of their own. Counts only: no tensors.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Sequence

ROWS = (1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64)  # of a captured graph
FRAMES = (1, 2, 4, 8, 12)  # of each of its rows
MAX_TOTAL = 512  # frames of all rows of a replay; more are not faster and take memory
REPLAY_FRAMES = 32  # the fixed cost of a replay, in frames (measured on an H200)
MAX_ROWS = {frames: max(rows for rows in ROWS if rows * frames <= MAX_TOTAL) for frames in FRAMES}


def row_bucket(rows: int) -> int:
    """The smallest bucket for `rows`, at most ROWS[-1]."""
    return ROWS[bisect_left(ROWS, rows)]


def frame_bucket(frames: int) -> int:
    """The smallest bucket for `frames`, or the largest one."""
    return FRAMES[min(bisect_left(FRAMES, frames), len(FRAMES) - 1)]


def bucket_sizes(rows: int) -> list[tuple[int, int]]:
    """(rows, frames) of the graphs for `rows` streams, the largest first."""
    widths = ROWS[: bisect_left(ROWS, rows) + 1]
    return sorted(((w, f) for w in widths for f in FRAMES if w <= MAX_ROWS[f]), reverse=True)


def split_frames(frames: int) -> Iterator[int]:
    """Split a number of frames into bucket sizes, the largest first."""
    for size in reversed(FRAMES):
        while frames >= size:
            yield size
            frames -= size


def plan_replays(counts: Sequence[int], ragged: bool = True) -> list[slice]:
    """The cheapest replays for rows with these frame counts, the longest first.

    Without `ragged`, and with more frames than a graph has, a replay's rows have equal counts.
    """
    edges = [at for at in range(1, len(counts)) if counts[at] != counts[at - 1]]
    best: dict[int, tuple[int, list[slice]]] = {0: (0, [])}  # planned rows -> (cost, replays)
    for stop in (*edges, len(counts)) if counts else ():
        ways = (
            (cost + replay_cost(counts, more), [*before, *more])
            for start, (cost, before) in best.items()
            if counts[start] == counts[stop - 1] or (ragged and counts[start] <= FRAMES[-1])
            for more in [cut_rows(counts, start, stop)]
        )
        best[stop] = min(ways, key=lambda way: way[0])
    return best[len(counts)][1]


def cut_rows(counts: Sequence[int], start: int, stop: int) -> list[slice]:
    """Rows [start, stop) as replays of at most MAX_ROWS."""
    replays = []
    while start < stop:
        end = min(stop, start + MAX_ROWS[frame_bucket(counts[start])])
        replays.append(slice(start, end))
        start = end
    return replays


def replay_cost(counts: Sequence[int], replays: Sequence[slice]) -> int:
    """The cost in frames. A replay is as long as its first row."""
    padded = (
        row_bucket(each.stop - each.start) * frame_bucket(counts[each.start]) for each in replays
    )
    return sum(REPLAY_FRAMES + frames for frames in padded)
