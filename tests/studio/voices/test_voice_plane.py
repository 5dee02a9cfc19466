"""The plane of the map: alike voices near one another, and every voice where it was."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from studio.voices.voice_plane import voice_plane


def vectors(seed: int, count: int, width: int = 16) -> list[np.ndarray]:
    return list(np.random.default_rng(seed).standard_normal((count, width)).astype(np.float32))


@given(st.integers(0, 1000), st.integers(1, 12))
def test_the_same_voices_in_any_order_give_the_same_places(seed: int, count: int) -> None:
    drawn = vectors(seed, count)
    places = voice_plane(drawn).places(drawn)
    assert np.isfinite(places).all()
    assert np.allclose(voice_plane(drawn[::-1]).places(drawn), places, atol=1e-5)


@given(st.integers(0, 1000))
def test_the_axes_are_those_along_which_the_voices_differ_most(seed: int) -> None:
    drawn = vectors(seed, 30)
    plane = voice_plane(drawn)
    assert np.allclose(plane.axes @ plane.axes.T, np.eye(2), atol=1e-9)
    across, down = plane.places(drawn).var(0)
    other = np.linalg.qr(np.random.default_rng(seed).standard_normal((16, 2)))[0]
    assert across >= down > 0
    assert across + down >= (np.array(drawn) @ other).var(0).sum() - 1e-6


def test_one_voice_and_voices_that_are_the_same_have_a_place() -> None:
    [one] = vectors(0, 1)
    assert np.allclose(voice_plane([one]).places([one, one]), 0)
    line = [one * (1 + 0.1 * step) for step in range(4)]
    assert np.allclose(voice_plane(line).places(line)[:, 1], 0, atol=1e-6)


@given(st.integers(0, 1000))
def test_a_shift_points_where_it_moves_a_voice(seed: int) -> None:
    drawn = vectors(seed, 8)
    plane, (voice, shift) = voice_plane(drawn), vectors(seed + 1, 2)
    [before], [after] = plane.places([voice]), plane.places([voice + shift])
    assert np.allclose(plane.shifts([shift])[0], after - before, atol=1e-5)
