"""Word errors satisfy the laws of an edit distance; words are what is said, however written."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bench.quality.words import heard_words, spoken_words, unsaid_end
from training.data.text import words_of
from training.voice.words import word_errors

WORDS = st.lists(st.sampled_from(["the", "a", "lamp", "is", "on"]), max_size=8)


@given(WORDS, WORDS, WORDS)
def test_errors_are_a_distance(a: list[str], b: list[str], c: list[str]) -> None:
    assert word_errors(a, a) == 0
    assert word_errors(a, b) == word_errors(b, a)
    assert word_errors(a, c) <= word_errors(a, b) + word_errors(b, c)
    assert abs(len(a) - len(b)) <= word_errors(a, b) <= max(len(a), len(b))
    assert (word_errors(a, b) == 0) == (a == b)


@pytest.mark.parametrize(
    ("spoken", "heard", "errors"),
    [("a b c", "a b c", 0), ("a b c", "a c", 1), ("a b", "a x b", 1), ("a b", "", 2), ("", "a", 1)],
)
def test_errors_are_words_missed_added_or_changed(spoken: str, heard: str, errors: int) -> None:
    assert word_errors(spoken.split(), heard.split()) == errors


@given(st.lists(st.integers(), max_size=8, unique=True), st.integers(0, 8))
def test_what_is_cut_off_the_end_is_counted(numbers: list[int], kept: int) -> None:
    spoken = [str(number) for number in numbers]
    assert unsaid_end(spoken, spoken[:kept]) == len(spoken[kept:])


def test_another_word_at_the_end_was_said() -> None:
    assert unsaid_end(["a", "red", "lamp"], ["a", "red", "camp"]) == 0
    assert unsaid_end(["a", "red", "lamp"], ["a", "lamp"]) == 0


def test_words_are_what_is_said() -> None:
    assert words_of("Don't stop, Anna!") == ["don't", "stop", "anna"]
    assert spoken_words("Twenty-five, it's 25!") == ["twenty", "five", "it's", "twenty", "five"]


@pytest.mark.parametrize(
    ("text", "heard"),
    [
        ("It cost $7.50.", "it cost seven dollars and fifty cents"),
        ("It cost $1,500, they said.", "It cost one thousand five hundred dollars, they said"),
        ("At 6:30, in 1968", "at six thirty in nineteen sixty-eight"),
        ("On March 3rd at 10 o'clock", "on March third at ten"),
        ("About 60% of them", "about sixty percent of them"),
        ("Dr. Lindberg and Mr. Alvarez", "doctor Lindberg and mister Alvarez"),
        ("three hundred and fifty seats", "350 seats"),
        ("at 7:05", "at seven oh five"),
    ],
)
def test_numbers_are_alike_in_digits_and_in_words(text: str, heard: str) -> None:
    assert spoken_words(text) == spoken_words(heard)


def test_an_and_without_numbers_counts() -> None:
    assert spoken_words("salt and pepper") == ["salt", "and", "pepper"]


@pytest.mark.parametrize(
    ("text", "transcript"),
    [
        ("The train leaves at 5:20.", "The train leaves at 520."),
        ("From 9:45, not 12:30.", "From 945, not 1230."),
        ("It has 520 pages.", "It has 520 pages."),
        ("It cost $945.", "It cost $945."),
        ("1,230 people", "1,230 people"),
        ("a quarter of 1245.5", "a quarter of 1245.5"),
    ],
)
def test_a_time_without_its_colon_is_a_time_where_one_was_said(text: str, transcript: str) -> None:
    spoken = spoken_words(text)
    assert heard_words(spoken, transcript) == spoken


def test_a_misheard_time_is_an_error() -> None:
    spoken = spoken_words("The train leaves at 5:20.")
    assert word_errors(spoken, heard_words(spoken, "The train leaves at 530.")) == 1
    assert word_errors(spoken, heard_words(spoken, "The train leaves at 5.")) == 1
