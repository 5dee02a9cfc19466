"""The pronunciation list."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine import InvalidSetting
from studio.scripts.text.pieces import pieces_of
from studio.scripts.text.pronunciation import Speller, Spelling, read_spellings, write_spellings
from tests.support.script_makers import jobs_of

WORD = st.text(st.sampled_from("abcXYZ19é'"), min_size=1, max_size=6)


@pytest.mark.parametrize(
    ("entries", "written", "spoken"),
    [
        ("nguyen = win", "Nguyen met nguyen and Nguyens.", "Win met win and Nguyens."),
        ("US = U S", "US forces met us in the USA.", "U S forces met us in the USA."),
        ("new york = N Y\nnew = gnu", "New York is new", "N Y is gnu"),
        ("a = b\nb = a", "a b", "b a"),
        ("k8s -> kates", "k8s has 8 s", "kates has 8 s"),
        ("C++ = C plus plus", "C++, not C+++", "C plus plus, not C plus plus+"),
        ("行 = háng", "银行", "银háng"),
        ("pause = rest", "pause [pause 1s]", "rest [pause 1s]"),
        ("straße = street", "Die STRASSE, die Straße", "Die STRASSE, die Street"),
    ],
)
def test_the_pronunciation_list(entries: str, written: str, spoken: str) -> None:
    assert Speller(read_spellings(entries))(written) == spoken


@settings(max_examples=150)
@given(st.dictionaries(WORD, WORD, max_size=5), st.lists(WORD, max_size=12))
def test_words_that_are_not_listed_stay(entries: dict[str, str], words: list[str]) -> None:
    speller = Speller(Spelling(written=a, spoken=b) for a, b in entries.items())
    listed = {word.casefold() for word in entries}
    heard = speller(" ".join(words)).split(" ")
    assert len(heard) == max(1, len(words))
    for word, spoken in zip(words, heard, strict=False):
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


def test_what_is_not_in_a_line_is_not_in_an_entry() -> None:
    """Lines are cleaned too, and a saved project with such marks was refused."""
    read = read_spellings(
        "GI\x07F\t=\tji\x7ff\n\u200fיוסי = yo\u00adsee\nNew\u00a0York = n\ud800y\n"
    )
    entries = [("GIF", "jif"), ("יוסי", "yosee"), ("New York", "ny")]
    assert [(each.written, each.spoken) for each in read] == entries


@pytest.mark.parametrize("smiley", ["<3", ":D", "xD", ":P ;D", "👍"])
def test_a_smiley_alone_is_a_silence(smiley: str) -> None:
    """Before: the embedded voice, which leaves smileys out, refused such a line, and with it the
    script could not be exported."""
    jobs = jobs_of(f"Anna: Are you coming home?\nBen: {smiley}\nAnna: Good, I am waiting.")
    assert [bool(job.request) for job in jobs] == [True, False, True]
    assert [piece.text for piece in pieces_of(f"Come home. [pause] {smiley}")] == ["Come home.", ""]


def test_a_smiley_beside_words_changes_nothing_of_what_is_written() -> None:
    jobs = jobs_of("Anna: I love you <3\nBen: 3D is what I like.\nAnna: D: drive")
    assert [job.request.text for job in jobs if job.request] == [
        "I love you <3", "3D is what I like.", "D: drive",
    ]  # fmt: skip
