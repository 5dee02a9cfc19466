"""Earlier takes of a line: what was spoken before it was regenerated, edited or given to another.

A take names audio by its key. Takes belong to the project, not to its undo history, so that undoing
a change loses no audio. Bounded per line and per project. Knows no audio and no engine.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Annotated, TypeAlias

from pydantic import Field

from studio.scripts.casting import Casting
from studio.scripts.model import LONGEST_VOICE, MAX_ID, MAX_SEED, Key, Line, Record, Script

MOST_TAKES = 8  # of a line
MOST_IN_PROJECT = 20_000
MOST_SHOWN = 160  # characters of the text that a take remembers


class LineTake(Record):
    """Audio that a line had, with seed, voice and the beginning of the text it was made from."""

    key: Key
    seed: int | None = Field(None, ge=0, le=MAX_SEED)
    text: str = Field("", max_length=MOST_SHOWN)
    voice: str = Field("", max_length=LONGEST_VOICE)  # empty: not known


LineId: TypeAlias = Annotated[int, Field(ge=0, le=MAX_ID)]
LineTakes: TypeAlias = Mapping[LineId, tuple[LineTake, ...]]  # by line id, in order of appearance


def take_of(line: Line, key: str, casting: Casting) -> LineTake:
    voice = casting.heard_in(line)
    return LineTake(key=key, seed=line.seed, text=line.text[:MOST_SHOWN], voice=voice)


def with_takes(takes: LineTakes, added: Iterable[tuple[int, LineTake]]) -> LineTakes:
    """All takes with more at their end; the oldest of a line, then of the project, are dropped."""
    merged = dict(takes)
    for number, take in added:
        found = merged.pop(number, ())
        if all(each.key != take.key for each in found):
            found = (*found, take)[-MOST_TAKES:]
        merged[number] = found  # moved to the end, as the line that was changed last
    total = sum(map(len, merged.values()))
    for number in [*merged]:
        if total <= MOST_IN_PROJECT:
            break
        total -= len(merged.pop(number))
    return merged


def changed_lines(before: Script, after: Script) -> list[int]:
    """Places in `before` of lines that are still there and may sound different."""
    now = {line.id: _spoken(line) for line in after.lines}
    return [
        place
        for place, line in enumerate(before.lines)
        if line.text and now.get(line.id, _spoken(line)) != _spoken(line)
    ]


def _spoken(line: Line) -> tuple[object, ...]:
    return line.text, line.speaker, line.direction, line.seed, line.kept
