"""The silence after each line in seconds; a pause tag in the text overrides it."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from studio.scripts.model import MAX_PAUSE, Line, Record

Seconds = Annotated[float, Field(ge=0, le=MAX_PAUSE)]


class Pauses(Record):
    """The silence between two lines, by the kind of boundary."""

    sentence: Seconds = 0.2
    turn: Seconds = 0.4  # another speaker follows
    paragraph: Seconds = 0.7
    chapter: Seconds = 1.6

    def after(self, line: Line, following: Line | None) -> float:
        """Seconds of silence after a line; 0 after the last."""
        if line.pause is not None:
            return line.pause
        if following is None:
            return 0.0
        if line.chapter != following.chapter:
            return self.chapter
        if line.speaker != following.speaker:
            return self.turn
        return self.sentence if line.paragraph == following.paragraph else self.paragraph
