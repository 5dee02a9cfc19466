"""Plain text as people paste it: paragraphs, and dialogue as `Name: what she says`.

A name counts when it is known, when most of the text is written so, or when it comes back in a text
of which a good part is: otherwise "Remember: be good" would make a speaker of Remember, and a book
one of "let me see: that would be four thousand miles down". A direction in brackets may
follow the name: `Anna (whispering): come here`.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterator
from dataclasses import dataclass

from engine import SYLLABIC
from studio.scripts.model import LONGEST_DIRECTION, LONGEST_NAME
from studio.scripts.text.passages import NARRATORS, Passage
from studio.scripts.text.turn_forms import as_turns

SHARE = 6  # a text is a script if one line in so many is a turn of somebody who comes back
WRAPPED, WIDEST = 45, 100  # columns of a line that an editor has wrapped

_DIRECTION = (
    rf"(?: \s{{0,2}} [(（] (?P<direction> [^()（）\n]{{1,{LONGEST_DIRECTION}}} ) [)）] )? \s?"
)
_TURN = re.compile(
    rf"""\s{{0,8}} (?P<name> [^\W\d_] [\w.'’\- ]{{0,38}}? )
    {_DIRECTION} [:：] (?!//|\d) (?P<text> .* )""",
    re.VERBOSE,
)
# A known name may have any form, for example 2nd guard.
_KNOWN_TURN = re.compile(
    rf"""\s{{0,8}} (?P<name> [^\s:：] [^:：\n]{{0,{LONGEST_NAME - 1}}}? )
    {_DIRECTION} [:：] (?P<text> .* )""",
    re.VERBOSE,
)
# What stands before a colon and is nobody's name, unless it comes back.
_NOTES = (
    "note notes nb n.b ps p.s tip warning remember important example question answer summary todo "
    "time date place subject from to re cc setting scene title author source copyright hinweis "
    "anmerkung achtung nota remarque 注意 注 提示 备注 时间 地点"
)
NOTES = frozenset(_NOTES.split())
_CHAPTER = re.compile(
    r"(chapter|part|prologue|epilogue|kapitel|chapitre|capítulo|capitolo|глава)\b[^.!?]{0,60}"
    r"|第\s?[\d一二三四五六七八九十百零〇]{1,6}\s?[章回部节卷].{0,40}",
    re.IGNORECASE,
)
_SENTENCE_END = re.compile(r"[.!?…:;。！？：；]['\"”’」』）)]*$")
_HEADING = re.compile(r"#\s+(?P<title>.*?)(?P<silent>\s*\[silent\])?\s*", re.IGNORECASE)
_SPEAKER_TAG = re.compile(r"\s*\[([^\[\]\n]{1,60})\](.*)", re.DOTALL)


@dataclass(frozen=True)
class Turn:
    """A line of text that starts with a speaker's name."""

    name: str
    direction: str
    text: str


def read_text(text: str, speakers: Collection[str] = ()) -> Iterator[Passage]:
    """Passages of plain text. `speakers`: known names."""
    paragraphs = _paragraphs(as_turns(text, speakers))
    names = _names(paragraphs, speakers)
    for paragraph in paragraphs:
        heading = _heading(paragraph[0], names) if len(paragraph) == 1 else None
        if heading:
            yield heading
        else:
            yield from _passages(paragraph, names)


def turn_of(line: str, names: Collection[str]) -> Turn | None:
    """The turn that a line starts, if its name counts."""
    name, colon, text = line.partition(":")
    if colon and name.strip().casefold() in names:
        return Turn(name.strip(), "", text.strip())
    for match in filter(None, (_TURN.match(line), _KNOWN_TURN.match(line))):
        if match["name"].casefold() in names:
            return Turn(match["name"], (match["direction"] or "").strip(), match["text"].strip())
    return None


def _note(line: str) -> Turn | None:
    """`Note: …` is said by nobody who spoke before."""
    match = _TURN.match(line)
    return Turn("", "", line.strip()) if match and match["name"].casefold() in NOTES else None


def _heading(line: str, names: Collection[str]) -> Passage | None:
    """A chapter heading on its own line: `# Title`, or `Chapter 2`."""
    match = _HEADING.fullmatch(line.strip())
    if match and match["title"]:
        return Passage(match["title"], heading=True, silent=bool(match["silent"]))
    if _CHAPTER.fullmatch(line.strip()) and not turn_of(line, names):
        return Passage(line, heading=True)
    return None


def _paragraphs(text: str) -> list[list[str]]:
    """Lines between empty lines."""
    paragraphs: list[list[str]] = [[]]
    for line in text.splitlines():
        if line.strip():
            paragraphs[-1].append(line)
        elif paragraphs[-1]:
            paragraphs.append([])
    return [paragraph for paragraph in paragraphs if paragraph]


def _names(paragraphs: list[list[str]], speakers: Collection[str]) -> set[str]:
    found: Counter[str] = Counter()
    lowered: set[str] = set()  # what stands before a colon as no name does
    for paragraph in paragraphs:
        for match in filter(None, map(_TURN.match, paragraph)):
            found[match["name"].casefold()] += 1
            if match["name"][0].islower():
                lowered.add(match["name"].casefold())
    lines = sum(len(own) for own in paragraphs if len(own) > 1 or not _heading(own[0], ()))
    known = {name.casefold() for name in speakers if name} | NARRATORS
    if found.total() > 1 and found.total() * 2 >= lines:  # everybody counts
        return known | {name for name, count in found.items() if name not in NOTES or count > 1}
    back = {name for name, count in found.items() if count > 1 and name not in lowered}
    is_script = SHARE * sum(found[name] for name in back) >= lines
    return known | (back if is_script else set())


def _passages(paragraph: list[str], names: set[str]) -> Iterator[Passage]:
    """A paragraph's turns; text without a name continues the turn before it."""
    speaker = Turn("", "", "")
    texts: list[str] = []
    for line in paragraph:
        turn = turn_of(line, names) or _note(line)
        if turn:
            yield from _unwrapped(texts, speaker)
            speaker, texts = turn, []
        texts.append(turn.text if turn else line.strip())
    yield from _unwrapped(texts, speaker)


def _unwrapped(lines: list[str], turn: Turn) -> Iterator[Passage]:
    """A hard-wrapped block is one passage; otherwise each line is one."""
    whole = [_joined(lines)] if _is_wrapped(lines) else lines
    for text in whole:
        yield Passage(text, turn.name, turn.direction)


def _is_wrapped(lines: list[str]) -> bool:
    """Whether all lines but the last are of full width, and one ends within a sentence."""
    full = lines[:-1]
    filled = all(WRAPPED <= _columns(line) <= WIDEST for line in full)
    return filled and any(not _SENTENCE_END.search(line) for line in full)


def _columns(line: str) -> int:
    return len(line) + len(SYLLABIC.findall(line))


def _joined(lines: list[str]) -> str:
    text = ""
    for line in lines:
        gap = "" if not text or SYLLABIC.match(text[-1]) else " "
        text += gap + line
    return text
