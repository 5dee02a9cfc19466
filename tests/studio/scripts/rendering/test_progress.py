"""The time left: the median of what is known, counting down, and told anew only where it is off."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from studio.scripts.rendering.progress import CLEARLY, WINDOW, Forecast

SIZE = 50  # letters of a line


def estimates(seconds: Sequence[float]) -> list[tuple[float, float]]:
    """At each second what was said to be left, over lines that take so long."""
    now = 0.0
    forecast = Forecast(SIZE * len(seconds), lambda: now)
    seen: list[tuple[float, float]] = []
    for number, each in enumerate(seconds[:-1], 1):
        end = now + each
        while now + 1 < end:
            now += 1
            progress = forecast.progress(number - 1, 0, len(seconds))
            seen += [] if progress.seconds_left is None else [(now, progress.seconds_left)]
        now = end
        forecast.made(SIZE, 3.0)
        left = forecast.progress(number, 0, len(seconds)).seconds_left
        seen += [] if left is None else [(now, left)]
    return seen


@given(st.lists(st.sampled_from((4.0, 4.5, 5.0, 30.0)), min_size=1, max_size=6))
def test_a_slow_line_among_many_does_not_change_it(slow: list[float]) -> None:
    lines = [5.0] * 30
    for place, each in enumerate(slow):
        lines[8 + 3 * place] = each
    for (before, was), (now, left) in pairwise(estimates(lines)):
        counted = max(0.0, was - (now - before))
        assert left <= was + 1e-6 or left - counted > CLEARLY * left  # it falls, unless far off
        assert left >= 0


def test_it_is_about_right_and_never_swings() -> None:
    quick_and_slow = [4.0, 8.0] * 40
    seen = estimates(quick_and_slow)
    whole = sum(quick_and_slow)
    late = [(now, left) for now, left in seen if now > 40 and left > 60]
    assert all(abs(now + left - whole) < 0.4 * whole for now, left in late)
    rises = sum(after > before + 1 for (_, before), (_, after) in pairwise(late))
    assert rises <= 1


def test_one_line_of_a_book_tells_no_time() -> None:
    """A first line of eight seconds made it "about 9 h 50 min"."""
    assert estimates([8.0] + [2.0] * 1_000)[0][0] >= WINDOW
    assert estimates([2.0] * 5)[0][0] == 2.0  # of a short script it tells enough
