"""Titles of scripts: one line that reads as it is written, from the text where none is given.

Knows no stores.
"""

from __future__ import annotations

import itertools
import unicodedata
from collections.abc import Collection

from engine import Message
from studio.scripts.model import Script
from studio.scripts.text.cues import said_of

LONGEST_TITLE = 200  # characters
BEGINNING = 60  # characters of a title that nobody has written
# Cc control, Cs half a character, Zl and Zp line ends
_ODD = frozenset(("Cc", "Cs", "Zl", "Zp"))
# Marks that turn the direction of what follows: with them a name looks like another.
_TURNS = frozenset("\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069")


def is_plain(title: str) -> bool:
    """Whether a title equals its `plain` form, except for spaces."""
    return not any(map(_is_odd, title))


def plain(title: str) -> str:
    """The title on one line, without what cannot be seen or turns the line around."""
    seen = "".join(" " if char.isspace() else char for char in title[: 4 * LONGEST_TITLE])
    return " ".join("".join(char for char in seen if not _is_odd(char)).split())[:LONGEST_TITLE]


def title_of(script: Script, moods: Collection[str] = ()) -> str:
    """The first chapter, or the beginning of the text without tags of these moods."""
    first = next((said_of(line.text, moods) for line in script.lines if line.text), "")
    title = next(filter(None, script.chapters), first)
    return title if len(title) <= BEGINNING else f"{title[: BEGINNING - 1].rstrip()}…"


def free_title(title: str, taken: Collection[str]) -> str:
    """The title, numbered if it is taken."""
    used = {each.casefold() for each in taken}
    numbered = (f"{title[:190]} ({number})" for number in itertools.count(2))
    return next(each for each in itertools.chain([title], numbered) if each.casefold() not in used)


def listed_title(title: str, lines: int) -> Message:
    """A title with the number of its lines."""
    if lines == 1:
        return Message("{title} · 1 line", title=title)
    return Message("{title} · {count:,} lines", title=title, count=lines)


def _is_odd(char: str) -> bool:
    return char in _TURNS or unicodedata.category(char) in _ODD
