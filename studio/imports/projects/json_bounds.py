"""Bounds JSON in one pass over its bytes: how deep, how many values, how long a number.

Nothing is built of it, so that hostile JSON is refused before a parser takes memory for it. Whether
it is JSON at all is left to the parser.
"""

from __future__ import annotations

import re

from engine import InvalidText
from studio.imports.archives import DAMAGED, TOO_LARGE

DEEPEST = 16
LONGEST_NUMBER = 400  # bytes between two marks, with white space
_MARK = re.compile(rb'[\[\]{},:"]')
_CHANGES = {b"[": 1, b"{": 1, b"]": -1, b"}": -1}


def check_json(data: bytes, most_values: int) -> None:
    """Raises InvalidText where it is deeper, or has more values, than a project can have."""
    depth = values = at = 0
    while found := _MARK.search(data, at):
        mark = found[0]
        if found.start() - at > LONGEST_NUMBER:
            raise InvalidText(DAMAGED)
        at = found.end()
        if mark == b'"':
            at = _string_end(data, at)
            continue
        depth += _CHANGES.get(mark, 0)
        values += mark != b":"
        if not 0 <= depth <= DEEPEST:
            raise InvalidText(DAMAGED)
        if values > most_values:
            raise InvalidText(TOO_LARGE)
    if len(data) - at > LONGEST_NUMBER:
        raise InvalidText(DAMAGED)


def _string_end(data: bytes, start: int) -> int:
    """The place behind a string's closing quote, which no odd number of backslashes precedes."""
    at = start
    while (end := data.find(b'"', at)) >= 0:
        slashes = end
        while slashes > at and data[slashes - 1] == 0x5C:
            slashes -= 1
        if (end - slashes) % 2 == 0:
            return end + 1
        at = end + 1
    raise InvalidText(DAMAGED)
