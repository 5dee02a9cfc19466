"""A rule of reading: a pattern, and what is written for it so that later rules know it."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from typing import TypeAlias

Rule: TypeAlias = tuple[re.Pattern[str], Callable[[re.Match[str]], str]]


def rewritten(text: str, rules: Iterable[Rule], needed: re.Pattern[str]) -> str:
    """The text after one rule after the other; without a match of `needed` none has anything to do,
    which saves plain text the search for each."""
    if needed.search(text):
        for pattern, say in rules:
            text = pattern.sub(say, text)
    return text
