"""What was read aloud and what was heard are compared as words, however each is written."""

from __future__ import annotations

import numpy as np
import pytest

from bench.quality.reading.__main__ import HERE, book, written
from bench.quality.reading.article import wander
from bench.quality.reading.comparison import canonical, differences, misheard
from engine import SAMPLE_RATE


@pytest.mark.parametrize(
    ("spoken", "transcript"),
    [
        ("It cost one point five million euros.", "It cost €1.5 million."),
        ("four dollars and ninety-nine cents", "$4.99"),
        ("in two thousand and five", "in 2005"),
        ("the one hundred and first attempt", "The 101st attempt."),
        ("nineteen thirty-nine to forty-five", "1939 to 45"),
        ("the nineteen nineties", "the 1990s"),
        ("seven forty-five P M", "7:45 p.m."),
        ("the F B I called", "The FBI called."),
        ("Louis the fourteenth built", "Louis XIV built"),
        ("after World War one, a disk", "After World War I, a disc"),
        ("a rabbit-hole", "a rabbit hole"),
        ("fifty to eighty dollars", "$50 to $80"),
        ("one nine two dot one six eight dot zero dot one", "192.168.0.1"),
        ("two point zero point one", "2.0.1"),
        ("double oh seven", "007"),
        ("A B to B firm", "A B2B firm"),
    ],
)
def test_both_ways_of_writing_a_thing_are_one(spoken: str, transcript: str) -> None:
    assert misheard(spoken, transcript).errors == 0


def test_changes_are_told_apart() -> None:
    spoken = canonical("of having nothing to do once or twice")
    again = canonical("of having nothing to do having nothing to do once or twice")
    found = differences(spoken, again)
    assert (found.added, found.missing, found.wrong) == (4, 0, 0)
    found = differences(spoken, canonical("having nothing to see once or twice"))
    assert (found.added, found.missing, found.wrong) == (0, 1, 1)


def test_the_texts_are_whole() -> None:
    sentences = written(HERE / "written.tsv")
    assert len(sentences) >= 200
    assert len({each.written for each in sentences}) == len(sentences)
    assert sum(len(text.written.split()) for text in book()) >= 600


def test_a_voice_that_rises_and_one_that_stays_are_told_apart() -> None:
    seconds = np.arange(60 * SAMPLE_RATE) / SAMPLE_RATE
    low, high = (
        sum(np.sin(2 * np.pi * hertz * n * seconds) / n for n in range(1, 12)) / 8
        for hertz in (120.0, 120.0 * 2 ** (2 / 12))
    )
    steady = wander(np.concatenate((low, low)).astype(np.float32))
    assert max(map(abs, steady.slope)) < 0.02
    rising = wander(np.concatenate((low, low, high * 1.26, high * 1.26)).astype(np.float32))
    assert rising.slope[0] == pytest.approx(2.4, abs=0.1)  # a line through 0, 0, 2, 2
    assert rising.slope[1] == pytest.approx(2.4, abs=0.2)
    assert max(rising.farthest) < 2.3
