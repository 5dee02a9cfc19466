"""Reads PDFs that hold text: paragraphs put together again, chapters from the outline.

A PDF knows lines at places and no paragraphs, so they are guessed: page numbers and repeated heads
are left out, words divided at a line's end are joined, and a paragraph ends at a short line that
ends a sentence.
"""

from __future__ import annotations

import logging
import re
from collections import Counter, defaultdict
from collections.abc import Iterator
from contextlib import suppress
from typing import IO, Any

from engine import InvalidText
from studio.imports.archives import DAMAGED, TOO_LARGE
from studio.imports.blocks import Block, Blocks, passages_of
from studio.scripts.text.passages import MAX_CHAPTERS, MAX_CHARACTERS, Passage

MOST_PAGES = 3_000
MOST_CONTENT = 32 << 20  # bytes of all pages' drawing, unpacked
FORGET = 50  # pages after which what was read for them is dropped
DEEPEST = 3  # levels of the outline that are chapters
_NUMBER = re.compile(r"\W{0,4}(?:(?:page|seite|第)\s?)?(?:\d{1,4}|[ivxlc]{1,7})\W{0,4}", re.I)
_SENTENCE_END = re.compile(r"[.!?…:。！？：]['\"”’」』）)]*$")
_DIVIDED = re.compile(r"(?<=[^\W\d_])[-\u00ad\u2010]$")
_REPEATED = 3  # pages with the same first or last line, from which it is a head
_SHORT = 0.8  # of a full line

Page = tuple[list[str], str]  # titles from the outline, text


def read_pdf(file: IO[bytes]) -> Iterator[Passage]:
    """Passages in order. Raises InvalidText."""
    if b"%PDF-" not in file.read(1024):
        raise InvalidText(DAMAGED)
    logging.getLogger("pypdf").disabled = True  # it warns of what is damaged
    try:
        pages = list(_pages(file))
    except (InvalidText, MemoryError):
        raise
    except Exception as error:  # whatever a library does with bytes that are no PDF
        raise InvalidText(DAMAGED) from error
    if not any(text.strip() for _, text in pages):
        raise InvalidText(
            "This PDF holds pictures of text, no text. Use a program that recognises it first."
        )
    return passages_of(_blocks(pages))


def _pages(file: IO[bytes]) -> Iterator[Page]:
    """Titles and text of each page, up to as much as a script may have, and a little more."""
    from pypdf import PdfReader

    reader = PdfReader(file)
    if reader.is_encrypted and not reader.decrypt(""):
        raise InvalidText("This PDF is locked by a password. Save it without one and upload it.")
    if len(reader.pages) > MOST_PAGES:
        raise InvalidText(
            "The PDF has more than {most:,} pages. Split it into parts.", most=MOST_PAGES
        )
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
    kept = [[line for line in own if line not in heads] for own in lines]
    lengths = sorted(len(line) for own in kept for line in own)
    usual = lengths[len(lengths) * 3 // 4] if lengths else 0  # of a full line
    paragraph = _Paragraph()
    for (titles, _), own in zip(pages, kept, strict=True):
        if titles:
            paragraph.end()
        for title in titles:
            paragraph.blocks.add(Block(title, heading=True))
        for line in _without(own, titles):
            if not line:
                paragraph.end()
                continue
            paragraph.add(line)
            if _SENTENCE_END.search(line) and len(line) < _SHORT * usual:
                paragraph.end()
    paragraph.end()
    return paragraph.blocks


class _Paragraph:
    """The open paragraph and those before it. Its last line waits for the next one."""

    def __init__(self) -> None:
        self.blocks = Blocks()
        self._last = ""

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


def _lines(text: str) -> list[str]:
    """Lines without page numbers at the page's ends; empty ones divide paragraphs."""
    lines = [" ".join(line.split()) for line in text.splitlines()]
    kept = [place for place, line in enumerate(lines) if line and not _NUMBER.fullmatch(line)]
    return lines[kept[0] : kept[-1] + 1] if kept else []


def _heads(pages: list[list[str]]) -> frozenset[str]:
    """First or last lines that stand on several pages."""
    ends = Counter(line for own in pages if own for line in {own[0], own[-1]})
    return frozenset(line for line, count in ends.items() if count >= _REPEATED)


def _without(lines: list[str], titles: list[str]) -> list[str]:
    """Lines of a page without the titles that the outline has already told."""
    told = {_letters(title) for title in titles} | {_letters("".join(titles))}
    first = 0
    said = ""
    for place, line in enumerate(lines[:6]):
        said += line
        if _letters(line) in told or _letters(said) in told:
            first, said = place + 1, ""
    return lines[first:]


def _letters(text: str) -> str:
    return "".join(char for char in text.casefold() if char.isalnum())
