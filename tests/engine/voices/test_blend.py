"""Blends: what mixing must keep, and names that survive being written and read."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from engine.errors import InvalidSetting, InvalidVoice
from engine.types import Vector
from engine.voices.blend import MAX_PARTS, RESERVED, Method, format_blend, mix, parse_blend

METHODS = st.sampled_from(["linear", "spherical"])
WEIGHTS = st.floats(0.01, 100)
# One orthant, so that nothing cancels.
VECTORS = arrays(np.float32, 8, elements=st.floats(0.0625, 4, width=32))
NAMES = st.text(
    st.characters(exclude_categories=("Cc", "Cs", "Z"), exclude_characters=RESERVED), min_size=1
)


def norm(vector: Vector) -> float:
    return float(np.linalg.norm(vector.astype(np.float64)))


@given(VECTORS, st.lists(WEIGHTS, min_size=1, max_size=5), METHODS)
def test_a_voice_mixed_with_itself_is_that_voice(
    vector: Vector, weights: list[float], method: Method
) -> None:
    mixed = mix([vector] * len(weights), weights, method)
    np.testing.assert_allclose(mixed, vector, rtol=1e-6)
    assert mixed.dtype == np.float32


@given(st.lists(st.tuples(VECTORS, WEIGHTS), min_size=2, max_size=5), METHODS)
def test_the_order_does_not_matter(parts: list[tuple[Vector, float]], method: Method) -> None:
    shuffled = sorted(parts, key=lambda part: (part[1], part[0].tobytes()))
    one = mix([vector for vector, _ in parts], [weight for _, weight in parts], method)
    other = mix([vector for vector, _ in shuffled], [weight for _, weight in shuffled], method)
    np.testing.assert_allclose(one, other, rtol=1e-5, atol=1e-6)


@given(st.lists(st.tuples(VECTORS, WEIGHTS), min_size=1, max_size=5), METHODS)
def test_it_is_as_long_as_the_weighted_mean_of_its_parents(
    parts: list[tuple[Vector, float]], method: Method
) -> None:
    weights = [weight for _, weight in parts]
    mean = np.average([norm(vector) for vector, _ in parts], weights=weights)
    assert norm(mix([vector for vector, _ in parts], weights, method)) == pytest.approx(mean)


@given(VECTORS, VECTORS, WEIGHTS, METHODS, st.floats(0.001, 1000))
def test_only_the_proportion_of_weights_counts_and_zero_counts_nothing(
    one: Vector, other: Vector, weight: float, method: Method, scale: float
) -> None:
    plain = mix([one, other], [weight, 1], method)
    scaled = mix([one, other, -one], [weight * scale, scale, 0], method)
    np.testing.assert_allclose(plain, scaled, rtol=1e-5, atol=1e-6)


@given(VECTORS, VECTORS, st.floats(0, 1))
def test_two_voices_spherical_is_slerp(one: Vector, other: Vector, share: float) -> None:
    a, b = (v.astype(np.float64) / norm(v) for v in (one, other))
    angle = np.arctan2(np.linalg.norm(b - (a @ b) * a), a @ b)
    mixed = mix([one, other], [1 - share, share], "spherical").astype(np.float64)
    mixed /= np.linalg.norm(mixed)
    turned = np.arctan2(np.linalg.norm(mixed - (a @ mixed) * a), a @ mixed)
    assert turned == pytest.approx(share * angle, abs=1e-5)


def test_three_corners_meet_in_the_middle_of_the_sphere() -> None:
    corners = list(np.eye(3, dtype=np.float32))
    np.testing.assert_allclose(mix(corners, [1, 1, 1], "spherical"), [3**-0.5] * 3, rtol=1e-6)


@pytest.mark.parametrize("method", ["linear", "spherical"])
def test_opposites_cancel_and_say_so(method: Method) -> None:
    vector = np.arange(1, 5, dtype=np.float32)
    with pytest.raises(InvalidVoice, match="cancel"):
        mix([vector, -vector], [1, 1], method)


@pytest.mark.parametrize("weights", [[-1, 2], [0, 0], [float("nan"), 1], [float("inf"), 1], [1]])
def test_weights_that_mean_nothing_are_refused(weights: list[float]) -> None:
    with pytest.raises(InvalidSetting):
        mix([np.ones(4, np.float32)] * 2, weights)


def test_widths_zeros_and_infinities_are_refused() -> None:
    ones = np.ones(4, np.float32)
    for other in (np.ones(5, np.float32), np.zeros(4, np.float32), ones * np.inf):
        with pytest.raises(InvalidVoice):
            mix([ones, other], [1, 1])


@given(st.lists(st.tuples(NAMES, st.floats(1e-6, 1e6)), min_size=1, max_size=MAX_PARTS))
def test_what_is_written_is_read_back(parts: list[tuple[str, float]]) -> None:
    assert parse_blend(format_blend(tuple(parts))) == tuple(parts)


@given(st.lists(st.tuples(NAMES, st.integers(1, 99)), min_size=1, max_size=4))
def test_both_ways_of_writing_mean_the_same(parts: list[tuple[str, int]]) -> None:
    plus = " + ".join(f"{name}({weight})" for name, weight in parts)
    comma = " , ".join(f"{name} : {weight}" for name, weight in parts)
    assert parse_blend(plus) == parse_blend(comma) == tuple((n, float(w)) for n, w in parts)


@given(st.text())
def test_any_text_is_read_or_refused_plainly(text: str) -> None:
    try:
        parts = parse_blend(text)
    except InvalidSetting:
        return
    assert all(name for name, _ in parts)


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("ryan", (("ryan", 1.0),)),
        ("ryan(2)+vivian(1)", (("ryan", 2.0), ("vivian", 1.0))),
        ("ryan:0.7,vivian:0.3", (("ryan", 0.7), ("vivian", 0.3))),
        ("uncle fu:.5, 声音", (("uncle fu", 0.5), ("声音", 1.0))),
    ],
)
def test_examples(text: str, parts: tuple[tuple[str, float], ...]) -> None:
    assert parse_blend(text) == parts


@pytest.mark.parametrize(
    "text", ["", "ryan,", "ryan:x", "ryan:-1", "ryan(2", ":1", "ryan:0", "a+" * 20]
)
def test_bad_blends_are_refused(text: str) -> None:
    with pytest.raises(InvalidSetting):
        parse_blend(text)
