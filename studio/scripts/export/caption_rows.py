"""Breaks a caption's text into rows by what a screen shows: a Chinese character takes two columns.

Rows end at spaces, or between characters of a script that has none; a mark that closes stays with
what it closes. A word that is longer than a row is broken.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterator

_CLOSES = frozenset("，。、！？；：）」』》】”’…,.!?;:)]}%")
_OPENS = frozenset("（「『《【“‘([{")


def columns(text: str) -> int:
    return len(text) if text.isascii() else sum(map(_columns, text))


def _columns(char: str) -> int:
    if unicodedata.combining(char):
        return 0
    return 2 if unicodedata.east_asian_width(char) in "WF" else 1


def _runs_on(char: str) -> bool:
    """Whether its script has no spaces; Korean has."""
    return _columns(char) == 2 and not "\uac00" <= char <= "\ud7af"


def wrapped(text: str, most: int, whole: bool = False) -> list[str]:
    """Rows of at most `most` columns. `whole`: a word that is longer has a longer row."""
    rows: list[str] = []
    for unit in _units(text):
        if rows and columns(rows[-1] + unit) <= most:
            rows[-1] += unit
            continue
        rest = unit.lstrip()
        while not whole and columns(rest) > most:
            head = _head(rest, most)
            rows.append(head)
            rest = rest[len(head) :]
        if rest:
            rows.append(rest)
    return rows


def _units(text: str) -> Iterator[str]:
    """What is not broken, each with the space before it."""
    unit = ""
    for char in text:
        last = unit[-1:]
        wide = _runs_on(char) or (bool(last) and _runs_on(last))
        breaks = wide and char not in _CLOSES and last not in _OPENS and bool(unit.strip())
        if unit and (breaks or (char.isspace() and not last.isspace())):
            yield unit
            unit = ""
        unit += char
    if unit.strip():
        yield unit


def _head(text: str, most: int) -> str:
    """How many characters fit, at least one."""
    taken = 0
    for place, char in enumerate(text):
        taken += _columns(char)
        if taken > most and place:
            return text[:place]
    return text
