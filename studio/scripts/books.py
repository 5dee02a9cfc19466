"""A book's title, author and language, and its parts that are read aloud only on request.

Notes, the copyright page, the table of contents, the index and page numbers are left out when a
book is imported; each remembers the line that it follows, so that it can be taken in later. Knows
no formats.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Collection, Iterator, Sequence
from typing import Final, Literal, TypeAlias, get_args

from pydantic import Field

from studio.scripts.model import MAX_ID, MAX_LINES, Line, Record, Script
from studio.scripts.text.passages import MAX_CHARACTERS, PLAIN, Passage, SpeechOptions, split

Kind: TypeAlias = Literal["notes", "copyright", "contents", "index", "pages"]
KINDS: Final[tuple[Kind, ...]] = get_args(Kind)
LONGEST = 200  # characters of a title or a name
MOST_COVER = 3 << 20  # characters of a cover in base64

LANGUAGES = {  # that checkpoints may have, by the tags of books
    "zh": "chinese", "en": "english", "ja": "japanese", "ko": "korean", "de": "german",
    "fr": "french", "ru": "russian", "pt": "portuguese", "es": "spanish", "it": "italian",
}  # fmt: skip


def language_named(tag: str) -> str:
    """The language of a tag such as "fr-CA"; empty where no checkpoint may have it."""
    return LANGUAGES.get(tag.lower()[:2], "")


class LeftOut(Record):
    """A part of a book: its paragraphs, with empty lines between them."""

    kind: Kind
    text: str = Field(min_length=1, max_length=MAX_CHARACTERS)
    after: int | None = Field(None, ge=0, le=MAX_ID)  # the id of a line; None: at the beginning


class Book(Record):
    """A book's title, author and language."""

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
    script: Script,
    parts: Sequence[LeftOut],
    places: Collection[int],
    options: SpeechOptions = PLAIN,
) -> tuple[Script, tuple[LeftOut, ...]]:
    """The script with the parts at these places read where they stand in the book, and the rest."""
    wanted = {*places}
    behind: dict[int | None, list[LeftOut]] = defaultdict(list)  # by the id of a line
    ids = sorted(line.id for line in script.lines)
    for place, part in enumerate(parts):
        if place in wanted:
            behind[_line_before(ids, part.after)].append(part)
    pieces = _Pieces(script, options)
    lines = [*pieces.of(behind[None], script.lines[0])] if script.lines else []
    for line in script.lines:
        lines.append(line)
        if line.id in behind:
            lines += pieces.of(behind[line.id], line)
    rest = tuple(part for place, part in enumerate(parts) if place not in wanted)
    return script.replaced(0, len(script.lines), lines), rest


class _Pieces:
    """New lines of a script, each part in paragraphs of its own."""

    def __init__(self, script: Script, options: SpeechOptions) -> None:
        self._options = options
        self._id = script.issued
        self._paragraph = max((line.paragraph for line in script.lines), default=0)

    def of(self, parts: Sequence[LeftOut], beside: Line) -> Iterator[Line]:
        for text in (each for part in parts for each in part.text.split("\n\n") if each.strip()):
            self._paragraph += 1
            empty = Line(id=0, text="", chapter=beside.chapter, paragraph=self._paragraph)
            for piece in split(Passage(text), self._options, empty):
                yield piece.model_copy(update={"id": self._id})
                self._id += 1


def _line_before(ids: Sequence[int], wanted: int | None) -> int | None:
    """The line that a part follows: the last of those up to it that are still there."""
    place = 0 if wanted is None else bisect_right(ids, wanted)
    return ids[place - 1] if place else None
