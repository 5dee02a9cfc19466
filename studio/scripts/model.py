"""Data of a script: lines in the order in which they are spoken.

A line is one request to the engine. Lines and scripts are immutable; every edit makes a new script
with all other lines unchanged. This module knows no files, no voices and no audio.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Annotated, Any, TypeAlias

from pydantic import BaseModel, ConfigDict, Field
from typing_extensions import Self

from engine import InvalidText, Message
from studio.storage import SAFE_ID

MAX_LINES = 20_000
MAX_LINE = 4_000  # characters
MAX_PAUSE = 60.0  # seconds
MAX_SEED = 2**63 - 1
MAX_SPEAKERS = 1_000
MAX_ID = 2**31  # of lines, chapters and paragraphs; ids are counted up from 0
LONGEST_NAME = 60  # of a speaker
LONGEST_DIRECTION = 200
LONGEST_VOICE = 200  # characters of a voice's key


class Record(BaseModel):
    """The base of all stored data: frozen; an unknown key is an error."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)

    def having(self, **changes: Any) -> Self:
        """A copy with some fields changed and validated."""
        return type(self).model_validate({**dict(self), **changes})


# A key of audio, which is also a file's name; empty: none.
Key: TypeAlias = Annotated[str, Field(pattern=rf"^(?:{SAFE_ID.pattern})?$")]


class Line(Record):
    """Text of one speaker that is spoken by one request. Without text it is a silence."""

    id: int = Field(ge=0, le=MAX_ID)
    text: str = Field(max_length=MAX_LINE)
    speaker: str = Field("", max_length=LONGEST_NAME)  # "": the narrator
    direction: str = Field("", max_length=LONGEST_DIRECTION)  # how to say it: whispering
    chapter: int = Field(0, ge=0, le=MAX_ID)  # index into the script's chapters
    paragraph: int = Field(0, ge=0, le=MAX_ID)
    pause: float | None = Field(None, ge=0, le=MAX_PAUSE)  # seconds after it; None: by Pauses
    seed: int | None = Field(None, ge=0, le=MAX_SEED)  # None: the script's
    kept: Key = ""  # of a locked line: the key of its audio
    voice: str = Field("", max_length=LONGEST_VOICE)  # of a locked line: who spoke that

    @property
    def locked(self) -> bool:
        return bool(self.kept)


class Script(Record):
    """Lines, chapter titles, and the number of ids that were issued."""

    lines: tuple[Line, ...] = Field((), max_length=MAX_LINES)
    chapters: tuple[str, ...] = ("",)
    issued: int = Field(0, ge=0, le=MAX_ID + 1)  # ids are never reused

    @property
    def speakers(self) -> tuple[str, ...]:
        """The speakers in order of appearance."""
        return tuple(dict.fromkeys(line.speaker for line in self.lines if line.text))

    def line(self, number: int) -> Line:
        """The line with this id."""
        return self.lines[self.place(number)]

    def place(self, number: int) -> int:
        """The index of the line with this id."""
        for place, line in enumerate(self.lines):
            if line.id == number:
                return place
        raise InvalidText(
            "There is no line {number} in this script. Reload the page.", number=number
        )

    def is_title(self, place: int) -> bool:
        """Whether the line at this index is the spoken title of its chapter."""
        line = self.lines[place]
        first = place == 0 or self.lines[place - 1].chapter != line.chapter
        title = self.chapters[line.chapter] if line.chapter < len(self.chapters) else ""
        plain = line.text == title and not line.speaker and line.pause is None
        return first and bool(title) and plain

    def replaced(self, start: int, stop: int, lines: Iterable[Line]) -> Script:
        """The script with lines [start, stop) replaced."""
        whole = (*self.lines[:start], *lines, *self.lines[stop:])
        if len(whole) > MAX_LINES:
            raise InvalidText(too_many_lines(len(whole)))
        issued = max((line.id + 1 for line in whole), default=0)
        return self.model_copy(update={"lines": whole, "issued": max(issued, self.issued)})


def check_speakers(script: Script) -> Script:
    """The same script. Raises InvalidText where more speak in it than can be cast."""
    if len(script.speakers) > MAX_SPEAKERS:
        raise InvalidText(
            "The script has {count:,} speakers; {most:,} is the most. Is what stands before a "
            "colon a name?",
            count=len(script.speakers),
            most=MAX_SPEAKERS,
        )
    return script


def too_many_lines(count: int) -> Message:
    return Message(
        "The script has {count:,} lines; {most:,} is the most. Split it into parts.",
        count=count,
        most=MAX_LINES,
    )
