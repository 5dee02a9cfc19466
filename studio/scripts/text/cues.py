"""Cues: how to say what follows, in square brackets: `[whispers]`, `[laugh]`, `[very softly]`.

A voice that follows instructions is told them, any other leaves them out; nobody speaks them.
Brackets that are no cue, like [1] or [sic], are ordinary text.
"""

from __future__ import annotations

import re
from collections.abc import Collection

from engine import mood_named, unknown_tags, without_mood_tags
from studio.scripts.text.tags import TAG, pause_of

_WORDS = 3  # of a cue, at most
# Beginnings of words that tell how something is said, and of sounds that people make.
_STEMS = (
    "whisper laugh chuckl giggl sigh shout scream yell cry cries cried sob gasp cough sniff groan "
    "moan mutter mumbl murmur breath inhal exhal yawn hum sing sang snort clear grunt stammer "
    "stutter angr happy happi sad excit calm soft quiet loud slow fast quick nervous sarcas "
    "curious surpris tired sleepy warm cold dramatic cheer tender gentl playful mischiev "
    "fright afraid scared serious ironic bitter proud desperat relie annoy bored amus emotional"
)
_CUE = re.compile(rf"(?:{'|'.join(_STEMS.split())})[a-z]*", re.IGNORECASE)
_LEADING = frozenset(("very", "more", "a", "in", "with", "slightly", "the", "throat"))
_CHINESE = re.compile(
    "[轻低小大]声|耳语|笑|大笑|轻笑|叹气|叹息|哭泣?|咳嗽|生气|愤怒|悲伤|高兴|兴奋|激动|温柔|紧张|惊讶|疲惫|喘气"
    "|慢慢地?|快速"
)


def cue_of(tag: str, moods: Collection[str] = ()) -> str:
    """What a tag says of the delivery: `whispers`; empty for any other tag. `moods`: names that
    the engine itself knows as moods, and that are no cues therefore."""
    if not tag.startswith("[") or pause_of(tag) is not None:
        return ""
    inside = tag[1:-1].strip()
    if moods and mood_named(inside, moods):
        return ""
    if _CHINESE.fullmatch(inside):
        return inside
    words = inside.split()
    if not 1 <= len(words) <= _WORDS or not all(word.isalpha() for word in words):
        return ""
    single = len(words) == 1 and re.fullmatch(r"[a-z]{3,}ly", inside, re.IGNORECASE)
    known = any(_CUE.fullmatch(word) for word in words if word.lower() not in _LEADING)
    return inside if known or single else ""


def cues_of(text: str, moods: Collection[str] = ()) -> tuple[str, ...]:
    return tuple(filter(None, (cue_of(match[0], moods) for match in TAG.finditer(text))))


def without_cues(text: str, moods: Collection[str] = ()) -> str:
    """What is spoken. An end of a cue, `[/whisper]`, is left out as well."""
    left = TAG.sub(
        lambda match: "" if cue_of(match[0].replace("[/", "[", 1), moods) else match[0], text
    )
    return re.sub(r"[ \t]{2,}", " ", left).strip() if left != text else text


def unknown_moods(text: str, moods: Collection[str] = ()) -> dict[str, str]:
    """Names of tags in pairs that are neither moods nor cues: as keys, and as written."""
    found = unknown_tags(text, moods)
    return {key: name for key, name in found.items() if not cue_of(f"[{name}]")}


def said_of(text: str, moods: Collection[str] = ()) -> str:
    """What is heard of a text: without cues and without tags of moods."""
    return without_mood_tags(without_cues(text, moods), moods).strip()


def at_cues(text: str, moods: Collection[str] = ()) -> list[str]:
    """The text cut before its cues; one with nothing after it stays with what is before it."""
    starts = [match.start() for match in TAG.finditer(text) if cue_of(match[0], moods)]
    cuts: list[int] = []  # where pieces begin
    spoken = False  # whether anything in the last piece is
    for start, end in zip([0, *starts], [*starts, len(text)], strict=True):
        speaks = _is_spoken(text[start:end])
        if (speaks and spoken) or (end > start and not cuts):
            cuts.append(start)
            spoken = False
        spoken |= speaks
    ends = [*cuts[1:], len(text)]
    return [text[start:end] for start, end in zip(cuts, ends, strict=True)] if cuts else [text]


def _is_spoken(piece: str) -> bool:
    """Tags alone are no line, whatever they mean."""
    return any(char.isalnum() for char in TAG.sub("", piece))
