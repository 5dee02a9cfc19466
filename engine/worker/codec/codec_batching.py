"""Which streams share a replay of the codec's decoder, and of which size it is.

A replay costs something whatever it is of, and its rows and frames, those that only fill it
up as well. So a few rows with fewer frames are better off in a replay of more than in one of
their own. Knows counts only: no tensors, no streams.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Sequence

ROWS = (1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64)  # of a recording
FRAMES = (1, 2, 4, 8, 12)  # of each of its rows
MOST = 512  # frames at a time, over all rows: more are no quicker, and take memory
FIXED = 32  # frames that take as long as a replay of none
MAX_ROWS = {frames: max(rows for rows in ROWS if rows * frames <= MOST) for frames in FRAMES}


def row_bucket(rows: int) -> int:
    """Rows of the smallest recording for these; more than the largest has are cut before."""
    return ROWS[bisect_left(ROWS, rows)]


def frame_bucket(frames: int) -> int:
    """Frames of the smallest recording for these, or of the longest."""
    return FRAMES[min(bisect_left(FRAMES, frames), len(FRAMES) - 1)]


def bucket_sizes(rows: int) -> list[tuple[int, int]]:
    """Rows and frames of what is recorded for so many streams, the largest first."""
    widths = ROWS[: bisect_left(ROWS, rows) + 1]
    return sorted(((w, f) for w in widths for f in FRAMES if w <= MAX_ROWS[f]), reverse=True)


def split_frames(frames: int) -> Iterator[int]:
    """Frames as lengths that are recorded, the largest first."""
    for size in reversed(FRAMES):
        while frames >= size:
            yield size
            frames -= size


def plan_replays(counts: Sequence[int], ragged: bool = True) -> list[slice]:
    """The replays that cost least for rows with these frames, the longest first.

    Rows that are not `ragged`, or have more frames than a recording, are with their like only.
    """
    edges = [at for at in range(1, len(counts)) if counts[at] != counts[at - 1]]
    best: dict[int, tuple[int, list[slice]]] = {0: (0, [])}  # by the rows that are placed
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
    """These rows as replays that no recording is too narrow for."""
    made = []
    while start < stop:
        end = min(stop, start + MAX_ROWS[frame_bucket(counts[start])])
        made.append(slice(start, end))
        start = end
    return made


def replay_cost(counts: Sequence[int], graphs: Sequence[slice]) -> int:
    """In frames; each replay is as long as its first row."""
    filled = (
        row_bucket(each.stop - each.start) * frame_bucket(counts[each.start]) for each in graphs
    )
    return sum(FIXED + frames for frames in filled)
