"""Sentences come out the same however the text is cut."""

from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine import SentenceBuffer, split_sentences

WORDS = ("Hello there", "3.5", "今天", "“No”", "x", "Dr. ", "e.g. ")
PIECES = (*WORDS, ". ", "! ", "? ", " ", "\n", "。")


def split(*texts: str) -> list[str]:
    reader = SentenceBuffer()
    whole = [sentence for text in texts for sentence in reader.feed(text)]
    return whole + reader.finish()


def test_plain_sentences() -> None:
    spoken = "Hello there. How are you? Dr. Who said 3.5 e.g. now!\nNew line"
    expected = ["Hello there.", "How are you?", "Dr. Who said 3.5 e.g. now!", "New line"]
    assert split(spoken) == expected


def test_wide_marks_need_no_space() -> None:
    assert split("今天。明天！后天") == ["今天。", "明天！", "后天"]


def test_a_sentence_is_given_before_the_text_ends() -> None:
    assert SentenceBuffer().feed("One. Two") == ["One."]


@pytest.mark.parametrize(
    "text",
    [
        "I met Gen. Lee spoke. He left.",
        "We were with Dr. Smith. It rained.",
        "At 5 p.m. he left. At 6 p.m. She came.",
        "See No. 5. J. K. Rowling wrote it. Yes.",
        "The U.S. Army and the U.S. team. Done.",
    ],
)
def test_a_full_stop_of_an_abbreviation_ends_no_sentence(text: str) -> None:
    found = split(text)
    assert not {"I met Gen.", "We were with Dr.", "At 5 p.m.", "See No.", "J.", "The U.S."} & {
        *found
    }
    for size in range(1, 9):
        assert split(*(text[at : at + size] for at in range(0, len(text), size))) == found


def test_an_end_is_known_before_the_next_sentence_begins() -> None:
    assert SentenceBuffer().feed("I was there. ") == ["I was there."]
    assert SentenceBuffer().feed("I saw Dr. ") == []


def test_a_wide_space_before_a_full_stop_is_read() -> None:
    text = "Vitamin C\u00a0. It helps. See plan A\u3000. "
    assert split_sentences(text) == ["Vitamin C\u00a0. ", "It helps. ", "See plan A\u3000. "]
    assert split(*text) == split(text) == ["Vitamin C\u00a0.", "It helps.", "See plan A\u3000."]


@given(st.lists(st.sampled_from(PIECES[:-1]), max_size=12).map("".join), st.integers(1, 6))
def test_pieces_of_any_size_give_the_same_sentences(text: str, size: int) -> None:
    assert split(*(text[at : at + size] for at in range(0, len(text), size))) == split(text)


@given(st.lists(st.sampled_from(PIECES), max_size=12).map("".join))
def test_nothing_is_lost(text: str) -> None:
    assert "".join("".join(split(text)).split()) == "".join(text.split())


@pytest.mark.parametrize(
    "text",
    [
        "At 5 p.m. --\nIt is late. Then more.",
        f"See no. {'x' * 50} here. It is late. Then more.",
        f"He met Mrs. A. {'(' * 50} here. It is late. Then more.",
    ],
)
def test_what_follows_a_full_stop_in_doubt_is_given(text: str) -> None:
    *_, last = SentenceBuffer().feed(text)
    assert last == "It is late."
    assert split(*text) == split(text)


@pytest.mark.parametrize("mark", [".", "'", " ", "]", "! ", "\n", "\xa0]", "\n ]"])
def test_many_marks_in_a_row_are_read_in_time(mark: str) -> None:
    buffer, begun = SentenceBuffer(), time.process_time()
    for _ in range(10_000):
        buffer.feed(mark)
    assert time.process_time() - begun < 1  # 3 to 6 s, when each was read with all before it
