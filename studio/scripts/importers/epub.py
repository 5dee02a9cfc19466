"""Reads e-books (.epub): the documents of the spine in order, their headings as chapters.

A document without a heading has its title from the table of contents, which is not spoken.
Pictures, styles, notes' numbers and ruby readings are left out. Copy-protected books are refused.
"""

from __future__ import annotations

import posixpath
from collections.abc import Iterator
from html.parser import HTMLParser
from typing import IO
from urllib.parse import unquote

from engine import InvalidText
from studio.scripts.importers.archives import DAMAGED, Archive, local, open_archive, parse_xml
from studio.scripts.importers.blocks import Block, passages_of
from studio.scripts.importers.passages import MAX_CHARACTERS, Passage

MOST_ENTRIES = 10_000
MOST_BYTES = 48 * 2**20  # of documents, unpacked
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


def read_epub(file: IO[bytes]) -> Iterator[Passage]:
    """Passages in order. Raises InvalidText."""
    with open_archive(file, MOST_ENTRIES, MOST_BYTES) as archive:
        yield from passages_of(_blocks(archive))


def _blocks(archive: Archive) -> Iterator[Block]:
    package = _package(archive)
    titles = _contents(archive, package)
    locked = _encrypted(archive)
    characters = 0
    for path in package.spine:
        if path in locked:
            raise InvalidText("This book is copy-protected and cannot be read.")
        if path not in archive:
            continue
        blocks = _page(archive, path)
        if path in titles and not any(each.heading for each in blocks):
            yield Block(titles[path], heading=True, silent=True)
        yield from blocks
        characters += sum(len(each.text) for each in blocks)
        if characters > MAX_CHARACTERS:  # it is refused where it is built
            return


class _Package:
    """The parts of a book, and the order in which they are read."""

    def __init__(self, folder: str) -> None:
        self.spine: list[str] = []
        self.contents: list[tuple[str, str]] = []  # path and type of tables of contents
        self._folder = folder
        self._paths: dict[str, str] = {}  # by id

    def start(self, tag: str, own: dict[str, str]) -> None:
        if local(tag) == "item":
            path = _joined(self._folder, own.get("href", ""))
            kind = own.get("media-type", "")
            is_nav = "nav" in own.get("properties", "").split()
            if kind == _NCX or is_nav:
                self.contents.append((path, kind))
            if kind in (_PAGE, "text/html") and not is_nav:
                self._paths[own.get("id", "")] = path
        elif local(tag) == "itemref" and own.get("linear") != "no":
            path = self._paths.get(own.get("idref", ""), "")
            if path and path not in self.spine[-1:]:
                self.spine.append(path)


class _Attributes:
    """Values of an attribute of all elements with a name."""

    def __init__(self, element: str, attribute: str) -> None:
        self.values: list[str] = []
        self._element, self._attribute = element, attribute

    def start(self, tag: str, own: dict[str, str]) -> None:
        if local(tag) == self._element and self._attribute in own:
            self.values.append(own[self._attribute])


def _package(archive: Archive) -> _Package:
    roots = _Attributes("rootfile", "full-path")
    parse_xml(archive.blocks(CONTAINER), roots)
    if not roots.values:
        raise InvalidText(DAMAGED)
    package = _Package(posixpath.dirname(roots.values[0]))
    parse_xml(archive.blocks(roots.values[0]), package)
    if len(package.spine) > MOST_ENTRIES:  # the same part again and again
        raise InvalidText(DAMAGED)
    return package


def _encrypted(archive: Archive) -> frozenset[str]:
    if ENCRYPTION not in archive:
        return frozenset()
    found = _Attributes("CipherReference", "URI")
    parse_xml(archive.blocks(ENCRYPTION), found)
    return frozenset(_joined("", uri) for uri in found.values)


def _contents(archive: Archive, package: _Package) -> dict[str, str]:
    """Titles by path, the first of each."""
    titles: dict[str, str] = {}
    for path, kind in package.contents:
        if path not in archive:
            continue
        links = _Links() if kind == _NCX else _page_links(archive, path)
        if isinstance(links, _Links):
            parse_xml(archive.blocks(path), links)
        for href, title in links.found:
            text = " ".join(title.split())
            if text:
                titles.setdefault(_joined(posixpath.dirname(path), href), text)
    return titles


class _Links:
    """The entries of an NCX, the older form of a table of contents."""

    def __init__(self) -> None:
        self.found: list[tuple[str, str]] = []
        self._label = ""
        self._in_text = False

    def start(self, tag: str, own: dict[str, str]) -> None:
        if local(tag) == "text":
            self._in_text, self._label = True, ""
        elif local(tag) == "content":
            self.found.append((own.get("src", ""), self._label))

    def end(self, tag: str) -> None:
        self._in_text &= local(tag) != "text"

    def data(self, text: str) -> None:
        if self._in_text and len(self._label) < 1_000:
            self._label += text


class _PageLinks(HTMLParser):
    """The links of a page, with their texts."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[tuple[str, str]] = []
        self._open: list[str] | None = None

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag == "a":
            self._open = []
            self.found.append((dict(attrs).get("href") or "", ""))

    def handle_endtag(self, tag: str) -> None:
        if tag == "a" and self._open is not None:
            self.found[-1] = (self.found[-1][0], "".join(self._open))
            self._open = None

    def handle_data(self, data: str) -> None:
        if self._open is not None:
            self._open.append(data)


def _page_links(archive: Archive, path: str) -> _PageLinks:
    parser = _PageLinks()
    _feed(parser, archive, path)
    return parser


class _Page(HTMLParser):
    """The paragraphs and headings of a page."""

    def __init__(self) -> None:
        super().__init__()
        self.blocks: list[Block] = []
        self._parts: list[str] = []
        self._heading = False
        self._skipped: list[str] = []  # open elements that are left out

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        own = dict(attrs)
        note = tag == "a" and "noteref" in (own.get("epub:type") or "")
        if self._skipped:
            if tag == self._skipped[-1]:
                self._skipped.append(tag)
        elif tag in _SKIPPED or note:
            self._skipped.append(tag)
        elif tag == "br":
            self._parts.append("\n")
        elif tag in _HEADINGS or tag in _BLOCKS:
            self.flush()
            self._heading = tag in _HEADINGS

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if not self._skipped and (tag == "br" or tag in _BLOCKS):
            self.handle_starttag(tag, attrs)

    def handle_endtag(self, tag: str) -> None:
        if self._skipped:
            if tag == self._skipped[-1]:
                self._skipped.pop()
        elif tag in _HEADINGS or tag in _BLOCKS:
            self.flush()

    def handle_data(self, data: str) -> None:
        if not self._skipped:
            self._parts.append(_one_spaced(data))

    def flush(self) -> None:
        text = "".join(self._parts).strip(_SPACES)
        if text:
            lines = (" ".join(line.split()) for line in text.split("\n"))
            joined = (" " if self._heading else "\n").join(lines)
            self.blocks.append(Block(joined, self._heading))
        self._parts, self._heading = [], False


def _page(archive: Archive, path: str) -> list[Block]:
    parser = _Page()
    _feed(parser, archive, path)
    parser.flush()
    return parser.blocks


def _feed(parser: HTMLParser, archive: Archive, path: str) -> None:
    data = archive.read(path)
    utf16 = data[:2] in (b"\xff\xfe", b"\xfe\xff")
    parser.feed(data.decode("utf-16" if utf16 else "utf-8-sig", errors="replace"))
    parser.close()


def _one_spaced(data: str) -> str:
    """Line breaks of the source are spaces; those of the text are elements."""
    return data.replace("\n", " ").replace("\r", " ")


def _joined(folder: str, href: str) -> str:
    """The path in the archive that a link leads to."""
    return posixpath.normpath(posixpath.join(folder, unquote(href.partition("#")[0])))
