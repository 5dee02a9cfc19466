"""Replays have room for all rows in order, at the least cost."""

from __future__ import annotations

from itertools import groupby

from hypothesis import example, given, settings
from hypothesis import strategies as st

from engine.worker.codec.codec_batching import (
    FRAMES,
    MAX_ROWS,
    MAX_TOTAL,
    ROWS,
    bucket_sizes,
    cut_rows,
    frame_bucket,
    plan_replays,
    replay_cost,
    row_bucket,
    split_frames,
)

SOME = st.lists(st.integers(1, FRAMES[-1]), max_size=150).map(lambda made: sorted(made)[::-1])
LONG = st.lists(st.integers(1, 3 * FRAMES[-1]), max_size=90).map(lambda made: sorted(made)[::-1])


def check_cover(counts: list[int], found: list[slice]) -> None:
    """Every row once, in order, and every replay has a graph."""
    assert [row for part in found for row in range(len(counts))[part]] == list(range(len(counts)))
    for part in found:
        rows = part.stop - part.start
        assert 0 < rows <= MAX_ROWS[frame_bucket(counts[part.start])]
        assert (row_bucket(rows), frame_bucket(counts[part.start])) in bucket_sizes(ROWS[-1])
        assert counts[part.start] == max(counts[part])


def groups(counts: list[int]) -> list[tuple[int, int]]:
    """Starts and ends of the runs of equal rows."""
    found = []
    for _, same in groupby(range(len(counts)), counts.__getitem__):
        rows = list(same)
        found.append((rows[0], rows[-1] + 1))
    return found


@given(SOME)
@example([12, 1])
@example([12] * 40 + [8] * 40 + [1] * 3)
@settings(deadline=None)
def test_replays_cost_no_more_than_simple_plans(counts: list[int]) -> None:
    found = plan_replays(counts)
    check_cover(counts, found)
    assert all(counts[part.start] <= frame_bucket(counts[part.start]) for part in found)
    pieces = [part for start, stop in groups(counts) for part in cut_rows(counts, start, stop)]
    assert replay_cost(counts, found) <= replay_cost(counts, pieces)
    assert replay_cost(counts, found) <= replay_cost(counts, cut_rows(counts, 0, len(counts)))


@given(st.lists(st.integers(1, FRAMES[-1]), min_size=1, max_size=7))
@settings(deadline=None)
def test_no_other_plan_costs_less(counts: list[int]) -> None:
    counts = sorted(counts)[::-1]
    ends = [stop for _, stop in groups(counts)]
    prices = []
    for chosen in range(1 << (len(ends) - 1)):
        stops = [stop for at, stop in enumerate(ends[:-1]) if chosen >> at & 1] + ends[-1:]
        cuts = zip([0, *stops], stops, strict=False)
        prices.append(
            replay_cost(counts, [part for edge in cuts for part in cut_rows(counts, *edge)])
        )
    assert replay_cost(counts, plan_replays(counts)) == min(prices)


@given(LONG)
def test_long_or_unragged_rows_share_a_replay_with_equal_ones_only(counts: list[int]) -> None:
    check_cover(counts, plan_replays(counts))
    for part in plan_replays(counts):
        assert counts[part.start] <= FRAMES[-1] or len({*counts[part]}) == 1
    same = plan_replays(counts, ragged=False)
    check_cover(counts, same)
    assert all(len({*counts[part]}) == 1 for part in same)


def test_padding_a_few_frames_is_cheaper_than_a_replay() -> None:
    assert plan_replays([4, 1]) == [slice(0, 2)]
    assert plan_replays([12] + [1] * 31) == [slice(0, 1), slice(1, 32)]


@given(st.integers(1, 500))
def test_split_frames_are_lengths_that_have_graphs(frames: int) -> None:
    found = list(split_frames(frames))
    assert sum(found) == frames
    assert set(found) <= {*FRAMES}


@given(st.integers(1, 100))
def test_buckets_cover_all_rows_and_no_more(rows: int) -> None:
    found = bucket_sizes(rows)
    assert found == sorted(found, reverse=True)
    assert all(w * f <= MAX_TOTAL for w, f in found)
    widest = row_bucket(min(rows, ROWS[-1]))
    assert {w for w, _ in found} == {w for w in ROWS if w <= widest}
