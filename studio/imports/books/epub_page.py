"""A page of an e-book as blocks: paragraphs, headings, rows of tables, and what is left out.

Notes, copyright, contents and page numbers are known by `epub:type`, by `role`, and by the classes
that DocBook, Sphinx, SiSU and Project Gutenberg write. Numbers of notes, pictures and ruby readings
are dropped. A row of a table is a paragraph, its cells with commas between; one whose cells hold
paragraphs of their own is read as those.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace

from studio.imports.books.blocks import Block, Blocks, raised
from studio.imports.books.table_rows import TableRows
from studio.imports.markup import Tag

_HEADINGS = {f"h{level}": level for level in range(1, 7)}
_PARAGRAPHS = (
    "p div li dt dd blockquote section article aside header footer main figure figcaption pre hr "
    "table tbody thead tfoot tr td th ul ol dl body caption"
)
_BLOCKS = frozenset(_PARAGRAPHS.split()) | _HEADINGS.keys()
_LEFT_OUT = "head script style svg math rt rp audio video object iframe"
_SKIPPED = frozenset(_LEFT_OUT.split())
_VOID = frozenset(("br", "hr", "img", "wbr", "col", "input", "link", "meta"))
_SPACES = " \t\n\r\f"
_BREAK = "\n"
LINKED = 0.7  # part of a page that is links, from which it is a table of contents
MOST_NOTES = 50_000  # ids that are remembered
_MOST_LINKS = 8  # that a page needs for that
_NOTE_NUMBER = re.compile(r"[\[(]?(?:\d{1,4}|[*†‡§¶]{1,4}|↩|↑|\^)[\])]?[.:]?\ufe0e?")
_NUMBERED = re.compile(r"[\[(]?(?:\d{1,4}|[*†‡§¶]{1,4})[\])]?")
_TOKENS: Mapping[str, str] = {  # of epub:type and role
    **dict.fromkeys(
        ("footnote", "footnotes", "endnote", "endnotes", "rearnote", "rearnotes", "doc-footnote",
         "doc-endnote", "doc-endnotes"), "notes"),
    **dict.fromkeys(("copyright-page", "imprint", "colophon", "doc-colophon"), "copyright"),
    **dict.fromkeys(
        ("toc", "toc-brief", "loi", "lot", "loa", "lov", "landmarks", "page-list", "doc-toc",
         "doc-pagelist", "navigation"), "contents"),
    **dict.fromkeys(("index", "doc-index"), "index"),
    **dict.fromkeys(("pagebreak", "doc-pagebreak"), "pages"),
}  # fmt: skip
_CLASSES: Mapping[str, str] = {  # and ids
    **dict.fromkeys(
        ("footnote", "footnotes", "endnote", "endnotes", "footnote-body", "rearnote"), "notes"),
    **dict.fromkeys(
        ("copyright", "copyright-page", "copyrightpage", "legalnotice", "pg-boilerplate",
         "pg-header", "pg-footer"), "copyright"),
    **dict.fromkeys(
        ("toc", "toctree-wrapper", "list-of-figures", "list-of-tables", "list-of-examples",
         "navheader", "navfooter", "related"), "contents"),
    **dict.fromkeys(
        ("pagenum", "page-number", "pagenumber", "pageno", "pagebreak", "ocn"), "pages"),
}  # fmt: skip


class Page:
    """`entries`: titles of the contents by the id that they lead to; "" is the page's beginning.

    `noted`: ids of notes that the text before has named; those that the page names are added.
    """

    def __init__(
        self, blocks: Blocks, entries: Mapping[str, list[str]], noted: set[str], kind: str = ""
    ) -> None:
        self._blocks = blocks
        self._first = len(blocks)
        self._entries = dict(entries)
        self._noted = noted
        self._level = 0  # of the open heading
        self._skipped, self._depth = "", 0  # the open element that is dropped, and those in it
        self._kind, self._part, self._inner = kind, "", 0  # the open part that is left out
        self._whole = bool(kind)
        self._item = blocks[-1].item + 1 if blocks else 1
        self._number: list[str] | None = None  # the text of the open page number
        self._numbered, self._number_depth = "", 0
        self._link: list[str] | None = None
        self._target = ""  # the id that the open link leads to
        self._raised = 0  # open <sup>
        self._last = ""  # character of the open paragraph
        self._begun = False  # it has more than an opening bracket
        self._is_note = False  # the text has named an id in the open paragraph as a note's
        self._leads = False  # the paragraph began with the number of a note
        self._links = self._linked = 0  # how many, and their characters
        self._rows = TableRows(blocks.add)
        for title in self._entries.pop("", ()):
            self._mark(title)

    def start(self, tag: Tag) -> None:
        name = tag.name
        if self._skipped:
            self._depth += name == self._skipped and not tag.empty
            return
        attributes = tag.values() if tag.attributes else {}
        if name in _SKIPPED or _is_note_link(name, attributes):
            self._name_note(attributes.get("href", "").partition("#")[2])
            self._skipped, self._depth = ("", 0) if tag.empty else (name, 1)
            return
        self._place(name, attributes)
        self._number_depth += name == self._numbered and not tag.empty
        self._inner += name == self._part and not tag.empty
        empty = tag.empty or name in _VOID
        if name in _BLOCKS:
            self.flush()
            self._level = 0 if tag.empty else _HEADINGS.get(name, 0)
            self._table(name, attributes)
        if (kind := _kind_of(attributes, name)) and not empty:
            self._open(kind, name)
        if name == "br":
            self._write(_BREAK)
        elif name == "sup":
            self._raised += not tag.empty
        elif name == "a":
            self._end_link()
            self._link = None if tag.empty else []
            self._target = attributes.get("href", "").partition("#")[2]
        self._is_note |= bool(self._noted) and attributes.get("id", "") in self._noted

    def end(self, name: str) -> None:
        if self._skipped:
            self._depth -= name == self._skipped
            self._skipped = self._skipped if self._depth else ""
            return
        if name == "a":
            self._end_link()
        elif name == "sup":
            self._raised = max(0, self._raised - 1)
        elif name in _BLOCKS:
            self.flush()
            if name == "tr" and self._rows:
                self._rows.close()
        if name == self._numbered:
            self._number_depth -= 1
            if not self._number_depth:
                self._end_number()
        if name == self._part:
            self._inner -= 1
            if not self._inner:
                self.flush()
                self._kind = self._part = ""

    def text(self, data: str) -> None:
        """Line breaks of the source are spaces; those of the text are elements."""
        if not self._skipped:
            self._write(data.replace("\n", " ").replace("\r", " "))

    def flush(self) -> None:
        """End the open paragraph."""
        link = self._link is not None
        self._end_link()
        self._link = [] if link else None
        text = self._blocks.taken().strip(_SPACES)
        if text:
            lines = (" ".join(line.split()) for line in text.split(_BREAK))
            joined = (" " if self._level else _BREAK).join(lines)
            kind = self._kind
            if self._leads or kind == "notes":
                joined = joined.removeprefix("[]").lstrip()
            if not kind and self._is_note and (self._leads or _NUMBERED.match(joined)):
                kind, self._item = "notes", self._item + 1
            self._rows.add(Block(joined, self._level or Block.level, kind=kind, item=self._item))
            self._is_note = self._leads = False
        self._level, self._last, self._begun = 0, "", False

    def finish(self) -> None:
        """Finish the page; one that is mostly links is a table of contents."""
        self._end_number()
        self.flush()
        while self._rows:
            self._rows.close()
        section = self._blocks[self._first :]
        lost = next(iter(self._entries.values()), [])  # an entry that leads to no place on the page
        if lost and not any(block.entry for block in section[:1]):
            section.insert(0, Block(lost[0], entry=True))
        whole = sum(len(block.text) for block in section if not block.entry)
        if self._links >= _MOST_LINKS and self._linked > LINKED * whole:
            section = [
                block if block.kind else replace(block, kind="contents") for block in section
            ]
        if any(block.kind for block in section) and all(
            block.entry or block.kind for block in section
        ):
            section = [
                block for block in section if block.kind and not block.entry
            ]  # no chapter is there
        self._blocks[self._first :] = section

    def _name_note(self, target: str) -> None:
        if target and len(self._noted) < MOST_NOTES:
            self._noted.add(target)

    def _write(self, text: str) -> None:
        if self._number is not None:
            self._number.append(text)
        elif self._link is not None:
            self._link.append(text)
        elif text:
            text = raised(text) if self._raised and self._begun else text
            self._last = text[-1] if text.strip() or self._last else ""
            self._begun |= bool(text.strip(_SPACES + "[("))
            self._blocks.write(text)

    def _mark(self, title: str) -> None:
        self._rows.add(Block(title, entry=True))

    def _place(self, name: str, attributes: Mapping[str, str]) -> None:
        """Mark the entries of the contents that lead here."""
        place = attributes.get("id") or (attributes.get("name", "") if name == "a" else "")
        titles = self._entries.pop(place, ()) if place and self._entries else ()
        if titles and not self._level:  # a heading begins before what is in it
            self.flush()
        for title in titles:
            self._mark(title)

    def _open(self, kind: str, name: str) -> None:
        """A part that is left out begins, or one of the notes that it has."""
        if kind == "pages":
            if self._number is None:
                self._end_link()
                self._number, self._numbered, self._number_depth = [], name, 1
        elif not self._kind or (kind == self._kind == "notes"):
            self.flush()
            before = self._blocks[-1].kind if self._blocks else ""
            self._item += kind == "notes" or before != kind
            if not self._kind:
                self._kind, self._part, self._inner = kind, name, 1

    def _end_number(self) -> None:
        """The page number is a part of its own, before the paragraph that it stands in."""
        self._end_link()
        text = " ".join("".join(self._number or ()).split())
        self._number, self._numbered = None, ""
        if text:
            self._blocks.add(Block(text, kind="pages", item=self._item + 1))
            self._item += 2

    def _end_link(self) -> None:
        """Write the text of the open link, unless it is the number of a note."""
        if self._link is None:
            return
        text = "".join(self._link)
        self._link = None
        label = text.strip()
        if self._target and _NOTE_NUMBER.fullmatch(label):
            raised = self._raised or not label.isdigit() or self._last.strip()
            self._leads |= not self._begun
            if raised or self._kind == "notes":
                self._name_note(self._target if self._begun else "")
                return
        self._links += bool(label)
        self._linked += len(label)
        self._write(text)

    def _table(self, name: str, attributes: Mapping[str, str]) -> None:
        if name == "tr":
            self._rows.open()
        elif name in ("td", "th"):
            self._rows.cell("z3998:persona" in attributes.get("epub:type", "").split())


def _kind_of(attributes: Mapping[str, str], name: str) -> str:
    """The kind of part that an element's attributes tell."""
    types = f"{attributes.get('epub:type', '')} {attributes.get('role', '')}".split()
    kind = next((_TOKENS[each] for each in types if each in _TOKENS), "")
    if not kind and name == "nav":
        return "contents"
    if kind or not ("class" in attributes or "id" in attributes):
        return kind
    words = f"{attributes.get('class', '')} {attributes.get('id', '')}".lower().split()
    kind = next((_CLASSES[each] for each in words if each in _CLASSES), "")
    return kind if name in _BLOCKS or (kind == "pages" and name != "a") else ""


def _is_note_link(name: str, attributes: Mapping[str, str]) -> bool:
    if name != "a":
        return False
    named = (attributes.get(key, "") for key in ("epub:type", "role", "class"))
    types = " ".join(named).split()
    return not {"noteref", "doc-noteref", "footnote-reference", "doc-backlink"}.isdisjoint(types)
