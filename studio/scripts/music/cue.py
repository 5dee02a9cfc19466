"""A cue: a sound under the whole script, a chapter, or some lines, and how loud it is there.

Lines are named by id, so a cue stays with them when others are added or moved. Knows no audio.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Final, Literal, TypeAlias

from pydantic import Field

from engine import InvalidSetting
from studio.scripts.model import MAX_ID, Record, Script
from studio.storage import SAFE_ID

MOST_CUES: Final = 32  # of a script
LONGEST_FADE: Final = 30.0  # seconds
QUIETEST, LOUDEST = -40.0, 6.0  # dB
MOST_DUCKING: Final = 40.0  # dB
LONGEST_NAME: Final = 120
Over: TypeAlias = Literal["script", "chapter", "lines"]
LineId: TypeAlias = Annotated[int, Field(ge=0, le=MAX_ID)]


class Cue(Record):
    """A sound that begins with its first line and fades out after its last one."""

    id: int = Field(ge=0, le=MAX_ID)
    sound: str = Field(pattern=rf"^{SAFE_ID.pattern}$")  # the key of its audio
    name: str = Field("", max_length=LONGEST_NAME)  # of the file that it came from
    loudness: float = Field(0.0, ge=-100, le=20)  # LUFS of its audio
    over: Over = "script"
    first: LineId | None = None  # of lines; of a chapter: any line of it
    last: LineId | None = None  # of lines
    level: float = Field(-8.0, ge=QUIETEST, le=LOUDEST)  # dB; 0 is as loud as speech
    ducking: float = Field(12.0, ge=0, le=MOST_DUCKING)  # dB that it is lower under speech
    fade_in: float = Field(1.0, ge=0, le=LONGEST_FADE)  # seconds from its beginning
    fade_out: float = Field(3.0, ge=0, le=LONGEST_FADE)  # seconds after the sound of its last line
    loop: bool = True  # goes on from its beginning when its audio is over


PLAIN: Final = Cue(id=0, sound="none")  # as a new one is
Cues: TypeAlias = Annotated[tuple[Cue, ...], Field(max_length=MOST_CUES)]


def lines_under(cue: Cue, script: Script) -> range:
    """The places of its lines in the script; empty where they are gone."""
    if cue.over == "script":
        return range(len(script.lines))
    places = {line.id: place for place, line in enumerate(script.lines)}
    first = places.get(cue.first) if cue.first is not None else None
    if first is None:
        return range(0)
    if cue.over == "lines":
        last = places.get(cue.last) if cue.last is not None else None
        return range(0) if last is None else range(min(first, last), max(first, last) + 1)
    chapter = script.lines[first].chapter
    in_chapter = [place for place, line in enumerate(script.lines) if line.chapter == chapter]
    return range(in_chapter[0], in_chapter[-1] + 1)


def chapters_of(script: Script) -> list[int]:
    """The chapters that have lines, in order."""
    return [*dict.fromkeys(line.chapter for line in script.lines)]


def check_lines(cue: Cue, script: Script) -> Cue:
    """The same cue. Raises InvalidSetting where no line is under it."""
    if not lines_under(cue, script):
        raise InvalidSetting("The music has no lines. Choose where it plays.")
    return cue


def followed(cues: Sequence[Cue], before: Script, after: Script) -> tuple[Cue, ...]:
    """The cues after a change of the script: a first or last line that is gone is replaced by the
    nearest of the cue's lines that is left, or by the line that stands where they were."""
    if before.lines == after.lines or not cues:
        return tuple(cues)
    left = {line.id for line in after.lines}
    return tuple(_followed(cue, before, left) for cue in cues)


def _followed(cue: Cue, before: Script, left: set[int]) -> Cue:
    places = lines_under(cue, before)
    if cue.over == "script" or not places:
        return cue
    lines = before.lines
    ids = [line.id for line in lines[places.start : places.stop] if line.id in left]
    if not ids:
        beside = [*lines[places.stop :], *reversed(lines[: places.start])]
        ids = [line.id for line in beside if line.id in left][:1]
    if not ids:
        return cue
    if cue.over == "chapter":
        return cue if cue.first in left else cue.having(first=ids[0])
    first = cue.first if cue.first in left else ids[0]
    last = cue.last if cue.last in left else ids[-1]
    return cue.having(first=first, last=last)
