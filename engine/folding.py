"""Text as names and searches compare it. Knows neither what is compared nor who asks."""

from __future__ import annotations

import unicodedata


def folded(text: str) -> str:
    """Equal for texts that differ in case, or in whether a letter and its accent are one character,
    as in what is copied from a PDF or from a file's name on macOS."""
    return unicodedata.normalize("NFC", text.casefold())
