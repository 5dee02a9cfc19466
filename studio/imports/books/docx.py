"""Reads Word documents (.docx): headings by their styles, rows of tables, notes, properties.

Deleted text, field codes, headers and pictures are dropped; notes and the table of contents are
left out. A style is found by its own name, which is English in every language of Word.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Mapping
from typing import IO

from studio.imports.archives import Archive, open_archive
from studio.imports.books.blocks import Block, Blocks, raised, without_titled_parts
from studio.imports.books.table_rows import TableRows
from studio.imports.markup import Tag, parse
from studio.scripts.books import LONGEST, Book

MOST_ENTRIES = 5_000
MOST_BYTES = 96 * 2**20  # unpacked
MOST_BASES = 20  # styles that one is based on, one after another
# Parts by the kind of their relation, where most makers put them; a file's relations go first.
PACKAGE = {"officeDocument": "word/document.xml", "core-properties": "docProps/core.xml"}
PARTS = {each: f"word/{each}.xml" for each in ("styles", "footnotes", "endnotes")}
NOTES = {"footnoteReference": "footnotes", "endnoteReference": "endnotes"}
_TITLE = 1  # the level of a document's title; headings come below
_HEADING = re.compile(r"heading ([1-9])", re.IGNORECASE)
_CONTENTS = re.compile(r"toc (?:[1-9]|heading)|table of figures", re.IGNORECASE)
_FORMER = ("pPrChange", "rPrChange")  # the form before a change that is tracked
_SKIPPED = frozenset(
    ("del", "moveFrom", "Fallback", "instrText", "delText", "footnote", "rt", *_FORMER)
)
_OFF = ("0", "false", "off")


def read_docx(file: IO[bytes]) -> tuple[Blocks, Book]:
    """Raises InvalidText."""
    with open_archive(file, MOST_ENTRIES, MOST_BYTES) as archive:
        styles, properties = _Styles(), _Properties()
        package = PACKAGE | _related(archive, "")
        main = package["officeDocument"]
        parts = PARTS | _related(archive, main)
        for name, target in ((parts["styles"], styles), (package["core-properties"], properties)):
            if name in archive:
                parse(archive.blocks(name), target)
        notes = {element: _notes(archive, parts[kind]) for element, kind in NOTES.items()}
        document = _Document(styles, notes)
        parse(archive.blocks(main), document)
    document.blocks[:] = without_titled_parts(document.blocks)
    found = properties.texts
    title, author = found.get("title", ""), found.get("creator", "")
    language = found.get("language", "") or styles.language
    return document.blocks, Book(title=title, author=author, language=language[:40])


class _Relations:
    """Parts by the kind of their relation; the first of each kind."""

    def __init__(self, folder: str) -> None:
        self.paths: dict[str, str] = {}
        self._folder = folder

    def start(self, tag: Tag) -> None:
        if tag.name == "Relationship" and len(self.paths) < MOST_ENTRIES:
            attributes = tag.values()
            path = posixpath.join("/", self._folder, attributes.get("Target", ""))
            kind = attributes.get("Type", "").rpartition("/")[2]
            self.paths.setdefault(kind, posixpath.normpath(path).lstrip("/"))

    def end(self, name: str) -> None: ...

    def text(self, data: str) -> None: ...


def _related(archive: Archive, part: str) -> dict[str, str]:
    """Paths of the parts that this one names; an empty name is that of the whole."""
    folder, name = posixpath.split(part)
    relations, found = posixpath.join(folder, "_rels", f"{name}.rels"), _Relations(folder)
    if relations in archive:
        parse(archive.blocks(relations), found)
    return found.paths


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
    """Levels of the styles of headings, and styles of a table of contents, by id.

    A style whose name tells nothing has the level that it sets, or that of the heading that it is
    based on.
    """

    def __init__(self) -> None:
        self.contents: set[str] = set()
        self.language = ""
        self._titles: set[str] = set()  # of the document; those based on them are none
        self._levels: dict[str, int] = {}
        self._based: dict[str, str] = {}
        self._id = ""

    def level(self, style: str) -> int:
        if style in self._titles:
            return _TITLE
        for _ in range(MOST_BASES):
            if style in self._levels or style not in self._based:
                break
            style = self._based[style]
        return self._levels.get(style, Block.level)

    def start(self, tag: Tag) -> None:
        if tag.name == "style":
            self._id = tag.values().get("styleId", "")
        elif tag.name == "basedOn" and self._id:
            self._based[self._id] = tag.values().get("val", "")
        elif tag.name == "outlineLvl" and self._id:
            self._levels.setdefault(self._id, _outlined(tag.values().get("val", "")))
        elif tag.name == "name" and self._id:
            name = tag.values().get("val", "")
            if heading := _HEADING.fullmatch(name):
                self._levels[self._id] = _TITLE + int(heading[1])
            elif name.lower() == "title":
                self._titles.add(self._id)
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
            attributes = tag.values()
            divides = attributes.get("type", "normal") != "normal"  # a line between text and notes
            self._id = "" if divides else attributes.get("id", "")
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
        self._run = self._hidden = self._raised = False  # one is open; it is not shown, or raised
        self._controls: list[str] = []  # open content controls: of which kind their content is
        self._around: list[tuple[int, str]] = []  # of paragraphs that open text boxes stand in
        self._named: list[str] = []  # notes of the open paragraph
        self._item = 0
        self._rows = TableRows(self.blocks.add)

    def start(self, tag: Tag) -> None:
        name = tag.name
        if name in _SKIPPED or self._skipped:
            self._skipped += 1
        elif name == "t":
            self._texts += 1
        elif name == "r":
            self._run, self._hidden, self._raised = True, False, False
        elif name == "vanish":
            self._hidden = self._run and tag.values().get("val") not in _OFF
        elif name in ("vertAlign", "position"):  # LibreOffice's are raised by half points
            value = tag.values().get("val", "")
            high = value == "superscript" or (value.isdecimal() and value.strip("0") != "")
            self._raised = self._raised or (self._run and high)
        elif name == "sdt":
            self._controls.append(self._controls[-1] if self._controls else "")
        elif name == "docPartGallery" and tag.values().get("val") == "Table of Contents":
            self._controls[-1:] = ["contents"]
        elif name == "txbxContent":  # it is no part of the line that it stands in
            self._around.append((self._level, self._kind))
            self._paragraph()
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
        elif name == "r":
            self._run = self._hidden = self._raised = False
        elif name == "sdt":
            del self._controls[-1:]
        elif name == "txbxContent" and self._around:
            self._level, self._kind = self._around.pop()
        elif name == "p":
            self._paragraph()
        elif name == "tr" and self._rows:
            self._rows.close()

    def text(self, data: str) -> None:
        if self._texts and not (self._skipped or self._hidden):
            self.blocks.write(raised(data) if self._raised else data)

    def _paragraph(self) -> None:
        text = self.blocks.taken()
        self._kind = self._kind or (self._controls[-1] if self._controls else "")
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
            level = _outlined(value)
            self._level = min(self._level, level) if level < Block.level else level
        elif value in self._styles.contents:
            self._kind = "contents"
        else:
            self._level = min(self._level, self._styles.level(value))


def _outlined(value: str) -> int:
    """The level that an outline level stands for; from the ninth on it is text."""
    return _TITLE + 1 + int(value) if value in tuple("01234567") else Block.level
