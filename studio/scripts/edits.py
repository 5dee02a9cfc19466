"""Edits of a script; each returns a new script in which all other lines are unchanged.

This module knows no audio: the lines' keys (line_requests.py) show what an edit makes stale.
"""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Iterable, Sequence

from engine import InvalidText
from studio.scripts.model import LONGEST_DIRECTION, LONGEST_NAME, MAX_LINE, Line, Script
from studio.scripts.text.passages import PLAIN, Passage, SpeechOptions, clean, split
from studio.scripts.text.tags import pause_tag


def shown(line: Line) -> str:
    """The line's text for editing, with its own pause as a tag at the end."""
    tag = "" if line.pause is None else pause_tag(line.pause)
    return f"{line.text} {tag}".strip()


def edit(script: Script, number: int, text: str, options: SpeechOptions = PLAIN) -> Script:
    """Change a line's text. Pause tags split it; the first part keeps the id."""
    place = script.place(number)
    line = _unlocked(script.lines[place])
    if clean(text) == shown(line):
        return script
    pieces = list(split(_passage(line, text), options, line))
    if not pieces:
        raise InvalidText("A line needs text or a pause. Write something, or delete the line.")
    first = next((i for i, piece in enumerate(pieces) if piece.text), 0)
    return script.replaced(place, place + 1, _numbered(script, pieces, first, line))


def say_as(script: Script, number: int, speaker: str) -> Script:
    """Change a line's speaker."""
    return _change(script, number, speaker=clean(speaker)[:LONGEST_NAME])


def direct(script: Script, number: int, direction: str) -> Script:
    """Change how a line is said."""
    return _change(script, number, direction=clean(direction)[:LONGEST_DIRECTION])


def join(script: Script, number: int) -> Script:
    """Join a line with the one after it, into one request."""
    place = script.place(number)
    first, *rest = map(_unlocked, script.lines[place : place + 2])
    if not rest:
        raise InvalidText("There is no line after this one.")
    [second] = rest
    text = f"{first.text} {second.text}".strip()
    alike = (first.speaker, first.chapter) == (second.speaker, second.chapter)
    if not alike or script.is_title(place) or len(text) > MAX_LINE:
        raise InvalidText("Only short lines of one speaker in one chapter can be joined.")
    joined = first.having(text=text, pause=second.pause)
    return script.replaced(place, place + 2, (joined,))


def redo(script: Script, number: int, seed: int | None) -> Script:
    """Speak a line with its own seed; None: with the script's."""
    return _change(script, number, seed=seed)


def lock(script: Script, number: int, key: str, voice: str = "") -> Script:
    """Lock a line to the audio with this key, which was spoken by this voice."""
    if not key:
        raise InvalidText("Speak this line first, then lock the take you like.")
    return _replace(script, number, script.line(number).having(kept=key, voice=voice))


def unlock(script: Script, number: int) -> Script:
    return _replace(script, number, script.line(number).having(kept="", voice=""))


def insert(script: Script, after: int | None, passage: Passage, options: SpeechOptions) -> Script:
    """Insert lines after a line (None: at the start), in its chapter and paragraph."""
    place = 0 if after is None else script.place(after) + 1
    beside = script.lines[max(0, place - 1)] if script.lines else Line(id=0, text="")
    empty = Line(id=0, text="", chapter=beside.chapter, paragraph=beside.paragraph)
    pieces = list(split(passage, options, empty))
    return script.replaced(place, place, _numbered(script, pieces, None, None))


def remove(script: Script, number: int) -> Script:
    place = script.place(number)
    _unlocked(script.lines[place])
    return script.replaced(place, place + 1, ())


def move(script: Script, number: int, place: int) -> Script:
    """Move a line to an index among the other lines, into the chapter of the line before it.

    A spoken title stays where its chapter begins.
    """
    start = script.place(number)
    if script.is_title(start):
        raise InvalidText("A chapter's title stays where its chapter begins.")
    line, others = script.lines[start], [*script.lines[:start], *script.lines[start + 1 :]]
    if not others:
        return script
    opening = 1 if start and script.is_title(0) else 0
    place = min(max(place, opening), len(others))
    beside = others[place - 1 if place else 0]
    alone = all(other.paragraph != line.paragraph for other in others)
    paragraph = line.paragraph if alone else beside.paragraph
    moved = line.having(chapter=beside.chapter, paragraph=paragraph)
    return script.replaced(0, len(script.lines), [*others[:place], moved, *others[place:]])


def revise(old: Script, new: Script) -> Script:
    """A newly parsed script with the ids, seeds and locks of the lines that it still has.

    Equal lines are matched in order; then lines between matched neighbours are matched with the
    old lines there, so that a line with a changed word keeps its identity.
    """
    matched = _match_changed(old.lines, _match_equal(old.lines, new.lines))
    issued = old.issued
    lines: list[Line] = []
    for line, before in zip(new.lines, matched, strict=True):
        lines.append(_heir(line, None if before is None else old.lines[before], issued))
        issued += before is None
    return new.model_copy(update={"lines": tuple(lines), "issued": issued})


def _heir(line: Line, before: Line | None, number: int) -> Line:
    if before is None:
        return line.model_copy(update={"id": number})
    update = {"id": before.id, "seed": before.seed}
    same = line.text == before.text and line.speaker == before.speaker
    held = {"kept": before.kept, "voice": before.voice} if same else {}
    return line.model_copy(update={**update, **held})


def _match_equal(old: Sequence[Line], new: Sequence[Line]) -> list[int | None]:
    """For each new line, the index of an equal old one; each is used once.

    What is equal from the start and from the end is matched first, so that of lines that say the
    same those stay which stand where nothing was changed.
    """
    before, after = [*map(_spoken, old)], [*map(_spoken, new)]
    start = _equal(before, after)
    end = _equal(before[start:][::-1], after[start:][::-1])
    places: dict[tuple[str, str], deque[int]] = defaultdict(deque)
    for place in range(start, len(old) - end):
        places[before[place]].append(place)
    middle = [
        places[line].popleft() if places[line] else None for line in after[start : len(new) - end]
    ]
    return [*range(start), *middle, *range(len(old) - end, len(old))]


def _spoken(line: Line) -> tuple[str, str]:
    return line.speaker, line.text


def _equal(one: Sequence[tuple[str, str]], two: Sequence[tuple[str, str]]) -> int:
    """How many are equal from the start."""
    pairs = enumerate(zip(one, two, strict=False))
    return next((place for place, (a, b) in pairs if a != b), min(len(one), len(two)))


def _match_changed(old: Sequence[Line], matched: list[int | None]) -> list[int | None]:
    """Fill gaps: match the line after a matched one with the next old line, if that is free."""
    taken = {place for place in matched if place is not None}
    filled = list(matched)
    for index, place in enumerate(filled):
        following = (filled[index - 1] if index else -1) if place is None else None
        if following is not None and following + 1 < len(old) and following + 1 not in taken:
            filled[index] = following + 1
            taken.add(following + 1)
    return filled


def _passage(line: Line, text: str) -> Passage:
    return Passage(text[:MAX_LINE], line.speaker, line.direction)


def _change(script: Script, number: int, **changes: object) -> Script:
    return _replace(script, number, _unlocked(script.line(number)).having(**changes))


def _replace(script: Script, number: int, line: Line) -> Script:
    place = script.place(number)
    return script.replaced(place, place + 1, (line,))


def _unlocked(line: Line) -> Line:
    if line.locked:
        raise InvalidText("Line {line} is locked. Unlock it to change it.", line=line.id)
    return line


def _numbered(
    script: Script, pieces: Iterable[Line], keeper: int | None, line: Line | None
) -> list[Line]:
    """Give new lines ids; the keeper keeps the id and seed of the edited line."""
    fresh = script.issued
    numbered: list[Line] = []
    for index, piece in enumerate(pieces):
        keeps = line is not None and index == keeper
        numbered.append(piece if keeps else piece.model_copy(update={"id": fresh}))
        fresh += not keeps
    return numbered
