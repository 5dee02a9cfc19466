"""A typed text cut where something else comes in: a pause, a cue that tells how to go on."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from studio.scripts.text.cues import at_cues, cues_of, without_cues
from studio.scripts.text.pronunciation import Speller, read_spellings
from studio.scripts.text.tags import at_pauses


@dataclass(frozen=True)
class TextPiece:
    """What is said in one go; an empty text is a silence."""

    text: str
    cues: tuple[str, ...]
    pause: float  # seconds after it


def pieces_of(text: str, spellings: str = "") -> list[TextPiece]:
    """In order. `spellings`: a pronunciation list. Raises InvalidSetting where it is none."""
    speller = Speller(read_spellings(spellings))
    return list(_pieces(speller(text)))


def _pieces(text: str) -> Iterator[TextPiece]:
    for part, pause in at_pauses(text):
        *before, last = at_cues(part)
        for piece in before:
            yield _piece(piece, 0.0)
        yield _piece(last, pause or 0.0)


def _piece(text: str, pause: float) -> TextPiece:
    said = without_cues(text).strip()
    spoken = any(char.isalnum() for char in said)
    return TextPiece(said if spoken else "", cues_of(text) if spoken else (), pause)
