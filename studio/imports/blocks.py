"""Paragraphs and headings of a book, as its file format has them, turned into passages.

Headings become chapters; adjacent ones are joined (`Chapter 1. The Storm`). What lies between two
headings is read as typed text, so that dialogue is found in it. Knows no formats.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from io import StringIO

from engine import InvalidText
from studio.scripts.text.dialogue import read_parts
from studio.scripts.text.passages import MAX_CHARACTERS, Passage
from studio.scripts.text.typed import MAX_TYPED_LINES, too_many_lines

MOST_READ = 8 * MAX_CHARACTERS  # with the space between tags
LONGEST_TITLE = 200  # characters; a longer heading is text


@dataclass(frozen=True)
class Block:
    """A paragraph, or a heading. `silent`: a title that stands only in the table of contents."""

    text: str
    heading: bool = False
    silent: bool = False


class Blocks(list[Block]):
    """Blocks that have text, and the text of the one that is being read.

    As many as a script may have lines and characters; InvalidText above, before they are all there.
    """

    def __init__(self) -> None:
        super().__init__()
        self._parts = StringIO()
        self._read = self._kept = 0  # characters

    def write(self, text: str) -> None:
        """Read on in the open block."""
        self._read += len(text)
        _check(self._read, MOST_READ)
        self._parts.write(text)

    def taken(self) -> str:
        """The text of the open block; another one is open then."""
        if not self._parts.tell():
            return ""
        text = self._parts.getvalue()
        self._parts = StringIO()
        return text

    def add(self, block: Block) -> None:
        if block.text.strip():
            self.append(block)
            self._kept += len(block.text)
            _check(self._kept, MAX_CHARACTERS)
            if len(self) > MAX_TYPED_LINES:
                raise too_many_lines(len(self))


def _check(characters: int, most: int) -> None:
    if characters > most:
        raise InvalidText(
            "The script is longer than {most:,} characters. Split it into parts.",
            most=MAX_CHARACTERS,
        )


def passages_of(blocks: Iterable[Block]) -> Iterator[Passage]:
    """In order. What is said by whom is found in the book as a whole."""
    blocks = list(blocks)
    titled = any(block.heading for block in blocks)
    return read_parts(_parts(blocks), titled=titled)


def _parts(blocks: Iterable[Block]) -> Iterator[str | Passage]:
    """Texts, and the headings between them."""
    title: list[str] = []
    for block in blocks:
        if not block.text.strip():
            continue
        if not block.heading or len(block.text) > LONGEST_TITLE:
            yield from _heading(title)
            yield block.text
        elif block.silent:
            yield from _heading(title)
            yield Passage(block.text, heading=True, silent=True)
        else:
            title.append(" ".join(block.text.split()))
    yield from _heading(title)


def _heading(title: list[str]) -> Iterator[Passage]:
    if title:
        ended = [each if each[-1] in ".!?…:。！？" else f"{each}." for each in title[:-1]]
        yield Passage(" ".join([*ended, title[-1]]), heading=True)
        title.clear()
