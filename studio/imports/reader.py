"""Reads scripts from files of text and books.

All input is untrusted: size and lines are bounded before any work, and every error says what to do.
This module opens no files by name; it takes one that is open.
"""

from __future__ import annotations

import base64
import codecs
import os
from collections.abc import Iterable, Iterator
from pathlib import PurePath
from typing import IO

from engine import InvalidText
from studio.imports.books.blocks import Blocks, passages_of
from studio.imports.books.docx import read_docx
from studio.imports.books.epub import read_epub
from studio.imports.books.pdf import read_pdf
from studio.imports.cover import as_jpeg
from studio.imports.formats import BOOKS, MAX_BOOK_BYTES, MAX_BYTES, check_name
from studio.imports.markdown import read_markdown
from studio.imports.subtitle_files import read_subtitles
from studio.imports.tables import read_table
from studio.scripts.books import Book, Imported, LeftOut
from studio.scripts.model import MAX_LINES, Script
from studio.scripts.text.dialogue import read_text
from studio.scripts.text.passages import (
    PLAIN,
    NothingToSpeak,
    Passage,
    SpeechOptions,
    build_parts,
    clean,
)
from studio.scripts.text.typed import bounded


def script_of_file(name: str, file: IO[bytes], options: SpeechOptions = PLAIN) -> Script:
    """A script from a file; the extension of its name tells the format."""
    return imported(name, file, options).script


def imported(name: str, file: IO[bytes], options: SpeechOptions = PLAIN) -> Imported:
    """A script from a file, with what the file says of itself and what is left out."""
    check_name(name)
    suffix = PurePath(name).suffix.lower()
    if suffix not in BOOKS:
        return _of_passages(_passages(suffix, file), options)
    _check_size(file, MAX_BOOK_BYTES)
    if suffix == ".epub":
        read = read_epub(file)
        return _of_book(read.blocks, read.book, as_jpeg(read.picture), options)
    blocks, book = (read_docx if suffix == ".docx" else read_pdf)(file)
    return _of_book(blocks, book, b"", options)


def _of_book(blocks: Blocks, book: Book, cover: bytes, options: SpeechOptions) -> Imported:
    picture = base64.b64encode(cover).decode()
    try:
        return _of_passages(passages_of(blocks), options).having(book=book, cover=picture)
    except NothingToSpeak as error:
        raise InvalidText(
            "No text was found in this book. If its pages are pictures, use a program that "
            "recognises the text first."
        ) from error


def _of_passages(passages: Iterable[Passage], options: SpeechOptions) -> Imported:
    script, rest = build_parts(passages, options)
    parts = [
        LeftOut(kind=passage.left_out, text=text, after=after)
        for passage, after in rest[:MAX_LINES]
        if (text := "\n".join(map(clean, passage.text.split("\n"))).strip())
    ]
    return Imported(script=script, left_out=tuple(parts))


def decode(data: bytes) -> str:
    """Decode a file: UTF-8, or UTF-16 with a byte order mark."""
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


def _check_size(file: IO[bytes], most: int) -> None:
    size = file.seek(0, os.SEEK_END)
    file.seek(0)
    if size > most:
        raise InvalidText(
            "The file has {count:.0f} MB; {most} MB is the most. Split it into parts.",
            count=size / 2**20,
            most=most // 2**20,
        )


def _passages(suffix: str, file: IO[bytes]) -> Iterator[Passage]:
    _check_size(file, MAX_BYTES)
    text = bounded(decode(file.read(MAX_BYTES)))
    if suffix == ".md":
        return read_markdown(text)
    if suffix == ".csv":
        return read_table(text)
    if suffix == ".txt":
        return read_text(text)
    return read_subtitles(text, suffix[1:])
