"""Reads markup, XML and HTML alike, as a row of tags and texts; knows no document.

Linear in time and bounded in memory whatever comes: a page is read in blocks, what is unclosed goes
on to the end of the page as in browsers, and a tag that is longer than any real one is an error. No
tree is built and no entity is declared, so none can be multiplied.
"""

from __future__ import annotations

import codecs
import html
import re
from collections.abc import Iterable, Iterator
from functools import lru_cache
from typing import NamedTuple, Protocol

from engine import InvalidText
from studio.imports.archives import DAMAGED, TOO_LARGE

LONGEST_TAG = 4 << 20  # characters, with a picture in an attribute
LONGEST_VALUE = 2_000  # characters of an attribute that is read
MOST_ATTRIBUTES = 100  # of a tag, that are read
MOST_TOKENS = 6_000_000  # tags and texts of a document
_TAG = re.compile(r"</?([A-Za-z_][^\s/>]{0,200})")
_MARKUP = re.compile(r"<(?=[A-Za-z_/!?]|\Z)")  # any other `<` is text
_QUOTED_OR_END = re.compile(r"=\s{0,99}([\"'])|>")
_LONGEST_EQUALS = 100  # characters of it before the quote
# The value is optional, so that a name without one is taken whole: no place is looked at again.
_ATTRIBUTE = re.compile(
    r"([^\s/>=\"']+)(?:\s*=\s*(?:\"([^\"]*)\"|'([^']*)'|([^\s\"'>]+)))?",
)
_REFERENCE = re.compile(r"&(?:#[0-9]{1,7}|#[xX][0-9a-fA-F]{1,6}|[A-Za-z][A-Za-z0-9]{1,31});?")
_DECLARED = re.compile(rb"<\?xml[^>]{1,100}?encoding\s{0,9}=\s{0,9}[\"']([A-Za-z0-9_-]{1,20})[\"']")
_PLAIN_ENCODINGS = re.compile(
    r"(?:iso-8859-(?:[1-9]|1[013-6])|latin-?1|windows-125[0-8]|us-ascii)", re.IGNORECASE
)
_DOCTYPE = re.compile("<!doctype", re.IGNORECASE)
_HEAD_END = re.compile(r"[\[>]")
_OPENINGS = (("<!--", "-->"), ("<![CDATA[", "]]>"), ("<?", ">"), ("<!", ">"))
_TEXTS = frozenset(("script", "style"))  # of HTML: everything up to their end is text
_LONGEST_OPENING = len("<![CDATA[")


class Tag(NamedTuple):
    """`<name attributes>`, `</name>` or `<name/>`. Names are without their namespace."""

    name: str
    attributes: str  # as they are written
    ends: bool
    empty: bool

    def values(self) -> dict[str, str]:
        """Attributes by name; of an XML name also without its namespace."""
        found: dict[str, str] = {}
        for count, match in enumerate(_ATTRIBUTE.finditer(self.attributes)):
            if count >= MOST_ATTRIBUTES:
                break
            value = next((group for group in match.groups()[1:] if group is not None), "")
            name = match[1][:LONGEST_VALUE]
            found.setdefault(name, unescaped(value[:LONGEST_VALUE]))
            found.setdefault(name.rpartition(":")[2], found[name])
        return found


class Target(Protocol):
    """Receives tags and texts."""

    def start(self, tag: Tag) -> None: ...

    def end(self, name: str) -> None: ...

    def text(self, data: str) -> None: ...


def parse(blocks: Iterable[bytes], target: Target, html_page: bool = False) -> None:
    """Send tags and texts to a target. Raises InvalidText, also for unclosed elements of XML."""
    open_elements = 0
    for count, token in enumerate(scan(_decoded(blocks), html_page)):
        if count > MOST_TOKENS:
            raise InvalidText(TOO_LARGE)
        if isinstance(token, str):
            target.text(token)
        elif token.ends:
            open_elements -= 1
            target.end(token.name)
        else:
            open_elements += 1
            target.start(token)
            if token.empty and not html_page:
                open_elements -= 1
                target.end(token.name)
    if not html_page and open_elements:
        raise InvalidText(DAMAGED)


def scan(blocks: Iterable[str], html_page: bool = False) -> Iterator[Tag | str]:
    """Tags, and texts between them (in pieces). Raises InvalidText where XML declares entities."""
    scanner = _Scanner(html_page)
    for block in blocks:
        yield from scanner.feed(block)
    yield from scanner.rest()


class _Scanner:
    """Holds text that is not a whole token yet, and the end up to which text is skipped."""

    def __init__(self, html_page: bool) -> None:
        self._html = html_page
        self._left = ""
        self._searched = 0  # characters of a tag that is left, which hold no end of it
        self._skipping = ""  # the end of a comment or declaration that is open
        self._cdata = False
        self._raw: re.Pattern[str] | None = None  # the end of an element that is all text

    def feed(self, block: str) -> Iterator[Tag | str]:
        text, at = self._left + block, 0
        self._left = ""
        while at < len(text):
            if self._skipping:
                at = self._skipped(text, at)
            elif self._cdata:
                end = text.find("]]>", at)
                stop = end if end >= 0 else max(at, len(text) - 2)
                if stop > at:
                    yield text[at:stop]
                if end < 0:
                    self._left = text[stop:]
                    return
                self._cdata, at = False, end + 3
            elif self._raw:
                found = self._raw.search(text, at)
                if not found:
                    self._left = text[max(at, len(text) - 10) :]
                    return
                self._raw, at = None, found.start()
            else:
                found = _MARKUP.search(text, at)
                stop = found.start() if found else _before_reference(text, at)
                if stop > at:
                    yield unescaped(text[at:stop])
                if not found:
                    self._left = text[stop:]
                    return
                token, at = self._markup(text, stop)
                if token is not None:
                    yield token
                if at < 0:
                    return

    def rest(self) -> Iterator[str]:
        """The end of the text; of markup that was never closed nothing is left."""
        if self._left and not (self._skipping or self._raw or self._left.startswith("<")):
            yield unescaped(self._left)

    def _skipped(self, text: str, at: int) -> int:
        end = text.find(self._skipping, at)
        if end < 0:
            kept = len(self._skipping) - 1
            self._left = text[max(at, len(text) - kept) :] if kept else ""
            return len(text)
        at = end + len(self._skipping)
        self._skipping = ">" if self._skipping == "]" else ""
        return at

    def _markup(self, text: str, at: int) -> tuple[Tag | None, int]:
        """The token that begins here, and the place behind it; -1 where it is not whole."""
        named = _TAG.match(text, at)
        if named is None:
            return self._declaration(text, at)
        found, end = _tag_end(text, max(named.end(), at + self._searched))
        self._searched = 0 if found else end - at
        if not found:
            if len(text) - at > LONGEST_TAG:
                raise InvalidText(DAMAGED)
            self._left = text[at:]
            return None, -1
        name = named[1].rpartition(":")[2]
        ends, empty = text[at + 1] == "/", text[end - 1] == "/"
        if self._html:
            name = name.lower()
            if name in _TEXTS and not (ends or empty):
                self._raw = re.compile(f"</{name}", re.IGNORECASE)
        return Tag(name, text[named.end() : end], ends, empty and not ends), end + 1

    def _declaration(self, text: str, at: int) -> tuple[None, int]:
        if len(text) - at < _LONGEST_OPENING and _may_open(text[at:]):
            self._left = text[at:]
            return None, -1
        for opening, ending in _OPENINGS:
            if text.startswith(opening, at):
                self._cdata = opening == "<![CDATA["
                self._skipping = "" if self._cdata else ending
                if opening == "<!" and _DOCTYPE.match(text, at):
                    return None, self._doctype(text, at)
                return None, at + len(opening)
        self._skipping = ">"  # `</` names nothing: a comment, for browsers
        return None, at + len("</")

    def _doctype(self, text: str, at: int) -> int:
        """Pass over a document type. No declarations in it are needed, and in XML none is read."""
        found = _HEAD_END.search(text, at, at + LONGEST_VALUE)
        if found is None and len(text) - at < LONGEST_VALUE:
            self._skipping, self._left = "", text[at:]
            return -1
        if found and found[0] == "[":
            if not self._html:
                raise InvalidText(DAMAGED)
            self._skipping = "]"  # then, after spaces, `>`
        return at + len("<!DOCTYPE")


def unescaped(text: str) -> str:
    """The text with its references to characters; numbers of any length do no harm."""
    return _REFERENCE.sub(lambda match: _character(match[0]), text) if "&" in text else text


@lru_cache(maxsize=4096)
def _character(reference: str) -> str:
    return html.unescape(reference)


def _tag_end(text: str, at: int) -> tuple[bool, int]:
    """Where a tag's `>` is, which may also stand in a quoted value, or where to look on for it."""
    while found := _QUOTED_OR_END.search(text, at):
        if found[0] == ">":
            return True, found.start()
        quote = text.find(found[1], found.end())
        if quote < 0:
            return False, found.start()
        at = quote + 1
    equals = text.rfind("=", max(at, len(text) - _LONGEST_EQUALS))
    return False, equals if equals >= 0 else len(text)


def _may_open(start: str) -> bool:
    wholes = (*(opening for opening, _ in _OPENINGS), "<!DOCTYPE", "</")
    return any(whole.startswith(start.upper()) for whole in wholes)


def _before_reference(text: str, at: int) -> int:
    """Where a reference begins at the end of a block that may not be whole."""
    last = text.rfind("&", max(at, len(text) - 40))
    return len(text) if last < 0 or ";" in text[last:] else last


def _decoded(blocks: Iterable[bytes]) -> Iterator[str]:
    """Decode by the byte order mark, else by the XML declaration, else as UTF-8."""
    decoder: codecs.IncrementalDecoder | None = None
    for block in blocks:
        if decoder is None:
            decoder = codecs.getincrementaldecoder(_encoding(block))(errors="replace")
        yield decoder.decode(block)
    if decoder is not None:
        yield decoder.decode(b"", final=True)


def _encoding(start: bytes) -> str:
    if start[:2] in (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE):
        return "utf-16"
    declared = _DECLARED.match(start[:200])
    name = declared[1].decode("ascii") if declared else ""
    return name if _PLAIN_ENCODINGS.fullmatch(name) else "utf-8-sig"
