"""Plain text as people paste it: paragraphs, and dialogue as `Name: what she says`.

A colon casts only where the text as a whole, a book with all its chapters, has the form of a
script: a name counts when it is known, when most of the text is written so, or when it comes back
in a text of which a good part is. Otherwise "Remember: be good" would make a speaker of Remember,
a manual one of "Files:", and a book one of "let me see: that would be four thousand miles down". A
direction in brackets may follow the name: `Anna (whispering): come here`.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass

from engine import SYLLABIC
from studio.scripts.model import LONGEST_DIRECTION, LONGEST_NAME
from studio.scripts.speaker_sex import sex_of_name
from studio.scripts.text.passages import NARRATORS, UNHEARD, Passage, composed
from studio.scripts.text.turn_forms import as_turns

SHARE = 6  # a text is a script if one line in so many is a turn of a speaker who comes back
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
# Words before a colon that are no name, unless they are repeated.
_NOTES = (
    "note notes nb n.b ps p.s tip warning remember important example question answer summary todo "
    "time date place subject from to re cc setting scene title author source copyright hinweis "
    "anmerkung achtung nota remarque language publisher license licence rights version format "
    "see also isbn keywords contents 注意 注 提示 备注 时间 地点"
)
NOTES = frozenset(_NOTES.split())
_SETTING = "scene setting time place curtain ort zeit szene scène lieu 时间 地点"
_STAGE = frozenset(_SETTING.split())
# Words that no name of several words has, `He said: …`, and such that begin none: `For example: …`.
_NAMELESS = (
    "i you he she it we they this that these those there here what when where why how which who "
    "said says asked asks answered replied cried wrote is are was were be been being has have "
    "had did does would can could shall should must might if because then than thus not let get"
)
_NO_NAME = frozenset(_NAMELESS.split())
_BEGINNINGS = "in on at by for with from to of about after before into and or but as so"
_NO_BEGINNING = frozenset(_BEGINNINGS.split())
_NUMBERED = re.compile(
    r"(?:chapter|part|section|appendix|figure|fig\.?|table|step|page|volume|vol\.?|book|act|lesson|unit"
    r"|exercise|example|rule|article|day|week|version|release|option|item|level|phase|stage|topic|task"
    r"|kapitel|teil|abschnitt|abbildung|schritt|chapitre|partie|figura|tabla|paso)\s+\w{1,6}",
    re.IGNORECASE,
)
_FEW = 3  # speakers of a short scene in which nobody needs to come back
_GAP = "\0"  # stands for what is no text, while a text is read as a whole
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


def read_text(
    text: str, speakers: Collection[str] = (), moods: Collection[str] = ()
) -> Iterator[Passage]:
    """Passages of plain text. `speakers`: known names; `moods`: names that are no speakers."""
    return read_parts([text], speakers, moods=moods)


def read_parts(
    parts: Iterable[str | Passage],
    speakers: Collection[str] = (),
    titled: bool = False,
    moods: Collection[str] = (),
) -> Iterator[Passage]:
    """Passages of texts that are one whole, and the headings and such between them as they are.

    `titled`: the whole has its headings among the parts; no line of text is one.
    """
    between: list[Passage] = []
    texts: list[str] = []
    for part in parts:
        if isinstance(part, str):
            texts.append(composed(part.replace(_GAP, " ").translate(UNHEARD)))
        else:
            texts.append(_GAP)
            between.append(part)
    paragraphs = _paragraphs(as_turns("\n\n".join(texts), speakers, moods))
    names = _names([paragraph for paragraph in paragraphs if paragraph != [_GAP]], speakers)
    others = iter(between)
    for paragraph in paragraphs:
        single = len(paragraph) == 1 and not titled
        if paragraph == [_GAP]:
            yield next(others)
        elif heading := _heading(paragraph[0], names) if single else None:
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
    """A turn of the narrator for `Note: …` and the like; None for other lines."""
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
    """Names that count, in small letters."""
    known = {name.casefold() for name in speakers if name} | NARRATORS
    written: dict[str, str] = {}
    found: Counter[str] = Counter()
    lowered: set[str] = set()  # what stands before a colon as no name does
    for paragraph in paragraphs:
        for match in filter(None, map(_TURN.match, paragraph)):
            name = match["name"].casefold()
            found[name] += 1
            written.setdefault(name, match["name"])
            if match["name"][0].islower():
                lowered.add(name)
    lines = sum(
        len(paragraph)
        for paragraph in paragraphs
        if len(paragraph) > 1 or not _heading(paragraph[0], ())
    )
    for name in [each for each in found if each not in known and not _may_be_name(each)]:
        del found[name]
    if found.total() > 1 and found.total() * 2 >= lines and _is_cast(found, written):
        return known | {name for name, count in found.items() if name not in NOTES or count > 1}
    back = {name for name, count in found.items() if count > 1 and name not in lowered}
    is_script = SHARE * sum(found[name] for name in back) >= lines
    return known | (back if is_script else set())


def _may_be_name(name: str) -> bool:
    words = name.split()
    if name in _STAGE or _NUMBERED.fullmatch(name) or words[0] in _NO_BEGINNING:
        return False
    return len(words) == 1 or _NO_NAME.isdisjoint(words)


def _is_cast(found: Counter[str], written: Mapping[str, str]) -> bool:
    """Whether these are people rather than a list of terms: somebody comes back or has a name that
    people have, or they are few."""
    if len(found) <= _FEW or max(found.values()) > 1:
        return True
    return any(sex_of_name(written[name]) or _is_marked(written[name]) for name in found)


def _is_marked(name: str) -> bool:
    """Whether letters do not tell a name from a word: in capitals, or Chinese."""
    return name.isupper() or bool(SYLLABIC.search(name))


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
