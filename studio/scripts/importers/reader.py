"""Reads scripts from typed text or files.

All input is untrusted: size and lines are bounded before any work, and every error says what to do.
This module opens no files; it takes bytes.
"""

from __future__ import annotations

import codecs
import io
from collections.abc import Collection, Iterator
from pathlib import PurePath

from engine import InvalidText, Message
from studio.scripts.importers.dialogue import read_text
from studio.scripts.importers.docx import read_docx
from studio.scripts.importers.epub import read_epub
from studio.scripts.importers.markdown import read_markdown
from studio.scripts.importers.passages import MAX_CHARACTERS, PLAIN, Passage, SpeechOptions, build
from studio.scripts.importers.pdf import read_pdf
from studio.scripts.importers.subtitle_files import read_subtitles
from studio.scripts.importers.tables import read_table
from studio.scripts.model import Script

MAX_BYTES = 8 * 1024 * 1024  # of a text file
MAX_BOOK_BYTES = 64 * 1024 * 1024  # of a book, which has pictures
MAX_TYPED_LINES = 50_000  # of typed text, including empty ones
BOOKS = (".epub", ".docx", ".pdf")
SUFFIXES = (".txt", ".md", ".srt", ".vtt", ".csv", *BOOKS)


def script_of_text(
    text: str, manner: SpeechOptions = PLAIN, speakers: Collection[str] = ()
) -> Script:
    """A script from plain text; dialogue is written `Name: text`."""
    return build(read_text(_bounded(text), speakers), manner)


def script_of_file(name: str, data: bytes, manner: SpeechOptions = PLAIN) -> Script:
    """A script from an uploaded file; its extension tells the format."""
    suffix = PurePath(name).suffix.lower()
    if suffix not in SUFFIXES:
        raise InvalidText(
            "{name!r} is no script. Upload {there}.",
            name=PurePath(name).name[:80],
            there=", ".join(SUFFIXES),
        )
    passages = _book if suffix in BOOKS else _passages
    return build(passages(suffix, data), manner)


def decode(data: bytes) -> str:
    """Decode a file: UTF-8, or UTF-16 with a byte order mark."""
    _check_size(data, MAX_BYTES)
    utf16 = data.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE))
    try:
        text = data.decode("utf-16" if utf16 else "utf-8-sig")
    except UnicodeDecodeError as error:
        raise InvalidText(
            "The file is not text in UTF-8. Save it as UTF-8 (plain text) and upload it again."
        ) from error
    if "\x00" in text:
        raise InvalidText("This is not a text file. Upload plain text.")
    return text


def _book(suffix: str, data: bytes) -> Iterator[Passage]:
    _check_size(data, MAX_BOOK_BYTES)
    if suffix == ".pdf":
        return read_pdf(data)
    return {".epub": read_epub, ".docx": read_docx}[suffix](io.BytesIO(data))


def _check_size(data: bytes, most: int) -> None:
    if len(data) > most:
        raise InvalidText(
            "The file has {count:.0f} MB; {most} MB is the most. Split it into parts.",
            count=len(data) / 2**20,
            most=most // 2**20,
        )


def _passages(suffix: str, data: bytes) -> Iterator[Passage]:
    text = _bounded(decode(data))
    if suffix == ".md":
        return read_markdown(text)
    if suffix == ".csv":
        return read_table(text)
    if suffix == ".txt":
        return read_text(text)
    return read_subtitles(text, suffix[1:])


def _bounded(text: str) -> str:
    if len(text) > MAX_CHARACTERS:
        raise InvalidText(
            "The script has {count:,} characters; {most:,} is the most. Split it into parts.",
            count=len(text),
            most=MAX_CHARACTERS,
        )
    lines = text.count("\n") + 1
    if lines > MAX_TYPED_LINES:
        raise InvalidText(_too_many(lines))
    return text.replace("\r\n", "\n")


def _too_many(lines: int) -> Message:
    return Message(
        "The script has {count:,} lines of text; {most:,} is the most. Split it into parts.",
        count=lines,
        most=MAX_TYPED_LINES,
    )
