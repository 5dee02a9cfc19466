"""Rows are parted among replays completely, in order, and for the least that it costs."""

from __future__ import annotations

from itertools import groupby

from hypothesis import example, given, settings
from hypothesis import strategies as st

from engine.worker.codec.codec_batching import (
    FRAMES,
    MOST,
    ROWS,
    WIDEST,
    cut,
    length,
    parts,
    pieces,
    price,
    sizes,
    width,
)

SOME = st.lists(st.integers(1, FRAMES[-1]), max_size=150).map(lambda made: sorted(made)[::-1])
LONG = st.lists(st.integers(1, 3 * FRAMES[-1]), max_size=90).map(lambda made: sorted(made)[::-1])


def whole(counts: list[int], found: list[slice]) -> None:
    """Every row once, in order, and no recording is too small."""
    assert [row for part in found for row in range(len(counts))[part]] == list(range(len(counts)))
    for part in found:
        rows = part.stop - part.start
        assert 0 < rows <= WIDEST[length(counts[part.start])]
        assert (width(rows), length(counts[part.start])) in sizes(ROWS[-1])
        assert counts[part.start] == max(counts[part])


def groups(counts: list[int]) -> list[tuple[int, int]]:
    """Where rows of the same frames begin and end."""
    found = []
    for _, same in groupby(range(len(counts)), counts.__getitem__):
        rows = list(same)
        found.append((rows[0], rows[-1] + 1))
    return found


@given(SOME)
@example([12, 1])
@example([12] * 40 + [8] * 40 + [1] * 3)
@settings(deadline=None)
def test_parts_cost_no_more_than_what_is_plain(counts: list[int]) -> None:
    found = parts(counts)
    whole(counts, found)
    assert all(counts[part.start] <= length(counts[part.start]) for part in found)
    own = [part for start, stop in groups(counts) for part in cut(counts, start, stop)]
    assert price(counts, found) <= price(counts, own)
    assert price(counts, found) <= price(counts, cut(counts, 0, len(counts)))


@given(st.lists(st.integers(1, FRAMES[-1]), min_size=1, max_size=7))
@settings(deadline=None)
def test_no_other_boundaries_cost_less(counts: list[int]) -> None:
    counts = sorted(counts)[::-1]
    ends = [stop for _, stop in groups(counts)]
    prices = []
    for chosen in range(1 << (len(ends) - 1)):
        stops = [stop for at, stop in enumerate(ends[:-1]) if chosen >> at & 1] + ends[-1:]
        cuts = zip([0, *stops], stops, strict=False)
        prices.append(price(counts, [part for edge in cuts for part in cut(counts, *edge)]))
    assert price(counts, parts(counts)) == min(prices)


@given(LONG)
def test_what_is_alike_stays_alone(counts: list[int]) -> None:
    whole(counts, parts(counts))
    for part in parts(counts):
        assert counts[part.start] <= FRAMES[-1] or len({*counts[part]}) == 1
    same = parts(counts, ragged=False)
    whole(counts, same)
    assert all(len({*counts[part]}) == 1 for part in same)


def test_a_few_frames_more_are_cheaper_than_a_replay() -> None:
    assert parts([4, 1]) == [slice(0, 2)]
    assert parts([12] + [1] * 31) == [slice(0, 1), slice(1, 32)]


@given(st.integers(1, 500))
def test_pieces_are_lengths_that_are_recorded(frames: int) -> None:
    found = list(pieces(frames))
    assert sum(found) == frames
    assert set(found) <= {*FRAMES}


@given(st.integers(1, 100))
def test_recordings_are_enough_and_no_more(rows: int) -> None:
    found = sizes(rows)
    assert found == sorted(found, reverse=True)
    assert all(w * f <= MOST for w, f in found)
    widest = width(min(rows, ROWS[-1]))
    assert {w for w, _ in found} == {w for w in ROWS if w <= widest}
