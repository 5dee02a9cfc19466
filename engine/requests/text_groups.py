"""Splits a text into sentences, and groups them into pieces that are spoken in one run each.

The pieces, joined, are exactly the text. Sizes are counted in letters of an alphabet, so one limit
holds for all languages. This module knows no checkpoints and no ids.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

import sentencex

LANGUAGE_CODES = {
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
# Chinese, Japanese and Korean characters are syllables, each about three letters long.
SYLLABIC = re.compile(r"[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af\uf900-\ufaff]")
LETTERS_PER_SECOND = 15  # slow speech
FASTEST_LETTERS_PER_SECOND = 30  # faster speech is not intelligible

_SPLIT_AT_ONCE = 4_000  # characters; the splitter's time may grow with their square
_LONGEST_KEPT = 100  # characters of a `keep` match that is never cut
_CUTS = (
    re.compile(r"[.!?…。！？]['\"”’)]*\s|[。！？…]"),
    re.compile(r"[;:—–]\s|[；：—]"),
    re.compile(r",\s|[，、]"),
    re.compile(r"\s"),
)
_SENTENCE_END = _CUTS[0]
_NOTHING_KEPT = re.compile(r"(?!)")


def spoken_size(text: str) -> int:
    """The length of a text when spoken, in letters of an alphabet."""
    return len(text) + 2 * len(SYLLABIC.findall(text))


def letters(text: str) -> int:
    """As `spoken_size`, without spaces and punctuation."""
    return sum(map(str.isalnum, text)) + 2 * len(SYLLABIC.findall(text))


def speaking_seconds(text: str) -> float:
    """About how long the text takes to speak slowly."""
    return spoken_size(text.strip()) / LETTERS_PER_SECOND


def split_sentences(
    text: str, language: str = "auto", keep: re.Pattern[str] = _NOTHING_KEPT
) -> list[str]:
    """Sentences with the space after them. Matches of `keep` are never cut."""
    iso = LANGUAGE_CODES.get(language.lower(), "en")
    parts: list[str] = [
        part for piece in _bounded(text, keep) for part in sentencex.segment(iso, piece)
    ]
    return _join_kept(text, parts, keep)


def cut_text(text: str, longest: int, keep: re.Pattern[str] = _NOTHING_KEPT) -> list[str]:
    """Pieces of at most `longest` letters, cut at punctuation if possible."""
    parts: list[str] = []
    while text:
        place = piece_end(text, longest, keep)
        parts.append(text[:place])
        text = text[place:]
    return parts


def piece_end(text: str, longest: int, keep: re.Pattern[str] = _NOTHING_KEPT) -> int:
    """Where a piece of at most `longest` letters ends."""
    window = text[: longest + _LONGEST_KEPT]
    limit = _prefix(window, longest)
    return len(text) if limit == len(text) else _place_to_cut(window, limit, keep)


def text_groups(text: str, longest: int, language: str = "auto") -> list[str]:
    """Groups of whole sentences of about equal length, at most `longest` letters each."""
    if spoken_size(text) <= longest:
        return [text]
    sentences = split_sentences(text, language)
    pieces = [piece for sentence in sentences for piece in cut_text(sentence, longest)]
    return list(_join_pieces(pieces, longest))


def _join_pieces(pieces: list[str], longest: int) -> Iterator[str]:
    """Groups of pieces; one without letters joins the group before it, or after it."""
    group: list[str] = []
    spoken = size = 0  # of the group, without and with the space at its end
    voiced = False  # whether it has letters
    for piece in pieces:
        fits = spoken + spoken_size(piece) <= longest
        if voiced and letters(piece) and not fits:
            yield "".join(group)
            group, spoken, size, voiced = [], 0, 0, False
        group.append(piece)
        if kept := piece.rstrip():
            spoken = size + spoken_size(kept)
        size += spoken_size(piece)
        voiced = voiced or letters(piece) > 0
    yield "".join(group)


def group_end(text: str, least: int) -> int:
    """Where open text may be cut: after the first sentence that ends after `least` letters; 0: not
    yet.

    A sentence has ended once a letter follows the space after its final mark.
    """
    for match in _SENTENCE_END.finditer(text, _prefix(text, least) - 1):
        if letters(text[match.end() :]):
            return match.end()
    return 0


def _bounded(text: str, keep: re.Pattern[str]) -> Iterator[str]:
    """The text in pieces short enough for the splitter."""
    while len(text) > _SPLIT_AT_ONCE:
        place = _place_to_cut(text[:_SPLIT_AT_ONCE], _SPLIT_AT_ONCE, keep)
        yield text[:place]
        text = text[place:]
    yield text


def _join_kept(text: str, parts: list[str], keep: re.Pattern[str]) -> list[str]:
    """Join parts again where a boundary is inside a match of `keep`."""
    inside = {i for span in keep.finditer(text) for i in range(span.start() + 1, span.end())}
    whole: list[str] = []
    end = 0
    for part in parts:
        if whole and end in inside:
            whole[-1] += part
        else:
            whole.append(part)
        end += len(part)
    return whole


def _prefix(text: str, size: int) -> int:
    """The longest prefix of at most this spoken size; at least one character."""
    spoken = 0
    for index, char in enumerate(text):
        spoken += spoken_size(char)
        if spoken > size:
            return max(1, index)
    return len(text)


def _place_to_cut(window: str, limit: int, keep: re.Pattern[str]) -> int:
    """The last punctuation or space before `limit`, else `limit`, never inside a kept span."""
    spans = [span.span() for span in keep.finditer(window) if span.start() < limit]
    for mark in _CUTS:
        places = [match.end() for match in mark.finditer(window[:limit], limit // 3)]
        free = [place for place in places if not _inside(place, spans)]
        if free:
            return free[-1]
    for start, end in spans:
        if start < limit < end:
            return start or end
    return limit


def _inside(place: int, spans: list[tuple[int, int]]) -> bool:
    return any(start < place < end for start, end in spans)
