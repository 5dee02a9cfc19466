"""Bounded reading of ZIP archives that strangers have made: EPUB, DOCX, projects.

Entries are counted before the directory is parsed, and decompressed in pieces against one budget,
so that neither a huge directory nor a zip bomb is expanded. Nothing is written to disk.
"""

from __future__ import annotations

import unicodedata
import zlib
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import IO
from zipfile import ZIP_DEFLATED, ZIP_STORED, BadZipFile, ZipFile, ZipInfo

from engine import InvalidText

_ENTRY = b"PK\x01\x02"  # begins every entry of the directory
_BLOCK = 1 << 18
_UTF8 = 0x800  # of an entry's flags: its name is in UTF-8
_METHODS = (ZIP_STORED, ZIP_DEFLATED)  # others expand a block without a bound

TOO_LARGE = "The file is too large when it is unpacked. Split it."
DAMAGED = "This file is damaged, or not what its name says. Save it again and upload it."


class Archive:
    """The files of an archive by name, up to a number of bytes together."""

    def __init__(self, archive: ZipFile, most_bytes: int) -> None:
        self._archive = archive
        self._left = most_bytes
        named = (each for each in archive.infolist() if each.filename)  # is_dir fails without one
        self._entries = {each.filename: each for each in named if not each.is_dir()}
        self._alike = {_alike(_written(each)): each for each in self._entries.values()}

    @property
    def names(self) -> frozenset[str]:
        return frozenset(self._entries)

    def __contains__(self, name: str) -> bool:
        return self._entry(name) is not None

    def read(self, name: str, most: int | None = None) -> bytes:
        """Raises InvalidText for a file that is missing, encrypted, damaged or too large."""
        data = bytearray()
        for block in self.blocks(name):
            data += block
            if most is not None and len(data) > most:
                raise InvalidText(TOO_LARGE)
        return bytes(data)

    def blocks(self, name: str) -> Iterator[bytes]:
        entry = self._entry(name)
        if entry is None or entry.compress_type not in _METHODS:
            raise InvalidText(DAMAGED)
        try:
            with self._archive.open(entry) as file:
                while block := file.read(min(_BLOCK, self._left + 1)):
                    self._left -= len(block)
                    if self._left < 0:
                        raise InvalidText(TOO_LARGE)
                    yield block
        except (BadZipFile, OSError, EOFError, RuntimeError, NotImplementedError, zlib.error):
            raise InvalidText(DAMAGED) from None  # RuntimeError: it is encrypted

    def _entry(self, name: str) -> ZipInfo | None:
        """A file by its name, or by one that other programs take for it."""
        return self._entries.get(name) or self._alike.get(_alike(name))


def _written(entry: ZipInfo) -> str:
    """The name that was meant: UTF-8, though the archive does not say so, else as it is."""
    with suppress(UnicodeError):
        if not entry.flag_bits & _UTF8:
            return entry.filename.encode("cp437").decode()
    return entry.filename


def _alike(name: str) -> str:
    """One form for all spellings of a name: of Windows, which has backslashes and no case, and of
    macOS, which takes letters apart."""
    return unicodedata.normalize("NFC", name.replace("\\", "/")).casefold()


@contextmanager
def open_archive(file: IO[bytes], most_entries: int, most_bytes: int) -> Iterator[Archive]:
    """Raises InvalidText if it is no archive, or has more entries."""
    if _entries_at_most(file) > most_entries:
        raise InvalidText("The file has too many parts. Split it.")
    try:
        with ZipFile(file) as archive:
            yield Archive(archive, most_bytes)
    except (BadZipFile, OSError, ValueError, EOFError, RuntimeError, NotImplementedError) as error:
        if isinstance(error, InvalidText):
            raise
        raise InvalidText(DAMAGED) from error


def _entries_at_most(file: IO[bytes]) -> int:
    """Beginnings of entries in all of the file; a directory cannot have more."""
    count, rest = 0, b""
    file.seek(0)
    while block := file.read(_BLOCK):
        count += (rest + block).count(_ENTRY)
        rest = block[-len(_ENTRY) + 1 :]
    file.seek(0)
    return count
