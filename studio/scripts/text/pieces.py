"""A typed text cut where something else comes in: a pause, a cue that tells how to go on."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass

from engine import has_words, mood_named, open_tags, without_tags
from studio.scripts.text.cues import at_cues, cues_of, unknown_moods, without_cues
from studio.scripts.text.pronunciation import Speller, read_spellings
from studio.scripts.text.tags import TAG, at_pauses


@dataclass(frozen=True)
class TextPiece:
    """What is said in one go; an empty text is a silence."""

    text: str
    cues: tuple[str, ...]
    pause: float  # seconds after it


def pieces_of(text: str, spellings: str = "", moods: Collection[str] = ()) -> list[TextPiece]:
    """The pieces in order. `spellings`: a pronunciation list, else InvalidSetting is raised.

    `moods`: names of moods, whose tags stay in the text; one that is open goes on behind a pause.
    """
    speller = Speller(read_spellings(spellings))
    return list(_pieces(speller(without_tags(text, unknown_moods(text, moods))), moods))


def _pieces(text: str, moods: Collection[str]) -> Iterator[TextPiece]:
    still = ""  # tags of moods
    for part, pause in at_pauses(text):
        *before, last = at_cues(part, moods)
        for piece, silence in (*((each, 0.0) for each in before), (last, pause or 0.0)):
            yield _piece(still + piece, silence, moods)
            still = open_tags(still + piece, moods)


def _piece(text: str, pause: float, moods: Collection[str]) -> TextPiece:
    heard = without_cues(text, moods).strip()
    bare = TAG.sub(
        lambda match: "" if mood_named(match[0].strip("[]/"), moods) else match[0], heard
    )
    spoken = has_words(bare)
    return TextPiece(heard if spoken else "", cues_of(text, moods) if spoken else (), pause)
