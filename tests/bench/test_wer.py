"""Word errors satisfy the laws of an edit distance."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from bench.quality.wer import errors, words_of

WORDS = st.lists(st.sampled_from(["the", "a", "lamp", "is", "on"]), max_size=8)


@given(WORDS, WORDS, WORDS)
def test_errors_are_a_distance(a: list[str], b: list[str], c: list[str]) -> None:
    assert errors(a, a) == 0
    assert errors(a, b) == errors(b, a)
    assert errors(a, c) <= errors(a, b) + errors(b, c)
    assert abs(len(a) - len(b)) <= errors(a, b) <= max(len(a), len(b))
    assert (errors(a, b) == 0) == (a == b)


def test_words_are_what_is_said() -> None:
    assert words_of("Don't stop, Anna!") == ["don't", "stop", "anna"]
