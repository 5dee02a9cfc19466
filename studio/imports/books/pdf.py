"""Reads PDFs that hold text: paragraphs put together again, chapters from the outline.

A PDF knows lines at places and no paragraphs, so they are guessed: page numbers and repeated heads
are left out, words divided at a line's end are joined, and a paragraph ends at a short line that
ends a sentence.
"""

from __future__ import annotations

import logging
import re
from collections import Counter, defaultdict
from collections.abc import Collection, Iterator, Sequence
from contextlib import suppress
from typing import IO, Any

from engine import InvalidText
from studio.imports.archives import DAMAGED, TOO_LARGE
from studio.imports.books.blocks import (
    Block,
    Blocks,
    kind_of_title,
    letters_of,
    without_titled_parts,
)
from studio.scripts.books import Book
from studio.scripts.text.passages import MAX_CHAPTERS, MAX_CHARACTERS
from studio.scripts.titles import plain

MOST_PAGES = 3_000
MOST_CONTENT = 32 << 20  # bytes of all pages' drawing, unpacked
FORGET = 50  # pages after which what was read for them is dropped
MOST_PLACED, MOST_LOOKED_AT = 60, 300  # titles of a page, and lines in which they are looked for
DEEPEST = 3  # levels of the outline that are chapters
_NUMBER = re.compile(r"\W{0,4}(?:(?:page|seite|第)\s?)?(?:\d{1,4}|[ivxlc]{1,7})\W{0,4}", re.I)
_SENTENCE_END = re.compile(r"[.!?…:。！？：]['\"”’」』）)]*$")
_DIVIDED = re.compile(r"(?<=[^\W\d_])[-\u00ad\u2010]$")
_LEADER = re.compile(r"(?:\.\s?){4,8}\s*\w{1,6}$|(?:…\s?){2,8}\s*\w{1,6}$")  # 1.1 Scope .... 4
_LISTED = re.compile(r"\s\d{1,4}$")
_NUMBERING = re.compile(  # the letters before a title: Chapter 12
    r"(?:chapter|part|section|appendix|kapitel|teil)[^\W_]{1,10}|\d{1,10}|[ivxlc]{1,7}|[a-z]\d{0,9}"
)
_FILE_NAME = re.compile(r"(?i:microsoft word - .*)|\S+\.[a-z]{2,5}|untitled")
_SEVERAL = 3  # lines with leaders, from which a page is a table of contents
_REPEATED = 3  # pages with the same first or last line, from which it is a head
_NUMBERED = re.compile(
    r"(?P<first>\d{1,4})\b\W{0,9}(?P<rest>.*\S)|(?P<title>.*\S)\W{1,9}(?P<last>\d{1,4})"
)
_SHORT = 0.8  # of a full line

LONGEST_HEAD = 120  # characters of a head with a page number
_Head = tuple[str, int]  # a title, and the number of the first page

Page = tuple[list[str], str]  # titles from the outline, text


def read_pdf(file: IO[bytes]) -> tuple[Blocks, Book]:
    """Raises InvalidText."""
    if b"%PDF-" not in file.read(1024):
        raise InvalidText(DAMAGED)
    logging.getLogger("pypdf").disabled = True  # it warns of what is damaged
    try:
        reader = _opened(file)
        pages = list(_pages(reader))
        book = _book(reader)
    except (InvalidText, MemoryError):
        raise
    except Exception as error:  # the library may raise anything for bytes that are no PDF
        raise InvalidText(DAMAGED) from error
    if not any(text.strip() for _, text in pages):
        raise InvalidText(
            "This PDF holds pictures of text, no text. Use a program that recognises it first."
        )
    blocks = _blocks(pages)
    blocks[:] = without_titled_parts(blocks)
    return blocks, book


def _opened(file: IO[bytes]) -> Any:
    from pypdf import PdfReader

    reader = PdfReader(file)
    if reader.is_encrypted and not reader.decrypt(""):
        raise InvalidText("This PDF is locked by a password. Save it without one and upload it.")
    if len(reader.pages) > MOST_PAGES:
        raise InvalidText(
            "The PDF has more than {most:,} pages. Split it into parts.", most=MOST_PAGES
        )
    return reader


def _book(reader: Any) -> Book:
    """What the document information says; a name of a file is no title."""
    found = {"title": "", "author": "", "language": ""}
    with suppress(Exception):
        metadata = reader.metadata or {}
        found["title"] = plain(str(metadata.get("/Title") or ""))
        found["author"] = plain(str(metadata.get("/Author") or ""))
    with suppress(Exception):
        found["language"] = plain(str(reader.trailer["/Root"].get("/Lang") or ""))[:40]
    if _FILE_NAME.fullmatch(found["title"]):
        found["title"] = ""
    return Book(**found)


def _pages(reader: Any) -> Iterator[Page]:
    """Titles and text of each page, up to as much as a script may have, and a little more."""
    titles = _titles(reader)
    characters, content = 2 * MAX_CHARACTERS, MOST_CONTENT
    for number, page in enumerate(reader.pages):
        drawn = page.get_contents()
        content -= len(drawn.get_data()) if drawn is not None else 0
        if content < 0:
            raise InvalidText(TOO_LARGE)
        text = page.extract_text()
        characters -= len(text)
        yield titles[number], text[: max(0, characters)]
        if characters < 0:
            return
        if number % FORGET == FORGET - 1:
            reader.resolved_objects.clear()  # fonts and pictures of pages that were read


def _titles(reader: Any) -> dict[int, list[str]]:
    """Titles by page; none where the outline is damaged."""
    found: dict[int, list[str]] = defaultdict(list)
    left = MAX_CHAPTERS

    def walk(entries: list[Any], depth: int) -> None:
        nonlocal left
        for entry in entries:
            if isinstance(entry, list):
                if depth < DEEPEST:
                    walk(entry, depth + 1)
            elif left and (number := reader.get_destination_page_number(entry)) is not None:
                found[number].append(str(entry.title)[:200])
                left -= 1

    with suppress(Exception):
        walk(reader.outline, 1)
    return found


def _blocks(pages: list[Page]) -> Blocks:
    lines = [_lines(text) for _, text in pages]
    heads = _heads(lines)
    kept = [[line for line in page if line not in heads] for page in _without_numbered_heads(lines)]
    lengths = sorted(len(line) for page in kept for line in page)
    usual = lengths[len(lengths) * 3 // 4] if lengths else 0  # of a full line
    paragraph = _Paragraph()
    for (titles, text), page_lines in zip(pages, kept, strict=True):
        begins, matched = _placed(titles, page_lines)
        in_titles = {
            start + each
            for start, title_lines in matched.items()
            for each in range(len(title_lines))
        }
        listed = _is_contents(page_lines)
        for place, line in enumerate(page_lines):
            for title in begins.get(place, ()):
                paragraph.title(title, matched.get(place, ()))
            if place in in_titles:
                continue
            if _LEADER.search(line) or (listed and _is_listed(line)):
                paragraph.leave_out(line, "contents")
                continue
            if not line:
                paragraph.end()
                continue
            paragraph.add(line)
            if _SENTENCE_END.search(line) and len(line) < _SHORT * usual:
                paragraph.end()
        for title in begins.get(len(page_lines), ()):
            paragraph.title(title, ())
        for number in _page_numbers(text):
            paragraph.number(number)
    paragraph.end()
    return paragraph.blocks


def _is_contents(lines: Sequence[str]) -> bool:
    """Whether it is a page of the table of contents."""
    called = any(kind_of_title(line) == "contents" for line in lines[:3])
    return called or sum(bool(_LEADER.search(line)) for line in lines) >= _SEVERAL


def _is_listed(line: str) -> bool:
    return bool(_LISTED.search(line)) or kind_of_title(line) == "contents"


def _placed(
    titles: list[str], lines: list[str]
) -> tuple[dict[int, list[str]], dict[int, list[str]]]:
    """Titles by the line that they begin at, and there the lines that say the same."""
    begins: dict[int, list[str]] = defaultdict(list)
    matched: dict[int, list[str]] = {}
    at = 0
    for number, title in enumerate(titles):
        found = _found(lines, at, title) if number < MOST_PLACED else None
        if found is None:
            begins[at].append(title)
            continue
        place, count = found
        begins[place].append(title)
        matched[place] = lines[place : place + count]
        at = place + count
    return begins, matched


def _found(lines: list[str], at: int, title: str) -> tuple[int, int] | None:
    """The line from `at` on that begins a title, and how many lines it has."""
    for place in range(at, min(len(lines), MOST_LOOKED_AT)):
        for count in (1, 2, 3):
            if _says(lines[place : place + count], title):
                return place, count
    return None


def _says(lines: list[str], title: str) -> bool:
    """Whether the lines are the title, maybe behind its number."""
    shown, wanted = letters_of("".join(lines)), letters_of(title)
    if not wanted or not shown.endswith(wanted):
        return False
    return shown == wanted or bool(_NUMBERING.fullmatch(shown.removesuffix(wanted)))


class _Paragraph:
    """The open paragraph and those before it. Its last line waits for the next one."""

    def __init__(self) -> None:
        self.blocks = Blocks()
        self._last = ""
        self._item = 0
        self._numbers: list[str] = []  # of pages that end within the paragraph

    def title(self, entry: str, lines: Collection[str]) -> None:
        self.end()
        self.blocks.add(Block(entry, entry=True))
        if lines:
            self.blocks.add(Block(" ".join(lines), level=1))

    def leave_out(self, line: str, kind: str) -> None:
        self.end()
        before = self.blocks[-1] if self.blocks else None
        self._item += not (before and before.kind == kind)
        self.blocks.add(Block(line, kind=kind, item=self._item))

    def number(self, number: str) -> None:
        self._numbers.append(number)

    def add(self, line: str) -> None:
        """Words divided at a line's end are joined."""
        divided = _DIVIDED.search(self._last) and line[:1].islower()
        if self._last:
            self.blocks.write(self._last[:-1] if divided else f"{self._last} ")
        self._last = line

    def end(self) -> None:
        self.blocks.write(self._last)
        self._last = ""
        self.blocks.add(Block(self.blocks.taken()))
        for number in self._numbers:
            self._item += 1
            self.blocks.add(Block(number, kind="pages", item=self._item))
        self._numbers.clear()


def _lines(text: str) -> list[str]:
    """Lines without page numbers at the page's ends; empty ones divide paragraphs."""
    lines = [" ".join(line.split()) for line in text.splitlines()]
    kept = [place for place, line in enumerate(lines) if line and not _NUMBER.fullmatch(line)]
    return lines[kept[0] : kept[-1] + 1] if kept else []


def _heads(pages: list[list[str]]) -> frozenset[str]:
    """First or last lines that stand on several pages."""
    ends = Counter(line for page in pages if page for line in {page[0], page[-1]})
    return frozenset(line for line, count in ends.items() if count >= _REPEATED)


def _without_numbered_heads(pages: list[list[str]]) -> list[list[str]]:
    """Pages without first and last lines that repeat but for a number that counts the pages.

    A single word before a number is no such head: "Chapter 3" may be counted by the page as well.
    """
    ends = [[_numbered(line, place) for line in page[:1] + page[-1:]]
            for place, page in enumerate(pages)]  # fmt: skip
    found: Counter[_Head | None] = Counter(head for of_page in ends for head in {*of_page} if head)
    kept: list[list[str]] = []
    for page, heads in zip(pages, ends, strict=True):
        first, last = (found[head] >= _REPEATED for head in heads) if page else (False, False)
        kept.append(page[first : len(page) - last])
    return kept


def _numbered(line: str, place: int) -> _Head | None:
    """The head that a line may be."""
    match = _NUMBERED.fullmatch(line) if len(line) <= LONGEST_HEAD else None
    if match is None or (match["title"] and " " not in match["title"]):
        return None
    return match["rest"] or match["title"], int(match["first"] or match["last"]) - place


def _page_numbers(text: str) -> list[str]:
    """Page numbers at the beginning and the end of a page."""
    lines = [joined for joined in (" ".join(line.split()) for line in text.splitlines()) if joined]
    return [line for line in dict.fromkeys((*lines[:1], *lines[-1:])) if _NUMBER.fullmatch(line)]
