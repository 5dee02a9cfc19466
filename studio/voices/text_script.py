"""Whether a text is written in a language that no model speaks, to warn before it is spoken.

By its letters, of which some belong to few languages, and by its small words.
"""

from __future__ import annotations

import re
from collections.abc import Collection
from typing import Final

from engine import written_in

FOREIGN: Final = "No model here speaks this language, so what you hear will mean nothing."
LETTERS: Final = (
    (re.compile(r"[\u3040-\u30ff]"), {"japanese"}),
    (re.compile(r"[\u4e00-\u9fff]"), {"chinese", "japanese"}),
    (re.compile(r"[\uac00-\ud7a3]"), {"korean"}),
    (re.compile(r"[\u0400-\u04ff]"), {"russian"}),
)


def foreign(text: str, languages: Collection[str]) -> bool:
    """Whether some letters, or most words, belong to none of these languages."""
    if any(letters.search(text) and spoken.isdisjoint(languages) for letters, spoken in LETTERS):
        return True
    written = written_in(text)
    return written is not None and written not in languages
