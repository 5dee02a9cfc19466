"""Reads subtitles as a script: captions become lines, gaps between them pauses.

A caption that ends within a sentence is joined with the next. Times are not kept, since speech has
its own length.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterator
from dataclasses import replace

import pysubs2

from engine import InvalidText, Message
from studio.imports.markup import unescaped
from studio.scripts.model import MAX_LINES, MAX_PAUSE
from studio.scripts.text.cues import cue_of
from studio.scripts.text.passages import Passage, clean

ONE_BREATH = 0.6  # longest gap within a sentence in seconds
LONGEST_GAP = 10.0  # longer gaps are shortened to this
ROLLED, ROLLED_SHARE = 3, 3  # captions, and one in so many, from which a file's captions roll
AT_ONCE = 100  # milliseconds within which the next caption of a roll begins

_MARKS = re.compile(r"\{\\[^{}]*\}|</?(?:i|b|u|s|c|font|ruby|rt|lang)\b[^<>]*>|<[\d:.]+>", re.I)
_BREAK = re.compile(r"\\[Nn]")
_WORD_TIME = re.compile(r"<[\d:.,]{5,15}>")  # two in a line are taken for a caption's times
_DASH = re.compile(r"\s*(?:<i>|\{\\[^{}]*\})?\s*[-–—]\s*")
_NEXT_VOICE = re.compile(r"(?=<v[.\s])")
_VOICE = re.compile(r"<v(?:\.[^\s<>]*)?\s+([^<>]{1,60})>")
# `Anna: come here`, `Anna (softly): come here`, `[Anna] come here`
_NAMED = re.compile(
    r"(?: \[ (?P<tag> [^\W\d_] [\w.'’\- ]{0,38} ) \] \s? :?"
    r"| (?P<name> [^\W\d_] [\w.'’\- ]{0,38}? )"
    r"  (?: \s? \( (?P<how> [^()]{1,80} ) \) )? \s? : (?!//|\d) )"
    r"\s* (?P<text> .* )",
    re.VERBOSE,
)
_END = re.compile(r"[.!?…:;。！？]['\"”’」』）)]*$")


def read_subtitles(text: str, kind: str) -> Iterator[Passage]:
    """Captions of an .srt or .vtt file, in order of time."""
    captions = _load(text, kind)
    names = _names(captions)
    pending: list[Passage] = []  # of one sentence
    for index, caption in enumerate(captions):
        passage = _passage(caption.text, names)
        if not passage.text:
            continue
        following = captions[index + 1] if index + 1 < len(captions) else None
        gap = max(0.0, (following.start - caption.end) / 1000) if following else None
        if pending and passage.speaker not in ("", pending[0].speaker):
            yield _joined(pending)
            pending = []
        pause = None if gap is None else min(gap, LONGEST_GAP, MAX_PAUSE)
        pending.append(replace(passage, pause=pause))
        if _END.search(passage.text) or gap is None or gap > ONE_BREATH:
            yield _joined(pending)
            pending = []
    if pending:
        yield _joined(pending)


def _joined(passages: list[Passage]) -> Passage:
    text = " ".join(each.text for each in passages)
    return replace(passages[0], text=text, pause=passages[-1].pause)


def _load(text: str, kind: str) -> list[pysubs2.SSAEvent]:
    try:
        found = pysubs2.SSAFile.from_string(
            _WORD_TIME.sub("", text), format_=kind, keep_unknown_html_tags=True
        )
    except (pysubs2.Pysubs2Error, ValueError, OverflowError) as error:
        raise InvalidText(_unreadable(kind)) from error
    events = sorted((event for event in found if not event.is_comment), key=lambda e: e.start)
    captions = [each for event in _unrolled(events) for each in _of_one_voice(event)]
    if not captions:
        raise InvalidText(_unreadable(kind))
    if len(captions) > MAX_LINES:
        raise InvalidText(
            "The file has {count:,} captions; {most:,} is the most. Split it.",
            count=len(captions),
            most=MAX_LINES,
        )
    return captions


def _unrolled(events: list[pysubs2.SSAEvent]) -> list[pysubs2.SSAEvent]:
    """Captions without the rows that the one before has shown: those of live and of automatic
    captions move up a row at a time."""
    rows = [_rows(event) for event in events]
    shown = [
        _repeated(rows[place - 1], rows[place])
        if place and events[place].start - events[place - 1].end <= AT_ONCE
        else 0
        for place in range(len(events))
    ]
    rolled = sum(map(bool, shown))
    if rolled < ROLLED or rolled * ROLLED_SHARE < len(events):
        return events
    fresh: list[pysubs2.SSAEvent] = []
    for event, text, count in zip(events, rows, shown, strict=True):
        if fresh and count == len(text):
            fresh[-1].end = max(fresh[-1].end, event.end)
        else:
            event.text = "\\N".join(text[count:])
            fresh.append(event)
    return fresh


def _rows(event: pysubs2.SSAEvent) -> list[str]:
    rows = (_MARKS.sub("", row).strip() for row in _BREAK.split(event.text))
    return [row for row in rows if row]


def _repeated(before: list[str], rows: list[str]) -> int:
    """How many of the first rows are the last ones of the caption before."""
    most = min(len(before), len(rows))
    return next((count for count in range(most, 0, -1) if before[-count:] == rows[:count]), 0)


def _of_one_voice(event: pysubs2.SSAEvent) -> Iterator[pysubs2.SSAEvent]:
    """A caption of several voices as one for each: with tags, or lines that begin with dashes."""
    parts = [part for part in _NEXT_VOICE.split(event.text) if part.strip()]
    lines = _BREAK.split(event.text)
    if len(parts) <= 1 and _DASH.match(lines[0]):
        parts = []
        for line in lines:
            if _DASH.match(line) or not parts:
                parts.append(_DASH.sub("", line, count=1))
            else:
                parts[-1] += f" {line}"
    for part in parts:
        copied = event.copy()
        copied.text = part
        yield copied


def _names(captions: list[pysubs2.SSAEvent]) -> set[str]:
    """The speaker: a name in capitals, or one that is repeated."""
    found: Counter[str] = Counter()
    for caption in captions:
        if match := _NAMED.match(_bare(caption.text)):
            name = match["tag"] or match["name"]
            found[name.casefold()] += 2 if name.isupper() else 1
    return {name for name, count in found.items() if count > 1 and not cue_of(f"[{name}]")}


def _bare(text: str) -> str:
    """The words alone."""
    text = text.replace("\\N", " ").replace("\\n", " ").replace("\\h", " ")
    bare = clean(unescaped(_MARKS.sub("", _VOICE.sub("", text).replace("</v>", ""))))
    return bare.removeprefix("- ").removeprefix("-")


def _passage(text: str, names: Collection[str]) -> Passage:
    voice, bare = _VOICE.search(text), _bare(text)
    if voice:
        return Passage(bare, clean(unescaped(voice[1])))
    match = _NAMED.match(bare)
    name = (match["tag"] or match["name"]) if match else ""
    if not match or name.casefold() not in names or not match["text"]:
        return Passage(bare)
    return Passage(match["text"], name, (match["how"] or "").strip())


def _unreadable(kind: str) -> Message:
    return Message(
        "This file holds no captions that can be read as .{kind}. Check that it is subtitles.",
        kind=kind,
    )
