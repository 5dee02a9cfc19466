"""The pad's weights, both ways, whatever the place."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from studio.ui.blend_pad.pad_weights import percents, point_of, weights_at

share = st.floats(0, 1)
points = st.tuples(share, share)
counts = st.integers(1, 4)


@given(points, counts)
def test_weights_are_shares_of_one(point, voices):
    weights = weights_at(point, voices)
    assert len(weights) == voices
    assert min(weights) >= 0
    assert sum(weights) == pytest.approx(1)


@given(points, counts)
def test_a_handle_outside_stands_on_the_edge(point, voices):
    far = tuple(3 * value if value > 0.5 else -value for value in point)
    near = tuple(min(1.0, max(0.0, value)) for value in far)
    assert weights_at(far, voices) == weights_at(near, voices)


@given(points, counts)
def test_weights_put_the_handle_where_they_came_from(point, voices):
    weights = weights_at(point, voices)
    assert weights_at(point_of(weights), voices) == pytest.approx(weights, abs=1e-6)


@given(st.lists(st.floats(1e-3, 1e3), min_size=2, max_size=3))
def test_two_or_three_voices_reach_every_blend(weights):
    total = sum(weights)
    shares = weights_at(point_of(weights), len(weights))
    assert shares == pytest.approx([weight / total for weight in weights])


@pytest.mark.parametrize("voices", [1, 2, 3, 4])
def test_every_voice_stands_alone_somewhere(voices):
    corners = [weights_at((x, y), voices) for y in (0.0, 1.0) for x in (0.0, 1.0)]
    alone = {weights.index(1.0) for weights in corners if 1.0 in weights}
    assert alone == set(range(voices))


@given(st.lists(st.floats(0, 1e6), min_size=1, max_size=4).filter(any))
def test_percents_sum_to_a_hundred_and_are_near(weights):
    whole = percents(weights)
    assert sum(whole) == 100
    exact = [100 * weight / sum(weights) for weight in weights]
    assert all(abs(a - b) < 1 + 1e-6 for a, b in zip(whole, exact, strict=True))
