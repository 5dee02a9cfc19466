"""Reads e-books (.epub): the documents of the spine in order, chapters by the table of contents.

Without a table of contents that divides the text, headings are chapters. Title, author, language
and cover come from the package. Which parts are left out is told by the pages (epub_page.py), by
the book's landmarks, and by titles such as "Contents". Copy-protected books are refused.
"""

from __future__ import annotations

import posixpath
import re
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import IO, Final
from urllib.parse import unquote

from engine import InvalidText
from studio.imports.archives import DAMAGED, Archive, open_archive
from studio.imports.books.blocks import Block, Blocks, kind_of_title
from studio.imports.books.epub_page import Page
from studio.imports.markup import Tag, parse
from studio.scripts.books import LONGEST, Book

MOST_ENTRIES = 10_000
MOST_BYTES = 48 * 2**20  # of documents, unpacked
MOST_CONTENTS = 4  # tables of contents that are read
MOST_PICTURE = 24 << 20  # bytes of a cover
LONGEST_TITLE = 1_000  # characters
LONGEST_COPYRIGHT = 30_000  # characters; a longer page that a title calls so is text
MOST_AUTHORS = 3
CONTAINER, ENCRYPTION = "META-INF/container.xml", "META-INF/encryption.xml"
_PAGE, _NCX = "application/xhtml+xml", "application/x-dtbncx+xml"
_PICTURES = ("image/jpeg", "image/png", "image/gif", "image/webp")
_ADDRESS = re.compile(r"\s?<[^<>@]{1,100}@[^<>]{1,100}>")
_LANDMARKS: Final[Mapping[str, str]] = {  # of EPUB 3, and of the guide of EPUB 2
    "copyright-page": "copyright", "copyright": "copyright", "colophon": "copyright",
    "toc": "contents", "loi": "contents", "lot": "contents",
    "index": "index", "footnotes": "notes", "endnotes": "notes", "rearnotes": "notes",
    "notes": "notes",
}  # fmt: skip


@dataclass
class EpubBook:
    blocks: Blocks
    book: Book
    picture: bytes  # of the cover, as it came; empty: none


def read_epub(file: IO[bytes]) -> EpubBook:
    """Raises InvalidText."""
    with open_archive(file, MOST_ENTRIES, MOST_BYTES) as archive:
        package = _package(archive)
        return EpubBook(_blocks(archive, package), package.book(), _cover(archive, package))


def _blocks(archive: Archive, package: _Package) -> Blocks:
    contents = _contents(archive, package)
    locked = _encrypted(archive)
    blocks = Blocks()
    noted: set[str] = set()
    for path in package.spine:
        if path in locked:
            raise InvalidText("This book is copy-protected and cannot be read.")
        if path not in archive:
            continue
        first = len(blocks)
        entries = contents.entries.get(path, {})
        kind = "contents" if path in package.navigation else contents.kind(path)
        page = Page(blocks, entries, noted, kind if kind in ("contents", "notes") else "")
        parse(archive.blocks(path), page, html_page=True)
        page.finish()
        _leave_out(blocks, first, entries, kind)
    return blocks


def _leave_out(blocks: Blocks, first: int, entries: Mapping[str, list[str]], kind: str) -> None:
    """The page that begins at `first`, if a landmark, its title or its heading calls it so."""
    section = blocks[first:]
    text = [block for block in section if not block.entry]
    headings = [block.text for block in text[:1] if block.heading and not block.kind]
    titles = [*entries.get("", ()), *headings]
    kind = kind or next(filter(None, map(kind_of_title, titles)), "")
    size = sum(len(block.text) for block in text)
    if not kind or not text or (kind == "copyright" and size > LONGEST_COPYRIGHT):
        return
    if sum(block.entry for block in section) > 1:  # the page has more than this
        return
    item = max(block.item for block in section) + 1
    blocks[first:] = [
        block if block.kind else Block(block.text, block.level, kind=kind, item=item)
        for block in text
    ]


class _Package:
    """The parts of a book, the order in which they are read, and what it says of itself."""

    def __init__(self, folder: str) -> None:
        self.spine: list[str] = []
        self.contents: list[tuple[str, str]] = []  # path and type of tables of contents
        self.navigation: set[str] = set()
        self.guide: list[tuple[str, str]] = []  # path and type of parts
        self.pictures: list[tuple[str, str, str]] = []  # id, path and properties
        self.cover = ""  # the id of a picture
        self._folder = folder
        self._paths: dict[str, str] = {}  # by id
        self._titles: list[str] = []
        self._languages: list[str] = []
        self._creators: list[tuple[str, str, str]] = []  # id, role and name
        self._roles: dict[str, str] = {}  # by id
        self._open = ""  # the element that is read
        self._text = ""
        self._own: dict[str, str] = {}

    def start(self, tag: Tag) -> None:
        name = tag.name
        if name == "item":
            self._item(tag.values())
        elif name == "itemref":
            attributes = tag.values()
            path = self._paths.get(attributes.get("idref", ""), "")
            if path and attributes.get("linear") != "no" and path not in self.spine[-1:]:
                self.spine.append(path)
        elif name == "reference":
            attributes = tag.values()
            self.guide.append(
                (_joined(self._folder, attributes.get("href", "")), attributes.get("type", ""))
            )
        elif name in ("title", "creator", "language", "meta"):
            self._open, self._text, self._own = name, "", tag.values()
            if self._own.get("name") == "cover":
                self.cover = self._own.get("content", "")
        counts = map(len, (self.spine, self._paths, self.contents, self.guide, self.pictures))
        if max(*counts, len(self._creators), len(self._titles)) > MOST_ENTRIES:
            raise InvalidText(DAMAGED)  # the same part again and again

    def end(self, name: str) -> None:
        if name != self._open:
            return
        text, attributes = " ".join(self._text.split())[:LONGEST], self._own
        if name == "title":
            self._titles.append(text)
        elif name == "language":
            self._languages = [*self._languages, text][:1]
        elif name == "creator":
            name = _ADDRESS.sub("", text)
            self._creators.append((attributes.get("id", ""), attributes.get("role", ""), name))
        elif attributes.get("property") == "role" and len(self._roles) < MOST_ENTRIES:
            self._roles[attributes.get("refines", "").removeprefix("#")] = text
        self._open = ""

    def text(self, data: str) -> None:
        if self._open and len(self._text) < LONGEST_TITLE:
            self._text += data[:LONGEST_TITLE]

    def book(self) -> Book:
        names = [(role or self._roles.get(id, ""), name) for id, role, name in self._creators]
        authors = [name for role, name in names if name and role in ("", "aut")]
        authors = authors or [name for _, name in names if name]
        return Book(
            title=next(filter(None, self._titles), ""),
            author=", ".join(dict.fromkeys(authors[:MOST_AUTHORS]))[:LONGEST],
            language=(self._languages or [""])[0][:40],
        )

    def _item(self, attributes: dict[str, str]) -> None:
        path = _joined(self._folder, attributes.get("href", ""))
        kind, properties = (
            attributes.get("media-type", ""),
            attributes.get("properties", "").split(),
        )
        if kind == _NCX or "nav" in properties:
            self.contents.append((path, kind))
        if kind in (_PAGE, "text/html"):
            self._paths[attributes.get("id", "")] = path
            if "nav" in properties:
                self.navigation.add(path)
        elif kind in _PICTURES:
            self.pictures.append((attributes.get("id", ""), path, " ".join(properties)))


class _Attributes:
    """Values of an attribute of all elements with a name."""

    def __init__(self, element: str, attribute: str) -> None:
        self.values: list[str] = []
        self._element, self._attribute = element, attribute

    def start(self, tag: Tag) -> None:
        if tag.name == self._element and self._attribute in (attributes := tag.values()):
            self.values.append(attributes[self._attribute])
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


def _cover(archive: Archive, package: _Package) -> bytes:
    """The picture that the package calls its cover, or the first one of its cover page."""
    pictures = package.pictures
    found = [path for _, path, properties in pictures if "cover-image" in properties.split()]
    found += [path for id, path, _ in pictures if id == package.cover]
    found += [path for id, path, _ in pictures if id.lower() in ("cover", "cover-image")]
    for page in [path for path, kind in package.guide if kind == "cover" and path in archive][:1]:
        sources = _Attributes("img", "src")
        parse(archive.blocks(page), sources, html_page=True)
        found += [_joined(posixpath.dirname(page), each) for each in sources.values[:1]]
    there = next((path for path in found if path in archive), "")
    return archive.read(there, MOST_PICTURE) if there else b""


@dataclass
class _Contents:
    """Titles by path and id, and the kinds of parts by path."""

    entries: dict[str, dict[str, list[str]]] = field(
        default_factory=lambda: defaultdict(lambda: defaultdict(list))
    )
    kinds: dict[str, str] = field(default_factory=dict)

    def kind(self, path: str) -> str:
        return self.kinds.get(path, "")


def _contents(archive: Archive, package: _Package) -> _Contents:
    """Entries of the first table of contents that has any; EPUB 3's before the older one's."""
    contents = _Contents()
    for path, landmark in package.guide:
        if landmark in _LANDMARKS and landmark != "toc":  # which often is the first chapter
            contents.kinds.setdefault(path, _LANDMARKS[landmark])
    tables = sorted(package.contents[:MOST_CONTENTS], key=lambda each: each[1] == _NCX)
    for path, kind in tables:
        if path not in archive:
            continue
        links = _Links() if kind == _NCX else _PageLinks()
        parse(archive.blocks(path), links, html_page=kind != _NCX)
        folder = posixpath.dirname(path)
        for href, landmark in links.landmarks:
            if "#" not in href:
                contents.kinds.setdefault(_joined(folder, href), _LANDMARKS[landmark])
        if contents.entries:
            continue
        for href, title in links.found:
            text = " ".join(title.split())
            if text:
                entries = contents.entries[_joined(folder, href)]
                entries[unquote(href.partition("#")[2])].append(text)
    return contents


class _Titles:
    """Links with their titles, as a table of contents has them."""

    def __init__(self) -> None:
        self.found: list[tuple[str, str]] = []
        self.landmarks: list[tuple[str, str]] = []
        self._title = ""
        self._reading = False

    def text(self, data: str) -> None:
        if self._reading and len(self._title) < LONGEST_TITLE:
            self._title += data[:LONGEST_TITLE]

    def _add(self, href: str) -> None:
        if len(self.found) < MOST_ENTRIES:
            self.found.append((href, self._title))


class _Links(_Titles):
    """The entries of an NCX, the older form of a table of contents; not those of its page list."""

    _listed = False

    def start(self, tag: Tag) -> None:
        if tag.name in ("pageList", "navList"):
            self._listed = True
        elif tag.name == "text" and not self._listed:
            self._reading, self._title = True, ""
        elif tag.name == "content" and not self._listed:
            self._add(tag.values().get("src", ""))

    def end(self, name: str) -> None:
        self._reading &= name != "text"
        self._listed &= name not in ("pageList", "navList")


class _PageLinks(_Titles):
    """The links of a page's table of contents, with their texts, and its landmarks."""

    _href, _type, _skipped = "", "", False

    def start(self, tag: Tag) -> None:
        if tag.name == "nav":
            types = tag.values().get("epub:type", "toc").split()
            self._skipped = "toc" not in types
        elif tag.name == "a":
            attributes = tag.values()
            landmark = next((each for each in attributes.get("epub:type", "").split()
                             if each in _LANDMARKS and each != "toc"), "")  # fmt: skip
            if landmark and len(self.landmarks) < MOST_ENTRIES:
                self.landmarks.append((attributes.get("href", ""), landmark))
            if not self._skipped:
                self._href, self._reading, self._title = attributes.get("href", ""), True, ""

    def end(self, name: str) -> None:
        if name == "nav":
            self._skipped = False
        elif name == "a" and self._reading:
            self._reading = False
            self._add(self._href)


def _joined(folder: str, href: str) -> str:
    """The path in the archive that a link leads to."""
    return posixpath.normpath(posixpath.join(folder, unquote(href.partition("#")[0])))
