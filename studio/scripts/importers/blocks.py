"""Paragraphs and headings of a book, as its file format has them, turned into passages.

Headings become chapters; adjacent ones are joined (`Chapter 1. The Storm`). What lies between two
headings is read as typed text, so that dialogue is found in it. Knows no formats.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from studio.scripts.importers.dialogue import read_text
from studio.scripts.importers.passages import Passage

LONGEST_TITLE = 200  # characters; a longer heading is text


@dataclass(frozen=True)
class Block:
    """A paragraph, or a heading. `silent`: a title that stands only in the table of contents."""

    text: str
    heading: bool = False
    silent: bool = False


def passages_of(blocks: Iterable[Block]) -> Iterator[Passage]:
    """In order. The texts are not bounded here."""
    text: list[str] = []
    title: list[str] = []
    for block in blocks:
        if not block.text.strip():
            continue
        if not block.heading or len(block.text) > LONGEST_TITLE:
            yield from _heading(title)
            text.append(block.text)
            continue
        yield from read_text("\n\n".join(text))
        text.clear()
        if block.silent:
            yield from _heading(title)
            yield Passage(block.text, heading=True, silent=True)
        else:
            title.append(" ".join(block.text.split()))
    yield from _heading(title)
    yield from read_text("\n\n".join(text))


def _heading(title: list[str]) -> Iterator[Passage]:
    if title:
        ended = [each if each[-1] in ".!?…:。！？" else f"{each}." for each in title[:-1]]
        yield Passage(" ".join([*ended, title[-1]]), heading=True)
        title.clear()
