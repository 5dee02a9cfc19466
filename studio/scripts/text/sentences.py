"""Splitting text into breaths: sentences, with the very short joined and the very long cut.

Nothing is lost or changed: the pieces, joined, are the text. Tags in brackets stay whole.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

import sentencex
from pydantic import Field

from studio.scripts.model import Record
from studio.scripts.text.tags import TAG

ISO = {
    "auto": "en",  # the rules for English hold for most scripts
    "english": "en",
    "chinese": "zh",
    "german": "de",
    "french": "fr",
    "italian": "it",
    "portuguese": "pt",
    "spanish": "es",
    "japanese": "ja",
    "korean": "ko",
    "russian": "ru",
}
# Chinese, Japanese and Korean: a character is a syllable, about three letters long.
SYLLABIC = re.compile(r"[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af\uf900-\ufaff]")
_LONGEST_TAG = 100
_AT_ONCE = 4_000  # characters: the splitter's time may grow with their square
_CUTS = (
    re.compile(r"[.!?…。！？]['\"”’)]*\s|[。！？…]"),
    re.compile(r"[;:—–]\s|[；：—]"),
    re.compile(r",\s|[，、]"),
    re.compile(r"\s"),
)


class SpokenPiece(Record):
    """How long a line may be, in letters of an alphabet."""

    shortest: int = Field(24, ge=0, le=400)  # a sentence below it joins its neighbour
    longest: int = Field(320, ge=40, le=2000)


BREATH = SpokenPiece()


def spoken_size(text: str) -> int:
    """How long a text is to say, in letters of an alphabet."""
    return len(text) + 2 * len(SYLLABIC.findall(text))


def sentences(text: str, language: str = "auto") -> list[str]:
    """Sentences with the space after them."""
    iso = ISO.get(language.lower(), "en")
    parts: list[str] = [part for piece in _bounded(text) for part in sentencex.segment(iso, piece)]
    return _keep_tags_whole(text, parts)


def spoken_pieces(text: str, language: str = "auto", breath: SpokenPiece = BREATH) -> list[str]:
    """What is said in one go each."""
    parts = [cut for part in sentences(text, language) for cut in _cut(part, breath.longest)]
    return _join_short(parts, breath)


def _bounded(text: str) -> Iterator[str]:
    """A text in pieces that can be split in little time, cut where a reader would breathe."""
    while len(text) > _AT_ONCE:
        place = _place_to_cut(text[:_AT_ONCE], _AT_ONCE)
        yield text[:place]
        text = text[place:]
    yield text


def _keep_tags_whole(text: str, parts: list[str]) -> list[str]:
    """Join parts again where a boundary fell inside a tag."""
    inside = {i for tag in TAG.finditer(text) for i in range(tag.start() + 1, tag.end())}
    whole: list[str] = []
    end = 0
    for part in parts:
        if whole and end in inside:
            whole[-1] += part
        else:
            whole.append(part)
        end += len(part)
    return whole


def _join_short(parts: list[str], breath: SpokenPiece) -> list[str]:
    joined: list[str] = []
    for part in parts:
        if joined and _should_join(joined[-1], part, breath):
            joined[-1] += part
        else:
            joined.append(part)
    return joined


def _should_join(before: str, part: str, breath: SpokenPiece) -> bool:
    if not part.strip() or not before.strip():
        return True
    sizes = spoken_size(before.strip()), spoken_size(part.strip())
    return min(sizes) < breath.shortest and sum(sizes) <= breath.longest


def _cut(sentence: str, longest: int) -> list[str]:
    """Cut an overlong sentence where a reader would breathe."""
    parts: list[str] = []
    while sentence:
        window = sentence[: longest + _LONGEST_TAG]
        limit = _prefix(window, longest)
        place = len(sentence) if limit == len(sentence) else _place_to_cut(window, limit)
        parts.append(sentence[:place])
        sentence = sentence[place:]
    return parts


def _prefix(text: str, size: int) -> int:
    """The longest prefix of at most this spoken size; at least one character."""
    spoken = 0
    for index, char in enumerate(text):
        spoken += spoken_size(char)
        if spoken > size:
            return max(1, index)
    return len(text)


def _place_to_cut(window: str, limit: int) -> int:
    """The last good place before `limit`, else `limit` itself, but never inside a tag."""
    tags = [tag.span() for tag in TAG.finditer(window) if tag.start() < limit]
    for cut in _CUTS:
        places = [match.end() for match in cut.finditer(window[:limit], limit // 3)]
        free = [place for place in places if not _inside(place, tags)]
        if free:
            return free[-1]
    for start, end in tags:
        if start < limit < end:
            return start or end
    return limit


def _inside(place: int, spans: list[tuple[int, int]]) -> bool:
    return any(start < place < end for start, end in spans)
