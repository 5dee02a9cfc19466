"""Titles of scripts: one line that reads as it is written. Knows no stores."""

from __future__ import annotations

import unicodedata

LONGEST_TITLE = 200  # characters
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


def _is_odd(char: str) -> bool:
    return char in _TURNS or unicodedata.category(char) in _ODD
