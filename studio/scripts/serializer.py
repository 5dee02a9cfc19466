"""Writes a script as text, in the form in which it can be typed and parsed again.

    # The Door                 a chapter; `# The Door [silent]` when its title is not spoken
    Anna (softly): Come in.    a turn
    And she came. [pause 1s]   everything else is the narrator's

Parsing it gives the same lines, except that short lines may be joined.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import groupby

from studio.scripts.edits import shown
from studio.scripts.model import Line, Script


def text_of(script: Script) -> str:
    """The whole script as text; empty without lines."""
    blocks: list[tuple[str, bool]] = []  # text, and whether it has a named speaker
    start = 0
    for number, chapter_lines in groupby(script.lines, key=lambda line: line.chapter):
        lines = list(chapter_lines)
        title = script.chapters[number] if number < len(script.chapters) else ""
        spoken = False
        if title:
            spoken = script.is_title(start)
            blocks.append((f"# {title}" if spoken else f"# {title} [silent]", False))
            lines = lines[1:] if spoken else lines
        start += len(lines) + spoken
        blocks += _paragraphs(lines)
    return _joined(blocks)


def _paragraphs(lines: list[Line]) -> Iterator[tuple[str, bool]]:
    by_turn = groupby(lines, key=lambda line: (line.paragraph, line.speaker, line.direction))
    for (_, speaker, direction), turn in by_turn:
        text = " ".join(map(shown, turn))
        yield (f"{speaker}{_bracketed(direction)}: {text}" if speaker else text), bool(speaker)


def _bracketed(direction: str) -> str:
    plain = "".join(char for char in direction if char not in "()（）").strip()
    return f" ({plain})" if plain else ""


def _joined(blocks: list[tuple[str, bool]]) -> str:
    """Turns are on adjacent lines, everything else is between empty lines."""
    text, before = "", False
    for block, named in blocks:
        gap = "" if not text else "\n" if before and named else "\n\n"
        text, before = f"{text}{gap}{block}", named
    return text
