"""Reads Word documents (.docx): paragraphs with heading styles are chapters.

Deleted text, field codes, footnotes, headers and pictures are left out. A style is found by its own
name, which is English in every language of Word.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from typing import IO

from studio.scripts.importers.archives import local as name_of
from studio.scripts.importers.archives import open_archive, parse_xml
from studio.scripts.importers.blocks import Block, passages_of
from studio.scripts.importers.passages import Passage

MOST_ENTRIES = 5_000
MOST_BYTES = 96 * 2**20  # unpacked
DOCUMENT, STYLES = "word/document.xml", "word/styles.xml"
_HEADING = re.compile(r"(?:heading [1-3]|title)", re.IGNORECASE)
_SKIPPED = frozenset(("del", "moveFrom", "Fallback", "instrText", "delText", "footnote"))


def read_docx(file: IO[bytes]) -> Iterator[Passage]:
    """Passages in order. Raises InvalidText."""
    with open_archive(file, MOST_ENTRIES, MOST_BYTES) as archive:
        styles = _Styles()
        if STYLES in archive:
            parse_xml(archive.blocks(STYLES), styles)
        document = _Document(styles.headings)
        parse_xml(archive.blocks(DOCUMENT), document)
    yield from passages_of(document.blocks)


class _Styles:
    """Ids of the styles of headings."""

    def __init__(self) -> None:
        self.headings: set[str] = set()
        self._id = ""

    def start(self, tag: str, attributes: dict[str, str]) -> None:
        own = {name_of(key): value for key, value in attributes.items()}
        if name_of(tag) == "style":
            self._id = own.get("styleId", "")
        elif name_of(tag) == "name" and self._id and _HEADING.fullmatch(own.get("val", "")):
            self.headings.add(self._id)

    def end(self, tag: str) -> None:
        if name_of(tag) == "style":
            self._id = ""


class _Document:
    """Its paragraphs."""

    def __init__(self, headings: Collection[str]) -> None:
        self.blocks: list[Block] = []
        self._headings = headings
        self._parts: list[str] = []
        self._heading = False
        self._texts = 0  # open elements that hold text
        self._skipped = 0  # open elements that are left out

    def start(self, tag: str, attributes: dict[str, str]) -> None:
        name = name_of(tag)
        if name in _SKIPPED or self._skipped:
            self._skipped += 1
        elif name == "t":
            self._texts += 1
        elif name in ("tab", "noBreakHyphen"):
            self._parts.append("-" if name == "noBreakHyphen" else " ")
        elif name in ("br", "cr"):
            self._parts.append("\n")
        elif name in ("pStyle", "outlineLvl"):
            self._style(name, next(iter(attributes.values()), ""))

    def end(self, tag: str) -> None:
        name = name_of(tag)
        if self._skipped:
            self._skipped -= 1
        elif name == "t":
            self._texts -= 1
        elif name == "p":
            self.blocks.append(Block("".join(self._parts), self._heading))
            self._parts, self._heading = [], False

    def data(self, text: str) -> None:
        if self._texts and not self._skipped:
            self._parts.append(text)

    def _style(self, name: str, value: str) -> None:
        self._heading |= value in self._headings if name == "pStyle" else value in ("0", "1", "2")
