"""Which kinds of sounds a written word has, letter by letter, without a dictionary.

Kinds are coarse (a vowel, a hiss, a stop): enough to find where words begin, and nearly the same in
all languages that write sounds. For letters that are not Latin, only that they are heard is known.
"""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass
from typing import Final, Literal, TypeAlias

Kind: TypeAlias = Literal["pause", "vowel", "glide", "nasal", "hiss", "breath", "stop", "voiced"]
KINDS: Final[tuple[Kind, ...]] = (
    "pause",
    "vowel",
    "glide",
    "nasal",
    "hiss",
    "breath",
    "stop",
    "voiced",
)
HEARD: Final = len(KINDS)  # any kind but a pause

# The longest spelling that fits is taken; `?` is a sound that may be left out.
_SPELLINGS: Final = {
    **dict.fromkeys(("tch", "sch", "sh", "ch", "s", "ss", "z", "zz", "x", "j", "dg", "ç"), "hiss"),
    **dict.fromkeys(("th", "ph", "f", "ff", "v", "gh?", "h?"), "breath"),
    **dict.fromkeys(("p", "pp", "t", "tt", "k", "ck", "c", "cc", "q", "qu"), "stop"),
    **dict.fromkeys(("b", "bb", "d", "dd", "g", "gg"), "voiced"),
    **dict.fromkeys(("l", "ll", "r?", "rr", "w", "wh", "y", "wr", "rh"), "glide"),
    **dict.fromkeys(("m", "mm", "n", "nn", "kn", "gn", "mb", "ng", "ñ"), "nasal"),
}
_SOUNDS: Final = {
    spelling.rstrip("?"): (kind, spelling.endswith("?")) for spelling, kind in _SPELLINGS.items()
}
_LONGEST: Final = max(map(len, _SOUNDS))
_VOWELS: Final = "aeiou"
_SOFT: Final = re.compile(r"c(?=[eiy])")
_ENDS: Final = re.compile(r"(?<=[a-z][^aeiou\W])e(?=s?$|d$)")  # silent in "late", "lived"
_CJK: Final = re.compile(r"[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]")


@dataclass(frozen=True)
class Sound:
    """One sound: its kind (an index of KINDS, or HEARD), and whether it may be missing."""

    kind: int
    optional: bool = False


def sounds_of(word: str) -> list[Sound]:
    """The sounds of a word; none for marks alone."""
    plain = unicodedata.normalize("NFKC", word).casefold().replace("’", "'")
    plain = _ENDS.sub("", _SOFT.sub("s", "".join(filter(_is_heard, plain))))
    found: list[Sound] = []
    at = 0
    while at < len(plain):
        length, sounds = _next(plain, at)
        found += sounds
        at += length
    return found or ([Sound(HEARD)] if any(map(_is_heard, word)) else [])


def _next(word: str, at: int) -> tuple[int, list[Sound]]:
    """How many letters the next sounds have, and the sounds."""
    for length in range(_LONGEST, 0, -1):
        spelling = word[at : at + length]
        if len(spelling) == length and spelling in _SOUNDS:
            kind, optional = _SOUNDS[spelling]
            if spelling == "y" and at:
                return 1, [_of("vowel")]
            sounds = [_of(kind, optional)]
            return length, [_of("stop"), *sounds] if spelling == "x" else sounds
    letter = word[at]
    if letter.isdigit():
        return 1, [Sound(HEARD), _of("vowel"), Sound(HEARD)]
    if _CJK.match(letter):
        return 1, [Sound(HEARD, optional=True), _of("vowel"), Sound(HEARD, optional=True)]
    base = unicodedata.normalize("NFD", letter)[0]
    if base in _VOWELS:
        length = 1
        while at + length < len(word) and word[at + length] in _VOWELS:
            length += 1
        return length, [_of("vowel")]
    if base != letter and base in _SOUNDS:
        return 1, [_of(_SOUNDS[base][0])]
    return 1, [Sound(HEARD)]


def _of(kind: str, optional: bool = False) -> Sound:
    return Sound(KINDS.index(kind), optional)


def _is_heard(letter: str) -> bool:
    return letter.isalnum()
