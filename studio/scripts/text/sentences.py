"""Splits text into lines: sentences, with very short ones joined and very long ones cut.

The joined pieces are exactly the text. Tags in brackets are never cut.
"""

from __future__ import annotations

from pydantic import Field

from engine import cut_text, split_sentences, spoken_size
from studio.scripts.model import Record
from studio.scripts.text.tags import TAG, leading_closes

LONGEST_SHORT = 400


class SpokenPiece(Record):
    """How long a line may be, in letters of an alphabet."""

    shortest: int = Field(24, ge=0, le=LONGEST_SHORT)  # a sentence below it joins its neighbour
    longest: int = Field(320, ge=40, le=2000)


BREATH = SpokenPiece()


def sentences(text: str, language: str = "auto") -> list[str]:
    """Sentences with the space after them."""
    return split_sentences(text, language, TAG)


def spoken_pieces(text: str, language: str = "auto", breath: SpokenPiece = BREATH) -> list[str]:
    """Pieces that are spoken as one line each."""
    parts = [
        piece for part in sentences(text, language) for piece in cut_text(part, breath.longest, TAG)
    ]
    return _join_short(_closed(parts, breath), breath)


def _closed(parts: list[str], breath: SpokenPiece) -> list[str]:
    """A tag that ends a mood belongs to what it closes, not to the sentence after it."""
    closed: list[str] = []
    for part in parts:
        closing = leading_closes(part) if closed else ""
        if closing and spoken_size((closed[-1] + closing).strip()) <= breath.longest:
            closed[-1] += closing
            part = part.removeprefix(closing)
        if part:
            closed.append(part)
    return closed


def _join_short(parts: list[str], breath: SpokenPiece) -> list[str]:
    joined: list[str] = []
    for part in parts:
        if joined and _should_join(joined[-1], part, breath):
            joined[-1] += part
        else:
            joined.append(part)
    return joined


def _should_join(before: str, part: str, breath: SpokenPiece) -> bool:
    if not part.strip() or not before.strip():
        return True
    sizes = spoken_size(before.strip()), spoken_size(part.strip())
    return min(sizes) < breath.shortest and spoken_size((before + part).strip()) <= breath.longest
