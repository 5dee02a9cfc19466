"""Splitting loses nothing: the pieces, joined, are the text; tags stay whole."""

from __future__ import annotations

import time

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from engine import spoken_size
from engine.text.sentences import LANGUAGE_CODES
from studio.scripts.model import MAX_PAUSE
from studio.scripts.text.sentences import SpokenPiece, sentences, spoken_pieces
from studio.scripts.text.tags import TAG, around_tags, at_pauses, pause_of, pause_tag

WORDS = st.sampled_from(
    [
        "Hello",
        "there.",
        "Dr.",
        "Smith",
        "[pause 1.5s]",
        "[laughs. loudly]",
        "[/glad]",
        "What?!",
        "你好。",
        "一二三",
        "\n\n",
        "(so)",
        "e.g.",
        "3.14",
        "—",
        '"Yes."',
        "<break time='2s'/>",
        "[",
        "]",
        "naïve",
        "…",
    ]
)
TEXTS = st.one_of(st.lists(WORDS, max_size=60).map(" ".join), st.text(max_size=300))
BREATHS = st.builds(SpokenPiece, shortest=st.integers(0, 400), longest=st.integers(40, 400))


@settings(max_examples=150)
@given(TEXTS, st.sampled_from(sorted(LANGUAGE_CODES)))
def test_sentences_joined_are_the_text(text: str, language: str) -> None:
    assert "".join(sentences(text, language)) == text


@settings(max_examples=150)
@given(TEXTS, BREATHS)
@example("a" * 5000, SpokenPiece(longest=40))
@example("[" * 300 + "x" * 300 + "]" * 300, SpokenPiece(longest=40))
def test_breaths_joined_are_the_text(text: str, breath: SpokenPiece) -> None:
    assert "".join(spoken_pieces(text, breath=breath)) == text


@settings(max_examples=150)
@given(TEXTS, BREATHS)
@example("[oh! )你好。'))']", SpokenPiece(shortest=0))
@example("Hello Hello Hello there. 一二三 \n\n Hello", SpokenPiece(shortest=10, longest=40))
def test_breaths_keep_tags_whole_and_stay_within_their_length(
    text: str, breath: SpokenPiece
) -> None:
    parts = spoken_pieces(text, breath=breath)
    assert sum(len(TAG.findall(part)) for part in parts) == len(TAG.findall(text))
    for part in parts:
        bare = TAG.sub("", part).strip()
        assert spoken_size(bare) <= breath.longest + 2  # one character may be three letters


def test_a_short_sentence_joins_its_neighbour() -> None:
    text = "Yes. I think that this is what she wanted to say all along. No."
    assert spoken_pieces(text) == [text]
    assert len(spoken_pieces(text, breath=SpokenPiece(shortest=0))) == 3


def test_a_long_sentence_is_cut_where_one_would_breathe() -> None:
    text = "first a part of it that goes on, then another that goes on too, and a last one here"
    for part in spoken_pieces(text, breath=SpokenPiece(shortest=0, longest=40))[:-1]:
        assert part.endswith(", ")


def test_a_megabyte_without_an_end_is_split_in_time() -> None:
    started = time.perf_counter()
    parts = spoken_pieces("word" * 250_000)
    assert "".join(parts) == "word" * 250_000
    assert time.perf_counter() - started < 60


@pytest.mark.parametrize(
    ("tag", "seconds"),
    [
        ("[pause 1.5s]", 1.5),
        ("[PAUSE: 300 ms]", 0.3),
        ("[break 2]", 2.0),
        ("[silence .5 sec]", 0.5),
        ('<break time="1.5s"/>', 1.5),
        ("<break time='250ms' />", 0.25),
        ("[pause 999999]", MAX_PAUSE),
        ("[pause 1,5s]", 1.5),
        ("[laughs]", None),
        ("[pauses]", None),
        ("<b>", None),
    ],
)
def test_pause_tags(tag: str, seconds: float | None) -> None:
    assert pause_of(tag) == seconds


@given(st.integers(0, 60_000))
def test_a_written_pause_is_read_as_it_was(milliseconds: int) -> None:
    assert pause_of(pause_tag(milliseconds / 1000)) == milliseconds / 1000


@settings(max_examples=100)
@given(TEXTS)
def test_pauses_cut_the_text_and_lose_no_letter(text: str) -> None:
    pieces = at_pauses(text)
    tags = [tag for tag, is_tag in around_tags(text) if is_tag and pause_of(tag) is not None]
    without = "".join(t for t, is_tag in around_tags(text) if not is_tag or pause_of(t) is None)
    assert "".join("".join(piece for piece, _ in pieces).split()) == "".join(without.split())
    total = sum(pause_of(tag) or 0.0 for tag in tags)
    assert sum(pause or 0.0 for _, pause in pieces) == pytest.approx(total, abs=1e-6)
