"""Reads Word documents (.docx): headings by their styles, rows of tables, notes, properties.

Deleted text, field codes, headers and pictures are dropped; notes and the table of contents are
left out. A style is found by its own name, which is English in every language of Word.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import IO

from studio.imports.archives import Archive, open_archive
from studio.imports.books.blocks import Block, Blocks, without_titled_parts
from studio.imports.books.table_rows import TableRows
from studio.imports.markup import Tag, parse
from studio.scripts.books import LONGEST, Book

MOST_ENTRIES = 5_000
MOST_BYTES = 96 * 2**20  # unpacked
DOCUMENT, STYLES, PROPERTIES = "word/document.xml", "word/styles.xml", "docProps/core.xml"
NOTES = {"footnoteReference": "word/footnotes.xml", "endnoteReference": "word/endnotes.xml"}
_TITLE = 1  # the level of a document's title; headings come below
_HEADING = re.compile(r"heading ([1-9])", re.IGNORECASE)
_CONTENTS = re.compile(r"toc (?:[1-9]|heading)|table of figures", re.IGNORECASE)
_SKIPPED = frozenset(("del", "moveFrom", "Fallback", "instrText", "delText", "footnote"))


def read_docx(file: IO[bytes]) -> tuple[Blocks, Book]:
    """Raises InvalidText."""
    with open_archive(file, MOST_ENTRIES, MOST_BYTES) as archive:
        styles, properties = _Styles(), _Properties()
        for name, target in ((STYLES, styles), (PROPERTIES, properties)):
            if name in archive:
                parse(archive.blocks(name), target)
        notes = {element: _notes(archive, name) for element, name in NOTES.items()}
        document = _Document(styles, notes)
        parse(archive.blocks(DOCUMENT), document)
    document.blocks[:] = without_titled_parts(document.blocks)
    own = properties.texts
    title, author = own.get("title", ""), own.get("creator", "")
    language = own.get("language", "") or styles.language
    return document.blocks, Book(title=title, author=author, language=language[:40])


class _Properties:
    """Title, creator and language."""

    def __init__(self) -> None:
        self.texts: dict[str, str] = {}
        self._open = ""

    def start(self, tag: Tag) -> None:
        self._open = tag.name if tag.name in ("title", "creator", "language") else ""

    def end(self, name: str) -> None:
        self._open = ""

    def text(self, data: str) -> None:
        if self._open:
            text = f"{self.texts.get(self._open, '')}{data[:LONGEST]}"
            self.texts[self._open] = " ".join(text.split())[:LONGEST]


class _Styles:
    """Levels of the styles of headings, and styles of a table of contents, by id."""

    def __init__(self) -> None:
        self.levels: dict[str, int] = {}
        self.contents: set[str] = set()
        self.language = ""
        self._id = ""

    def start(self, tag: Tag) -> None:
        if tag.name == "style":
            self._id = tag.values().get("styleId", "")
        elif tag.name == "name" and self._id:
            name = tag.values().get("val", "")
            if heading := _HEADING.fullmatch(name):
                self.levels[self._id] = _TITLE + int(heading[1])
            elif name.lower() == "title":
                self.levels[self._id] = _TITLE
            elif _CONTENTS.fullmatch(name):
                self.contents.add(self._id)
        elif tag.name == "lang" and not self.language:
            self.language = tag.values().get("val", "")

    def end(self, name: str) -> None:
        if name == "style":
            self._id = ""

    def text(self, data: str) -> None: ...


class _Notes:
    """Texts of notes by id."""

    def __init__(self) -> None:
        self.texts: dict[str, str] = {}
        self._blocks = Blocks()  # which bounds their text
        self._id = ""
        self._texts = 0

    def start(self, tag: Tag) -> None:
        if tag.name in ("footnote", "endnote"):
            own = tag.values()
            self._id = "" if "type" in own else own.get("id", "")  # lines that divide have a type
        self._texts += tag.name == "t"

    def end(self, name: str) -> None:
        if name in ("footnote", "endnote"):
            text = self._blocks.taken().strip()
            if text and self._id:
                self.texts[self._id] = text
                self._blocks.add(Block(text))
        elif name == "p":
            self._blocks.write("\n")
        self._texts -= name == "t"

    def text(self, data: str) -> None:
        if self._texts:
            self._blocks.write(data)


def _notes(archive: Archive, name: str) -> dict[str, str]:
    notes = _Notes()
    if name in archive:
        parse(archive.blocks(name), notes)
    return notes.texts


class _Document:
    """Its paragraphs, each with the notes that it names behind it."""

    def __init__(self, styles: _Styles, notes: Mapping[str, dict[str, str]]) -> None:
        self.blocks = Blocks()
        self._styles, self._notes = styles, notes
        self._level, self._kind = Block.level, ""
        self._texts = 0  # open elements that hold text
        self._skipped = 0  # open elements that are dropped
        self._named: list[str] = []  # notes of the open paragraph
        self._item = 0
        self._rows = TableRows(self.blocks.add)

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
        elif name in NOTES:
            text = self._notes[name].pop(tag.values().get("id", ""), "")
            self._named += [text] if text else []
        elif name == "tr":
            self._rows.open()
        elif name == "tc":
            self._rows.cell()

    def end(self, name: str) -> None:
        if self._skipped:
            self._skipped -= 1
        elif name == "t":
            self._texts -= 1
        elif name == "p":
            self._paragraph()
        elif name == "tr" and self._rows:
            self._rows.close()

    def text(self, data: str) -> None:
        if self._texts and not self._skipped:
            self.blocks.write(data)

    def _paragraph(self) -> None:
        text = self.blocks.taken()
        self._item += self._kind != "contents"  # whose paragraphs are one part
        if text.strip():
            self._rows.add(Block(text, self._level, kind=self._kind, item=self._item))
        for note in self._named:
            self._item += 1
            self.blocks.add(Block(note, kind="notes", item=self._item))
        self._level, self._kind = Block.level, ""
        self._named.clear()

    def _style(self, name: str, value: str) -> None:
        if name == "outlineLvl":
            self._level = min(self._level, _TITLE + 1 + int(value)) if value in "01234567" else 99
        elif value in self._styles.contents:
            self._kind = "contents"
        else:
            self._level = min(self._level, self._styles.levels.get(value, Block.level))
