"""The formats of scripts that can be imported, and how large files may be. Knows no parsers."""

from __future__ import annotations

from pathlib import PurePath

from engine import InvalidText

MAX_BYTES = 8 * 1024 * 1024  # of a text file
MAX_BOOK_BYTES = 64 * 1024 * 1024  # of a book, which has pictures
BOOKS = (".epub", ".docx", ".pdf")
SUFFIXES = (".txt", ".md", ".srt", ".vtt", ".csv", *BOOKS)


def check_name(name: str) -> None:
    """Raises InvalidText where the extension is none of a script."""
    if PurePath(name).suffix.lower() not in SUFFIXES:
        raise InvalidText(
            "{name!r} is no script. Upload {there}.",
            name=PurePath(name).name[:80],
            there=", ".join(SUFFIXES),
        )
