"""Voices on a way are counted in order as they would be by hand."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bench.quality.voice_similarity import in_order, one_way

VALUES = st.lists(st.floats(50, 400), min_size=9, max_size=9, unique=True)


@given(VALUES)
def test_sorted_all_are_in_order_either_way(values: list[float]) -> None:
    for each in (sorted(values), sorted(values, reverse=True)):
        assert in_order(each) == 9
        assert one_way(each) == 8


@given(VALUES, st.integers(1, 6))
def test_two_neighbours_that_change_places_cost_one(values: list[float], at: int) -> None:
    values.sort()
    values[at], values[at + 1] = values[at + 1], values[at]
    assert in_order(values) == 8
    assert one_way(values) == 7


@pytest.mark.parametrize(
    ("values", "ordered", "moves"),
    [
        ([1, 2, 9, 3, 4, 5, 6, 7, 8], 8, 7),  # one far off
        ([5, 1, 2, 3, 4, 6, 7, 8, 9], 8, 7),
        ([1, 3, 2, 5, 4, 7, 6, 9, 8], 5, 4),
        ([1, 1, 1, 1, 5, 5, 5, 5, 5], 2, 1),  # a switch
    ],
)
def test_ways_that_are_no_ways(values: list[float], ordered: int, moves: int) -> None:
    assert (in_order(values), one_way(values)) == (ordered, moves)
