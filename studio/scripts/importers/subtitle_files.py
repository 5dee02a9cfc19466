"""Subtitles as a script: captions become lines, the time between them pauses.

A caption that breaks off in the middle of a sentence is joined with the next. Times themselves
are not kept: a voice takes the time it takes.
"""

from __future__ import annotations

import html
import re
from collections.abc import Iterator
from dataclasses import replace

import pysubs2

from engine import InvalidText, Message
from studio.scripts.importers.dialogue import turn_of
from studio.scripts.importers.passages import Passage, clean
from studio.scripts.model import MAX_LINES, MAX_PAUSE

ONE_BREATH = 0.6  # seconds of silence that may lie within a sentence
LONGEST_GAP = 10.0  # a longer silence in the film is shortened to this

_MARKS = re.compile(r"\{\\[^{}]*\}|</?(?:i|b|u|s|c|font|ruby|rt|lang)\b[^<>]*>|<[\d:.]+>", re.I)
_VOICE = re.compile(r"<v(?:\.[^\s<>]*)?\s+([^<>]{1,60})>")
_END = re.compile(r"[.!?…:;。！？]['\"”’」』）)]*$")


def read_subtitles(text: str, kind: str) -> Iterator[Passage]:
    """Captions of an .srt or .vtt file, in order of time."""
    captions = _load(text, kind)
    pending: Passage | None = None
    for index, caption in enumerate(captions):
        passage = _passage(caption.text)
        if not passage.text:
            continue
        following = captions[index + 1] if index + 1 < len(captions) else None
        gap = max(0.0, (following.start - caption.end) / 1000) if following else None
        if pending and passage.speaker in ("", pending.speaker):
            passage = replace(pending, text=f"{pending.text} {passage.text}")
        elif pending:
            yield pending
        pending = replace(passage, pause=None if gap is None else min(gap, LONGEST_GAP, MAX_PAUSE))
        if _END.search(passage.text) or gap is None or gap > ONE_BREATH:
            yield pending
            pending = None
    if pending:
        yield pending


def _load(text: str, kind: str) -> list[pysubs2.SSAEvent]:
    try:
        found = pysubs2.SSAFile.from_string(text, format_=kind, keep_unknown_html_tags=True)
    except (pysubs2.Pysubs2Error, ValueError, OverflowError) as error:
        raise InvalidText(_unreadable(kind)) from error
    captions = sorted((event for event in found if not event.is_comment), key=lambda e: e.start)
    if not captions:
        raise InvalidText(_unreadable(kind))
    if len(captions) > MAX_LINES:
        raise InvalidText(
            "The file has {count:,} captions; {most:,} is the most. Split it.",
            count=len(captions),
            most=MAX_LINES,
        )
    return captions


def _passage(text: str) -> Passage:
    text = text.replace("\\N", " ").replace("\\n", " ").replace("\\h", " ")
    voice = _VOICE.search(text)
    bare = clean(html.unescape(_MARKS.sub("", _VOICE.sub("", text).replace("</v>", ""))))
    bare = bare.removeprefix("- ").removeprefix("-")
    if voice:
        return Passage(bare, clean(html.unescape(voice[1])))
    turn = _named_turn(bare)
    return Passage(turn[1], turn[0]) if turn else Passage(bare)


def _named_turn(text: str) -> tuple[str, str] | None:
    """`ANNA: come here`: in subtitles only names in capitals are sure to be names."""
    name = text.partition(":")[0]
    turn = turn_of(text, {name.casefold()}) if name.isupper() else None
    return (turn.name, turn.text) if turn and turn.text else None


def _unreadable(kind: str) -> Message:
    return Message(
        "This file holds no captions that can be read as .{kind}. Check that it is subtitles.",
        kind=kind,
    )
