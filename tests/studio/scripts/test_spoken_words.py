"""What is said for what is written: the pronunciation list and English figures."""

from __future__ import annotations

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from engine import InvalidSetting
from studio.scripts.text.numerals import looks_english, words_for
from studio.scripts.text.pronunciation import Speller, Spelling, read_spellings, write_spellings

PLAIN = st.text(st.sampled_from("abcdefg ABC,;!?'-é你好\n[]"), max_size=120)
FIGURES = st.text(st.sampled_from("0123456789.,:-–/$€%°# kmstndrh&JanuyDr()"), max_size=60)
WORD = st.text(st.sampled_from("abcXYZ19é'"), min_size=1, max_size=6)


@pytest.mark.parametrize(
    ("written", "said"),
    [
        ("$1,234.50", "one thousand two hundred and thirty-four dollars and fifty cents"),
        ("$5 million, £1.01", "five million dollars, one pound and one penny"),
        ("€3.5bn", "three point five billion euros"),
        ("$0.99 or $1", "ninety-nine cents or one dollar"),
        ("On 2026-11-20 we met.", "On November twentieth, twenty twenty-six we met."),
        ("May 5, 2020", "May fifth, twenty twenty"),
        ("3rd March 1999", "March third, nineteen ninety-nine"),
        ("Sept. 2019", "September twenty nineteen"),
        ("at 10:05, 9:00 and 5:00 pm", "at ten oh five, nine o'clock and five pm"),
        (
            "In 1999 there were 2000 people.",
            "In nineteen ninety-nine there were two thousand people.",
        ),
        ("Orwell (1949) wrote", "Orwell (nineteen forty-nine) wrote"),
        ("the 1990s", "the nineteen nineties"),
        ("the 21st of 100", "the twenty-first of one hundred"),
        ("12% of 3.05", "twelve percent of three point zero five"),
        ("1 kg, 20°C", "one kilogram, twenty degrees Celsius"),
        ("100 km/h", "one hundred kilometers per hour"),
        ("pages 10-20, 1914–1918", "pages ten to twenty, nineteen fourteen to nineteen eighteen"),
        ("-5 degrees", "minus five degrees"),
        ("Dr. Smith, No. 5 & Mrs. Li", "Doctor Smith, number five and Missus Li"),
        ("tea, milk, etc. Then we left.", "tea, milk, et cetera. Then we left."),
        ("version 1.2.3", "version one point two point three"),
        ("0123", "zero one two three"),
        ("B2B, A4, COVID-19, v1.2 and [pause 2s]", "B2B, A4, COVID-19, v1.2 and [pause 2s]"),
        ("555-1234, 3-2, 10/20/2020", "555-1234, 3-2, 10/20/2020"),
    ],
)
def test_english_figures(written: str, said: str) -> None:
    assert Speller(())(written, words_for) == said


@settings(max_examples=300)
@given(FIGURES)
@example("1" * 400)
@example("-1,000,000.000.")
def test_figures_of_any_kind_are_said_once_and_for_all(text: str) -> None:
    said = words_for(text)
    assert words_for(said) == said
    assert all(char in said for char in text if char in "?!;")
    assert "None" not in said


@settings(max_examples=100)
@given(PLAIN)
def test_text_without_figures_is_left_alone(text: str) -> None:
    assert words_for(text) == text


def test_english_is_told_from_other_languages() -> None:
    assert looks_english("There were 3 of them in the house, and it was late.")
    for text in ("Es waren 3 Leute in dem Haus.", "Il y avait 3 personnes.", "他有3个。", "3", ""):
        assert not looks_english(text)


@pytest.mark.parametrize(
    ("entries", "written", "said"),
    [
        ("nguyen = win", "Nguyen met nguyen and Nguyens.", "Win met win and Nguyens."),
        ("US = U S", "US forces met us in the USA.", "U S forces met us in the USA."),
        ("new york = N Y\nnew = gnu", "New York is new", "N Y is gnu"),
        ("a = b\nb = a", "a b", "b a"),
        ("k8s -> kates", "k8s has 8 s", "kates has eight s"),
        ("C++ = C plus plus", "C++, not C+++", "C plus plus, not C plus plus+"),
        ("行 = háng", "银行", "银háng"),
        ("pause = rest", "pause [pause 1s]", "rest [pause 1s]"),
        ("straße = street", "Die STRASSE, die Straße", "Die STRASSE, die Street"),
    ],
)
def test_the_pronunciation_list(entries: str, written: str, said: str) -> None:
    assert Speller(read_spellings(entries))(written, words_for) == said


@settings(max_examples=150)
@given(st.dictionaries(WORD, WORD, max_size=5), st.lists(WORD, max_size=12))
def test_words_that_are_not_listed_stay(entries: dict[str, str], words: list[str]) -> None:
    speller = Speller(Spelling(written=a, spoken=b) for a, b in entries.items())
    listed = {word.casefold() for word in entries}
    said = speller(" ".join(words)).split(" ")
    assert len(said) == max(1, len(words))
    for word, spoken in zip(words, said, strict=False):
        if not any(part in word.casefold() for part in listed):
            assert spoken == word
        elif word in entries:
            assert spoken == entries[word]


@given(st.dictionaries(WORD, WORD, max_size=8))
def test_a_written_list_is_read_as_it_was(entries: dict[str, str]) -> None:
    spellings = tuple(Spelling(written=a, spoken=b) for a, b in entries.items())
    assert read_spellings("# a note\n\n" + write_spellings(spellings)) == spellings


def test_a_bad_entry_is_named() -> None:
    with pytest.raises(InvalidSetting, match="Line 2"):
        read_spellings("a = b\nnonsense")
