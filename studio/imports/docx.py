"""Reads Word documents (.docx): paragraphs with heading styles are chapters.

Deleted text, field codes, footnotes, headers and pictures are left out. A style is found by its own
name, which is English in every language of Word.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from typing import IO

from studio.imports.archives import open_archive
from studio.imports.blocks import Block, Blocks, passages_of
from studio.imports.markup import Tag, parse
from studio.scripts.text.passages import Passage

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
            parse(archive.blocks(STYLES), styles)
        document = _Document(styles.headings)
        parse(archive.blocks(DOCUMENT), document)
    yield from passages_of(document.blocks)


class _Styles:
    """Ids of the styles of headings."""

    def __init__(self) -> None:
        self.headings: set[str] = set()
        self._id = ""

    def start(self, tag: Tag) -> None:
        if tag.name == "style":
            self._id = tag.values().get("styleId", "")
        elif tag.name == "name" and self._id and _HEADING.fullmatch(tag.values().get("val", "")):
            self.headings.add(self._id)

    def end(self, name: str) -> None:
        if name == "style":
            self._id = ""

    def text(self, data: str) -> None: ...


class _Document:
    """Its paragraphs."""

    def __init__(self, headings: Collection[str]) -> None:
        self.blocks = Blocks()
        self._headings = headings
        self._heading = False
        self._texts = 0  # open elements that hold text
        self._skipped = 0  # open elements that are left out

    def start(self, tag: Tag) -> None:
        name = tag.name
        if name in _SKIPPED or self._skipped:
            self._skipped += 1
        elif name == "t":
            self._texts += 1
        elif name in ("tab", "noBreakHyphen"):
            self.blocks.write("-" if name == "noBreakHyphen" else " ")
        elif name in ("br", "cr"):
            self.blocks.write("\n")
        elif name in ("pStyle", "outlineLvl"):
            self._style(name, tag.values().get("val", ""))

    def end(self, name: str) -> None:
        if self._skipped:
            self._skipped -= 1
        elif name == "t":
            self._texts -= 1
        elif name == "p":
            self.blocks.add(Block(self.blocks.taken(), self._heading))
            self._heading = False

    def text(self, data: str) -> None:
        if self._texts and not self._skipped:
            self.blocks.write(data)

    def _style(self, name: str, value: str) -> None:
        self._heading |= value in self._headings if name == "pStyle" else value in ("0", "1", "2")
