"""Words of texts and transcripts, and how many of them were misheard."""

from __future__ import annotations

import re
from collections.abc import Sequence


def words_of(text: str) -> list[str]:
    """The words of a text; its characters where a script has no spaces."""
    plain = re.sub(r"[’']", "", text.casefold())
    return re.findall(r"[\u2e80-\uffff]|[^\W_]+", plain)


def word_errors(spoken: Sequence[str], heard: Sequence[str]) -> int:
    """The edit distance in words."""
    return edit_distances(spoken, heard)[-1][-1]


def edit_distances(spoken: Sequence[str], heard: Sequence[str]) -> list[list[int]]:
    """Edit distances of all beginnings."""
    rows = [list(range(len(heard) + 1))]
    for count, word in enumerate(spoken, 1):
        row = [count]
        for column, other in enumerate(heard):
            kept = rows[-1][column] + (word != other)
            row.append(min(kept, row[-1] + 1, rows[-1][column + 1] + 1))
        rows.append(row)
    return rows
