"""What a book says of itself, and its parts that are not read aloud unless somebody wants them.

Notes, the copyright page, the table of contents, the index and page numbers are left out when a
book is imported; each remembers the line that it follows, so that it can be taken in later. Knows
no formats.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Final, Literal, TypeAlias, get_args

from pydantic import Field

from studio.scripts.edits import inserted
from studio.scripts.model import MAX_ID, MAX_LINES, Record, Script
from studio.scripts.text.passages import MAX_CHARACTERS, PLAIN, Passage, SpeechOptions

Kind: TypeAlias = Literal["notes", "copyright", "contents", "index", "pages"]
KINDS: Final[tuple[Kind, ...]] = get_args(Kind)
LONGEST = 200  # characters of a title or a name
MOST_COVER = 3 << 20  # characters of a cover in base64


class LeftOut(Record):
    """A part of a book: its paragraphs, with empty lines between them."""

    kind: Kind
    text: str = Field(min_length=1, max_length=MAX_CHARACTERS)
    after: int | None = Field(None, ge=0, le=MAX_ID)  # the id of a line; None: at the beginning


class Book(Record):
    """What a book says of itself."""

    title: str = Field("", max_length=LONGEST)
    author: str = Field("", max_length=LONGEST)
    language: str = Field("", max_length=40)  # as a tag: en-GB


class Imported(Record):
    """A file as a script. `cover`: a JPEG in base64."""

    script: Script
    book: Book = Book()
    left_out: tuple[LeftOut, ...] = Field((), max_length=MAX_LINES)
    cover: str = Field("", max_length=MOST_COVER)


def take_in(
    script: Script, parts: Sequence[LeftOut], places: Collection[int], manner: SpeechOptions = PLAIN
) -> tuple[Script, tuple[LeftOut, ...]]:
    """The script with the parts at these places read where they stand in the book, and the rest."""
    taken = [part for place, part in enumerate(parts) if place in places]
    for part in reversed(taken):  # those of one place stay in order
        paragraphs = [Passage(each) for each in part.text.split("\n\n") if each.strip()]
        script = inserted(script, _line_before(script, part.after), paragraphs, manner)
    return script, tuple(part for place, part in enumerate(parts) if place not in places)


def _line_before(script: Script, wanted: int | None) -> int | None:
    """The line that a part follows: the last of those up to it that are still there."""
    if wanted is None:
        return None
    return max((line.id for line in script.lines if line.id <= wanted), default=None)
