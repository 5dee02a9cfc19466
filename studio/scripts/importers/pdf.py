"""Reads PDFs that hold text: paragraphs put together again, chapters from the outline.

A PDF knows lines at places and no paragraphs, so they are guessed: page numbers and repeated heads
are left out, words divided at a line's end are joined, and a paragraph ends at a short line that
ends a sentence. A process of its own opens the file (pdf_worker.py), bounded in time and memory.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
import threading
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from engine import InvalidText
from studio.scripts.importers.archives import DAMAGED
from studio.scripts.importers.blocks import Block, passages_of
from studio.scripts.importers.passages import MAX_CHARACTERS, Passage

MOST_PAGES = 3_000
SECONDS, MEGABYTES = 60, 1024  # that one file may take
_AT_ONCE = threading.BoundedSemaphore(2)
_WORKER = Path(__file__).with_name("pdf_worker.py")
_NUMBER = re.compile(r"\W{0,4}(?:(?:page|seite|第)\s?)?(?:\d{1,4}|[ivxlc]{1,7})\W{0,4}", re.I)
_SENTENCE_END = re.compile(r"[.!?…:。！？：]['\"”’」』）)]*$")
_DIVIDED = re.compile(r"(?<=[^\W\d_])[-\u00ad\u2010]$")
_REPEATED = 3  # pages with the same first or last line, from which it is a head
_SHORT = 0.8  # of a full line

REASONS = {
    "encrypted": "This PDF is locked by a password. Save it without one and upload it.",
    "pages": "The PDF has more than {most:,} pages. Split it into parts.",
}


def read_pdf(data: bytes) -> Iterator[Passage]:
    """Passages in order. Raises InvalidText."""
    if b"%PDF-" not in data[:1024]:
        raise InvalidText(DAMAGED)
    pages = _pages(data)
    if not any(text.strip() for _, text in pages):
        raise InvalidText(
            "This PDF holds pictures of text, no text. Use a program that recognises it first."
        )
    return passages_of(_blocks(pages))


def _pages(data: bytes) -> list[tuple[list[str], str]]:
    limits = (MEGABYTES, SECONDS, MOST_PAGES, 2 * MAX_CHARACTERS)
    command = [sys.executable, "-I", str(_WORKER)]
    sent = json.dumps(limits).encode() + b"\n" + data
    try:
        with _AT_ONCE:
            done = subprocess.run(
                command, input=sent, capture_output=True, timeout=SECONDS, check=True
            )
        told = [json.loads(line) for line in done.stdout.splitlines()]
    except subprocess.TimeoutExpired:
        raise InvalidText("The PDF takes too long to read. Split it into parts.") from None
    except (subprocess.CalledProcessError, OSError, ValueError) as error:
        raise InvalidText(DAMAGED) from error
    failure = next((each for each in told if isinstance(each, str)), "")
    if failure:
        raise InvalidText(REASONS.get(failure, DAMAGED), most=MOST_PAGES)
    return [(titles, text) for titles, text in told]


def _blocks(pages: list[tuple[list[str], str]]) -> Iterator[Block]:
    lines = [_lines(text) for _, text in pages]
    heads = _heads(lines)
    kept = [[line for line in own if line not in heads] for own in lines]
    lengths = sorted(len(line) for own in kept for line in own)
    usual = lengths[len(lengths) * 3 // 4] if lengths else 0  # of a full line
    paragraph = ""
    for (titles, _), own in zip(pages, kept, strict=True):
        if titles and paragraph:
            yield Block(paragraph)
            paragraph = ""
        yield from (Block(title, heading=True) for title in titles)
        for line in _without(own, titles):
            if not line:
                yield Block(paragraph)
                paragraph = ""
                continue
            paragraph = _joined(paragraph, line)
            if _SENTENCE_END.search(line) and len(line) < _SHORT * usual:
                yield Block(paragraph)
                paragraph = ""
    yield Block(paragraph)


def _lines(text: str) -> list[str]:
    """Lines without page numbers at the page's ends; empty ones divide paragraphs."""
    lines = [" ".join(line.split()) for line in text.splitlines()]
    for end in (0, -1):
        while lines and (not lines[end] or _NUMBER.fullmatch(lines[end])):
            lines.pop(end)
    return lines


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


def _joined(paragraph: str, line: str) -> str:
    if not paragraph:
        return line
    if _DIVIDED.search(paragraph) and line[:1].islower():
        return paragraph[:-1] + line
    return f"{paragraph} {line}"
