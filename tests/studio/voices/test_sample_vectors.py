"""Recordings of one person: the one that does not fit is found; the mean is of those that do."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from studio.voices.sample_vectors import mean_vector, outliers, similarities


def person(seed: int, count: int, spread: float = 0.05) -> list[np.ndarray]:
    draw = np.random.default_rng(seed)
    voice = draw.normal(size=64)
    return [(voice + spread * draw.normal(size=64)).astype(np.float32) for _ in range(count)]


@given(st.integers(0, 500), st.integers(2, 8), st.integers(0, 8))
def test_a_stranger_is_found_wherever_he_is(seed: int, count: int, place: int) -> None:
    vectors, [stranger] = person(seed, count), person(seed + 1000, 1)
    assert outliers(similarities(vectors)) == set()
    place = min(place, count)
    vectors.insert(place, stranger)
    assert outliers(similarities(vectors)) == {place}


def test_of_two_none_is_the_stranger() -> None:
    both = similarities([*person(1, 1), *person(2, 1)])
    assert both[0] == pytest.approx(both[1])
    assert outliers(both) == set()


@given(st.integers(0, 500), st.integers(1, 8))
def test_the_mean_is_as_long_as_its_vectors(seed: int, count: int) -> None:
    vectors = person(seed, count)
    mean = mean_vector(vectors)
    lengths = [float(np.linalg.norm(each)) for each in vectors]
    assert min(lengths) * 0.999 <= np.linalg.norm(mean) <= max(lengths) * 1.001
    assert mean.dtype == np.float32
    if count == 1:
        np.testing.assert_allclose(mean, vectors[0], rtol=1e-5)
