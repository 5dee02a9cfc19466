"""Sentences come out the same however the text is cut."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from studio.api.websocket.sentence_buffer import Sentences

WORDS = ("Hello there", "3.5", "今天", "“No”", "x", "Dr. ", "e.g. ")
PIECES = (*WORDS, ". ", "! ", "? ", " ", "\n", "。")


def split(*texts: str) -> list[str]:
    reader = Sentences()
    whole = [sentence for text in texts for sentence in reader.feed(text)]
    return whole + reader.finish()


def test_plain_sentences() -> None:
    said = "Hello there. How are you? Dr. Who said 3.5 e.g. now!\nNew line"
    expected = ["Hello there.", "How are you?", "Dr. Who said 3.5 e.g. now!", "New line"]
    assert split(said) == expected


def test_wide_marks_need_no_space() -> None:
    assert split("今天。明天！后天") == ["今天。", "明天！", "后天"]


def test_a_sentence_is_given_before_the_text_ends() -> None:
    assert Sentences().feed("One. Two") == ["One."]


@given(st.lists(st.sampled_from(PIECES), max_size=12).map("".join))
def test_nothing_is_lost(text: str) -> None:
    assert "".join("".join(split(text)).split()) == "".join(text.split())
