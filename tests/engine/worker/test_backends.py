"""A backend serves only where it runs and gives the reference's results."""

from __future__ import annotations

import math
from collections.abc import Callable

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from engine.worker.backends import Candidate, select_backend

TOLERANCE = 0.5


def candidate(name: str, difference: float | None) -> Candidate[str]:
    """A backend that is off by `difference`; None: it is not for this device."""
    return Candidate(name, lambda: None if difference is None else name, lambda _: difference or 0)


def failing(error: Exception) -> Callable[[], str]:
    def build() -> str:
        raise error

    return build


@given(st.lists(st.none() | st.floats(), max_size=5))
def test_the_first_candidate_within_the_tolerance_is_selected(
    differences: list[float | None],
) -> None:
    candidates = [candidate(f"kernel {i}", each) for i, each in enumerate(differences)]
    close = [
        f"kernel {i}"
        for i, each in enumerate(differences)
        if each is not None and each <= TOLERANCE
    ]
    assert select_backend(candidates, "plain", TOLERANCE) == [*close, "plain"][0]


def test_later_candidates_are_not_built() -> None:
    later = Candidate("Later", failing(AssertionError("built")), lambda _: 0.0)
    assert select_backend([candidate("First", 0.0), later], "plain", 0.0) == "First"


def test_a_candidate_that_raises_is_left_out_with_one_line(
    caplog: pytest.LogCaptureFixture,
) -> None:
    broken = Candidate("the kernels", failing(RuntimeError("no compiler")), lambda _: 0.0)
    assert select_backend([broken], "plain", 0.0) == "plain"
    (line,) = caplog.messages
    assert "the kernels" in line
    assert "no compiler" in line


@pytest.mark.parametrize("difference", [0.6, math.inf, math.nan])
def test_a_candidate_that_differs_is_left_out_with_one_line(
    difference: float, caplog: pytest.LogCaptureFixture
) -> None:
    assert select_backend([candidate("the kernels", difference)], "plain", TOLERANCE) == "plain"
    (line,) = caplog.messages
    assert "gave other results than the plain form" in line


def test_a_candidate_for_another_device_is_left_out_silently(
    caplog: pytest.LogCaptureFixture,
) -> None:
    assert select_backend([candidate("the kernels", None)], "plain", 0.0) == "plain"
    assert not caplog.messages


def test_too_little_memory_is_raised() -> None:
    full = Candidate("the kernels", failing(torch.OutOfMemoryError()), lambda _: 0.0)  # type: ignore[arg-type]
    with pytest.raises(torch.OutOfMemoryError):
        select_backend([full], "plain", 0.0)
