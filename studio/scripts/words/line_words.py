"""The words of a line: where each stands in its text, and when it is heard in its sound."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final, NamedTuple

from engine import SAMPLE_RATE, SYLLABIC, Pcm
from studio.scripts.text.tags import TAG
from studio.word_times import part_times

_UNSPACED: Final = re.compile(rf"{SYLLABIC.pattern}|\S(?:(?!{SYLLABIC.pattern})\S)*")


class LineWord(NamedTuple):
    """Characters [start, stop) of the text, heard from sample `begins` to `ends`."""

    start: int
    stop: int
    begins: int
    ends: int


def line_words(text: str, pcm: Pcm) -> list[LineWord]:
    """All words but tags, in order; none where nothing is heard. Scripts without spaces have a
    word for each character."""
    found = list(_found(text))
    times = part_times([word[0] for word in found], pcm)
    return [
        LineWord(*word.span(), round(begins * SAMPLE_RATE), round(ends * SAMPLE_RATE))
        for word, (begins, ends) in zip(found, times, strict=False)
    ]


def word_at(words: list[LineWord], at: int) -> int:
    """The index of the word at a character of the text, or of the first one after it."""
    return next((place for place, word in enumerate(words) if word.stop > at), len(words) - 1)


def _found(text: str) -> Iterator[re.Match[str]]:
    blank = TAG.sub(lambda tag: " " * len(tag[0]), text)
    for word in _UNSPACED.finditer(blank):
        if any(map(str.isalnum, word[0])):
            yield word
