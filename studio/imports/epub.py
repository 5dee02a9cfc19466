"""Reads e-books (.epub): the documents of the spine in order, their headings as chapters.

A document without a heading has its title from the table of contents, which is not spoken.
Pictures, styles, notes' numbers and ruby readings are left out. Copy-protected books are refused.
"""

from __future__ import annotations

import posixpath
from collections.abc import Iterator
from typing import IO
from urllib.parse import unquote

from engine import InvalidText
from studio.imports.archives import DAMAGED, Archive, open_archive
from studio.imports.blocks import Block, Blocks, passages_of
from studio.imports.markup import Tag, parse
from studio.scripts.text.passages import Passage

MOST_ENTRIES = 10_000
MOST_BYTES = 48 * 2**20  # of documents, unpacked
MOST_CONTENTS = 4  # tables of contents that are read
LONGEST_TITLE = 1_000  # characters
CONTAINER, ENCRYPTION = "META-INF/container.xml", "META-INF/encryption.xml"
_PAGE, _NCX = "application/xhtml+xml", "application/x-dtbncx+xml"
_HEADINGS = ("h1", "h2", "h3")
_PARAGRAPHS = (
    "p div li dt dd blockquote section article aside header footer main figure figcaption pre hr "
    "table tr td th ul ol dl h4 h5 h6 body"
)
_BLOCKS = frozenset(_PARAGRAPHS.split())
_LEFT_OUT = "head script style nav svg math rt rp audio video object iframe"
_SKIPPED = frozenset(_LEFT_OUT.split())
_SPACES = " \t\n\r\f"
_BREAK = "\n"


def read_epub(file: IO[bytes]) -> Iterator[Passage]:
    """Passages in order. Raises InvalidText."""
    with open_archive(file, MOST_ENTRIES, MOST_BYTES) as archive:
        blocks = _blocks(archive)
    yield from passages_of(blocks)


def _blocks(archive: Archive) -> Blocks:
    package = _package(archive)
    titles = _contents(archive, package)
    locked = _encrypted(archive)
    blocks = Blocks()
    for path in package.spine:
        if path in locked:
            raise InvalidText("This book is copy-protected and cannot be read.")
        if path not in archive:
            continue
        first = len(blocks)
        page = _Page(blocks)
        parse(archive.blocks(path), page, html_page=True)
        page.flush()
        if path in titles and not any(each.heading for each in blocks[first:]):
            blocks.insert(first, Block(titles[path], heading=True, silent=True))
    return blocks


class _Package:
    """The parts of a book, and the order in which they are read."""

    def __init__(self, folder: str) -> None:
        self.spine: list[str] = []
        self.contents: list[tuple[str, str]] = []  # path and type of tables of contents
        self._folder = folder
        self._paths: dict[str, str] = {}  # by id

    def start(self, tag: Tag) -> None:
        if tag.name == "item":
            self._item(tag.values())
        elif tag.name == "itemref":
            own = tag.values()
            path = self._paths.get(own.get("idref", ""), "")
            if path and own.get("linear") != "no" and path not in self.spine[-1:]:
                self.spine.append(path)
        if max(len(self.spine), len(self._paths), len(self.contents)) > MOST_ENTRIES:
            raise InvalidText(DAMAGED)  # the same part again and again

    def end(self, name: str) -> None: ...

    def text(self, data: str) -> None: ...

    def _item(self, own: dict[str, str]) -> None:
        path = _joined(self._folder, own.get("href", ""))
        kind = own.get("media-type", "")
        is_nav = "nav" in own.get("properties", "").split()
        if kind == _NCX or is_nav:
            self.contents.append((path, kind))
        if kind in (_PAGE, "text/html") and not is_nav:
            self._paths[own.get("id", "")] = path


class _Attributes:
    """Values of an attribute of all elements with a name."""

    def __init__(self, element: str, attribute: str) -> None:
        self.values: list[str] = []
        self._element, self._attribute = element, attribute

    def start(self, tag: Tag) -> None:
        if tag.name == self._element and self._attribute in (own := tag.values()):
            self.values.append(own[self._attribute])
            if len(self.values) > MOST_ENTRIES:
                raise InvalidText(DAMAGED)

    def end(self, name: str) -> None: ...

    def text(self, data: str) -> None: ...


def _package(archive: Archive) -> _Package:
    roots = _Attributes("rootfile", "full-path")
    parse(archive.blocks(CONTAINER), roots)
    if not roots.values:
        raise InvalidText(DAMAGED)
    package = _Package(posixpath.dirname(roots.values[0]))
    parse(archive.blocks(roots.values[0]), package)
    return package


def _encrypted(archive: Archive) -> frozenset[str]:
    if ENCRYPTION not in archive:
        return frozenset()
    found = _Attributes("CipherReference", "URI")
    parse(archive.blocks(ENCRYPTION), found)
    return frozenset(_joined("", uri) for uri in found.values)


def _contents(archive: Archive, package: _Package) -> dict[str, str]:
    """Titles by path, the first of each."""
    titles: dict[str, str] = {}
    for path, kind in package.contents[:MOST_CONTENTS]:
        if path not in archive:
            continue
        links = _Links() if kind == _NCX else _PageLinks()
        parse(archive.blocks(path), links, html_page=kind != _NCX)
        for href, title in links.found:
            text = " ".join(title.split())
            if text:
                titles.setdefault(_joined(posixpath.dirname(path), href), text)
    return titles


class _Titles:
    """Links with their titles, as a table of contents has them."""

    def __init__(self) -> None:
        self.found: list[tuple[str, str]] = []
        self._title = ""
        self._reading = False

    def text(self, data: str) -> None:
        if self._reading and len(self._title) < LONGEST_TITLE:
            self._title += data[:LONGEST_TITLE]

    def _add(self, href: str) -> None:
        if len(self.found) < MOST_ENTRIES:
            self.found.append((href, self._title))


class _Links(_Titles):
    """The entries of an NCX, the older form of a table of contents."""

    def start(self, tag: Tag) -> None:
        if tag.name == "text":
            self._reading, self._title = True, ""
        elif tag.name == "content":
            self._add(tag.values().get("src", ""))

    def end(self, name: str) -> None:
        self._reading &= name != "text"


class _PageLinks(_Titles):
    """The links of a page, with their texts."""

    _href = ""

    def start(self, tag: Tag) -> None:
        if tag.name == "a":
            self._href = tag.values().get("href", "")
            self._reading, self._title = True, ""

    def end(self, name: str) -> None:
        if name == "a" and self._reading:
            self._reading = False
            self._add(self._href)


class _Page:
    """The paragraphs and headings of a page."""

    def __init__(self, blocks: Blocks) -> None:
        self._blocks = blocks
        self._heading = False
        self._skipped, self._depth = "", 0  # the open element that is left out, and those in it

    def start(self, tag: Tag) -> None:
        name = tag.name
        if self._skipped:
            self._depth += name == self._skipped and not tag.empty
        elif name in _SKIPPED or (name == "a" and "noteref" in tag.values().get("epub:type", "")):
            self._skipped, self._depth = ("", 0) if tag.empty else (name, 1)
        elif name == "br":
            self._blocks.write(_BREAK)
        elif name in _HEADINGS or name in _BLOCKS:
            self.flush()
            self._heading = name in _HEADINGS and not tag.empty

    def end(self, name: str) -> None:
        if self._skipped:
            self._depth -= name == self._skipped
            self._skipped = self._skipped if self._depth else ""
        elif name in _HEADINGS or name in _BLOCKS:
            self.flush()

    def text(self, data: str) -> None:
        """Line breaks of the source are spaces; those of the text are elements."""
        if not self._skipped:
            self._blocks.write(data.replace("\n", " ").replace("\r", " "))

    def flush(self) -> None:
        text = self._blocks.taken().strip(_SPACES)
        if text:
            lines = (" ".join(line.split()) for line in text.split(_BREAK))
            joined = (" " if self._heading else _BREAK).join(lines)
            self._blocks.add(Block(joined, self._heading))
        self._heading = False


def _joined(folder: str, href: str) -> str:
    """The path in the archive that a link leads to."""
    return posixpath.normpath(posixpath.join(folder, unquote(href.partition("#")[0])))
