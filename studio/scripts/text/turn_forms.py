"""The ways people write who speaks, rewritten as `Name (direction): what she says`.

    **Anna:** come here      bold, as chat programs and Markdown write it
    [Anna] come here         a name in brackets
    ANNA                     a screenplay: the name alone, in capitals
    (softly)
    come here

What looks like one of these by chance stays as it is: a name in brackets counts when it comes back
or when most lines have one; a text is a screenplay when a name comes back or a scene is headed.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterator

from engine import without_mood_tags
from studio.scripts.text.cues import cue_of
from studio.scripts.text.tags import pause_of

_BOLD = re.compile(
    r"\s{0,8}(?P<mark>\*{1,3}|_{1,2})(?P<name>[^\W\d_][^*_:：\n]{0,80}?)\s?(?P<inside>[:：])?(?P=mark)"
    r"(?P<behind>\s?\([^()\n]{1,80}\))?(?P<outside>\s?[:：])?\s*(?P<text>.*)"
)
_TAGGED = re.compile(
    r"\s{0,8}(?P<tag>\[(?P<name>[^\W\d_][\w.'’\- ]{0,38})\])\s?[:：]?\s*(?P<text>\S.*)"
)
_CUE = re.compile(
    r"\s*(?P<name>[^\W\d_][\w.'’\- ]{1,38}?)\s*"
    r"(?:\((?:V\. ?O\.|VO|O\. ?S\.|OS|O\. ?C\.|OC|CONT['’]?D|CONT\.|MORE)\)\s*){0,3}"
)
_SCENE = re.compile(r"\s*(?:INT|EXT|INT\./EXT|I/E|EST)[. ].*")
_NO_NAME = re.compile(
    r"\s*(?:CUT|FADE|DISSOLVE|SMASH|MATCH|THE END|END|TITLE"
    r"|CHAPTER|PART|ACT|SCENE|PROLOGUE|EPILOGUE)\b.*"
)
_ASIDE = re.compile(r"\s*\(([^()\n]{1,80})\)\s*")


def as_turns(text: str, speakers: Collection[str] = (), moods: Collection[str] = ()) -> str:
    """The text with every such form as `Name: …`; `moods` in brackets are no names."""
    lines = [_without_bold(line) for line in text.splitlines()]
    lines = list(_without_brackets(lines, {name.casefold() for name in speakers}, moods))
    return "\n".join(_without_screenplay(lines))


def _without_bold(line: str) -> str:
    match = _BOLD.fullmatch(line)
    if not match or not (match["inside"] or match["outside"]):
        return line
    return f"{match['name'].strip()}{match['behind'] or ''}: {match['text']}"


def _without_brackets(
    lines: list[str], known: Collection[str], moods: Collection[str]
) -> Iterator[str]:
    found = [_tagged(line, moods) for line in lines]
    names = Counter(match["name"].casefold() for match in found if match)
    most = names.total() > 1 and names.total() * 2 >= sum(bool(line.strip()) for line in lines)
    for line, match in zip(lines, found, strict=True):
        name = match["name"].casefold() if match else ""
        counts = match and (most or names[name] > 1 or name in known)
        yield f"{match['name'].strip()}: {match['text']}" if match and counts else line


def _tagged(line: str, moods: Collection[str]) -> re.Match[str] | None:
    match = _TAGGED.fullmatch(line)
    is_tag = match and (
        pause_of(match["tag"]) is not None
        or cue_of(match["tag"])
        or not without_mood_tags(match["tag"], moods)
    )
    return None if is_tag else match


def _without_screenplay(lines: list[str]) -> Iterator[str]:
    cues = {place: name for place, name in enumerate(map(_cue, lines)) if name}
    cues = {place: name for place, name in cues.items() if _heads_a_block(lines, place)}
    scenes = any(_SCENE.fullmatch(line) for line in lines)
    if not cues or not (scenes or max(Counter(cues.values()).values()) > 1):
        yield from lines
        return
    place = 0
    while place < len(lines):
        if place not in cues:
            yield lines[place]
            place += 1
            continue
        end = place + 1
        while end < len(lines) and lines[end].strip():
            end += 1
        yield from _turns(cues[place], lines[place + 1 : end])
        place = end


def _cue(line: str) -> str:
    """The name that a line of a screenplay gives the next lines to; empty for any other line."""
    match = _CUE.fullmatch(line)
    name = match["name"] if match else ""
    is_name = name.isupper() and not _SCENE.fullmatch(line) and not _NO_NAME.fullmatch(line)
    return name.title() if is_name else ""


def _heads_a_block(lines: list[str], place: int) -> bool:
    alone = place == 0 or not lines[place - 1].strip()
    below = lines[place + 1].strip() if place + 1 < len(lines) else ""
    return alone and bool(below) and not below.isupper()


def _turns(name: str, lines: list[str]) -> Iterator[str]:
    """One speaker's text, with a turn for each direction."""
    direction, spoken = "", list[str]()
    for line in lines:
        aside = _ASIDE.fullmatch(line)
        if aside and spoken:
            yield _turn(name, direction, spoken)
            spoken = []
        if aside:
            direction = aside[1].strip()
        else:
            spoken.append(line.strip())
    if spoken:
        yield _turn(name, direction, spoken)


def _turn(name: str, direction: str, lines: list[str]) -> str:
    text = " ".join(lines)
    return f"{name} ({direction}): {text}" if direction else f"{name}: {text}"
