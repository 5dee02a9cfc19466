"""Typed text as a script, with its bounds."""

from __future__ import annotations

from collections.abc import Collection

from engine import InvalidText
from studio.scripts.model import Script
from studio.scripts.text.dialogue import read_text
from studio.scripts.text.passages import MAX_CHARACTERS, PLAIN, SpeechOptions, build

MAX_TYPED_LINES = 50_000  # including empty ones


def script_of_text(
    text: str,
    options: SpeechOptions = PLAIN,
    speakers: Collection[str] = (),
    moods: Collection[str] = (),
) -> Script:
    """A script from plain text; dialogue is written `Name: text`."""
    return build(read_text(bounded(text), speakers, moods), options)


def bounded(text: str) -> str:
    """The text with line feeds alone. Raises InvalidText where it is too long."""
    if len(text) > MAX_CHARACTERS:
        raise InvalidText(
            "The script has {count:,} characters; {most:,} is the most. Split it into parts.",
            count=len(text),
            most=MAX_CHARACTERS,
        )
    text = text.replace("\r\n", "\n").replace("\r", "\n")
    lines = text.count("\n") + 1
    if lines > MAX_TYPED_LINES:
        raise too_many_lines(lines)
    return text


def too_many_lines(lines: int) -> InvalidText:
    return InvalidText(
        "The script has {count:,} lines of text; {most:,} is the most. Split it into parts.",
        count=lines,
        most=MAX_TYPED_LINES,
    )
