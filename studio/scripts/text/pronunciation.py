"""The pronunciation list: words, and spellings by which they are pronounced correctly.

A lower-case entry matches any case; one with capitals matches exactly, so `US = U S` does not
change "us". Entries match whole words; in writing systems without spaces, anywhere.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Iterable

from pydantic import Field

from engine import InvalidSetting
from studio.scripts.model import Record
from studio.scripts.text.passages import clean
from studio.scripts.text.tags import around_tags

MAX_ENTRIES = 1_000
MAX_LINE = 400  # characters; longer lines are refused
# A letter of a writing system with spaces between words.
_SPACED = r"[^\W\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]"
_ARROW = re.compile(r"\s*(?:=>|->|→|=|\t)\s*")


class Spelling(Record):
    """Pronounce `written` as `spoken`."""

    written: str = Field(min_length=1, max_length=100)
    spoken: str = Field(max_length=200)


def read_spellings(text: str) -> tuple[Spelling, ...]:
    """Parse one entry per line, `word = spelling`. Raises InvalidSetting with the line."""
    lines = [(number, line.strip()) for number, line in enumerate(text.splitlines(), 1)]
    entries = [_entry(number, line) for number, line in lines if line and line[0] != "#"]
    if len(entries) > MAX_ENTRIES:
        raise InvalidSetting("The pronunciation list may have {most:,} entries.", most=MAX_ENTRIES)
    return tuple(entries)


def write_spellings(spellings: Iterable[Spelling]) -> str:
    return "\n".join(f"{entry.written} = {entry.spoken}" for entry in spellings)


class Speller:
    """Applies a pronunciation list in one pass, so nothing is replaced twice."""

    def __init__(self, spellings: Iterable[Spelling]) -> None:
        self._spoken = {entry.written: entry.spoken for entry in spellings}
        self._folded = {word.casefold(): self._spoken[word] for word in self._spoken}
        self._pattern = _pattern(self._spoken)

    def __call__(self, text: str, elsewhere: Callable[[str], str] = str) -> str:
        """The spoken form of a text. `elsewhere` is applied to the text between matches."""
        pieces = around_tags(text)
        return "".join(piece if tag else self._say(piece, elsewhere) for piece, tag in pieces)

    def _say(self, text: str, elsewhere: Callable[[str], str]) -> str:
        if self._pattern is None:
            return elsewhere(text)
        spoken: list[str] = []
        start = 0
        for match in self._pattern.finditer(text):
            spoken += [elsewhere(text[start : match.start()]), self._replacement(match[0])]
            start = match.end()
        return "".join([*spoken, elsewhere(text[start:])])

    def _replacement(self, word: str) -> str:
        if word in self._spoken:
            return self._spoken[word]
        spoken = self._folded.get(word.casefold(), word)
        return spoken[:1].upper() + spoken[1:] if word[:1].isupper() else spoken


def _pattern(words: Iterable[str]) -> re.Pattern[str] | None:
    """One pattern for all words, grouped by first letter for speed."""
    by_letter: dict[str, list[str]] = defaultdict(list)
    for word in sorted(words, key=len, reverse=True):  # longest first: "New York" before "New"
        by_letter[word[0].casefold()].append(word)
    groups = [_group(letter, alike) for letter, alike in by_letter.items()]
    return re.compile("|".join(groups)) if groups else None


def _group(letter: str, words: list[str]) -> str:
    before = f"(?<!{_SPACED})" if re.match(_SPACED, letter) else ""
    return f"{before}(?=(?i:{re.escape(words[0][0])}))(?:{'|'.join(map(_word_pattern, words))})"


def _word_pattern(word: str) -> str:
    free = word == word.lower()  # in small letters: any case
    body = f"(?i:{re.escape(word)})" if free else re.escape(word)
    return body + (f"(?!{_SPACED})" if re.match(_SPACED, word[-1]) else "")


def _entry(number: int, line: str) -> Spelling:
    written, arrow, spoken = _partition(line) if len(line) <= MAX_LINE else ("", "", "")
    written, spoken = clean(written), clean(spoken)  # as the lines that they are found in
    if not arrow or not 1 <= len(written) <= 100 or not 1 <= len(spoken) <= 200:
        raise InvalidSetting(
            "Line {number} of the pronunciation list is not `word = how it is said`: {line!r}",
            number=number,
            line=line[:60],
        )
    return Spelling(written=written, spoken=spoken)


def _partition(line: str) -> tuple[str, str, str]:
    match = _ARROW.search(line, 1)
    return (line[: match.start()], match[0], line[match.end() :]) if match else (line, "", "")
