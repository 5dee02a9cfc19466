"""Detects the writing system of a text, to warn early that no model speaks its language.

It knows a few writing systems that belong to few languages. Latin letters are not evaluated.
"""

from __future__ import annotations

import re
from collections.abc import Collection
from typing import Final

LETTERS: Final = (
    (re.compile(r"[\u3040-\u30ff]"), {"japanese"}),
    (re.compile(r"[\u4e00-\u9fff]"), {"chinese", "japanese"}),
    (re.compile(r"[\uac00-\ud7a3]"), {"korean"}),
    (re.compile(r"[\u0400-\u04ff]"), {"russian"}),
)


def foreign(text: str, languages: Collection[str]) -> bool:
    """Whether some letters belong to none of these languages."""
    return any(letters.search(text) and own.isdisjoint(languages) for letters, own in LETTERS)
