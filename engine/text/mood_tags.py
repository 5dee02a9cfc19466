"""Moods inside a text: `[glad] … [/glad]`, `[tired 0.6]`, `(gladly)`.

A tag holds until it is closed, another one stands beside it or the text ends; a direction in round
brackets holds for the rest of its paragraph. A mood changes at the borders of clauses: a clause is
spoken in the mood that most of it has, and no tag is lost to that. Brackets that name no known mood
are ordinary text. Knows names alone, no voices and no vectors.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from itertools import accumulate, pairwise

from engine.text.sentences import letters, split_sentences

LONGEST = 60  # characters between brackets
_NUMBER = r"\d{1,3}(?:[.,]\d{0,4})?|[.,]\d{1,4}"
TAG = re.compile(
    rf"\[\s{{0,4}}(?P<close>/)?\s{{0,4}}(?P<name>[^\[\]\n/]{{1,{LONGEST}}}?)"
    rf"(?:\s{{0,4}}[:=\s]\s{{0,4}}(?P<strength>{_NUMBER}))?\s{{0,4}}\]"
    rf"|\(\s{{0,4}}(?P<direction>[^()\n\d]{{1,{LONGEST}}}?)\s{{0,4}}\)"
)
_CLAUSE = re.compile(r"[,;:—–]['\"”’)]*\s+|\s[—–]\s|[，；：、]")
_PARAGRAPH = re.compile(r"\n\s*")
_LEADING = ("very ", "more ", "quite ", "rather ", "a little ", "speaking ")


@dataclass(frozen=True)
class InMood:
    """A known mood, by its key, at a strength; None: the voice as it is."""

    mood: str = ""
    strength: float | None = None

    def __bool__(self) -> bool:
        return bool(self.mood)

    def __str__(self) -> str:
        return f"[{self.mood}]" if self.strength is None else f"[{self.mood} {self.strength:g}]"


PLAIN = InMood()


@dataclass(frozen=True)
class MoodRun:
    """A piece of a text that is spoken in one mood."""

    text: str
    spoken: InMood = PLAIN


@dataclass(frozen=True)
class Mark:
    """A tag: a mood begins, or ends."""

    start: int
    end: int
    mood: str
    strength: float | None = None
    closes: bool = False
    direction: bool = False


def mood_named(word: str, known: Collection[str]) -> str:
    """The key of a known mood that a word means: `gladly` means glad; empty: none."""
    plain = _plain(word)
    for lead in _LEADING:
        plain = plain.removeprefix(lead)
    stems = [plain]
    if plain.endswith("ly"):
        stems += [plain[:-2], plain[:-3] + "y" if plain.endswith("ily") else plain[:-1] + "e"]
    return next((stem for stem in stems if stem in known), "")


def marks(text: str, known: Collection[str]) -> Iterator[Mark]:
    """The tags of known moods, in order."""
    if "[" not in text and "(" not in text:
        return
    for match in TAG.finditer(text):
        own, direction = match["name"], match["direction"]
        mood = mood_named(own or direction, known)
        if mood:
            number = match["strength"]
            strength = float(number.replace(",", ".")) if number else None
            closes, directs = bool(match["close"]), direction is not None
            yield Mark(match.start(), match.end(), mood, strength, closes, directs)


class MoodStack:
    """Which mood holds, tag by tag."""

    def __init__(self) -> None:
        self._open: list[tuple[InMood, bool]] = []  # and whether it is a direction

    @property
    def open(self) -> list[InMood]:
        return [each for each, _ in self._open]

    @property
    def holds(self) -> InMood:
        return self._open[-1][0] if self._open else PLAIN

    def take(self, mark: Mark) -> None:
        if not mark.closes:
            self._open.append((InMood(mark.mood, mark.strength), mark.direction))
            return
        places = [i for i, (each, _) in enumerate(self._open) if each.mood == mark.mood]
        if places:
            del self._open[places[-1] :]

    def end_paragraph(self) -> None:
        """Directions end with it."""
        self._open = [each for each in self._open if not each[1]]


def open_tags(text: str, known: Collection[str], directions: bool = False) -> str:
    """The tags that still hold at the end of a text, for what follows it elsewhere; `directions`:
    in the same paragraph, so that those hold as well."""
    stack = MoodStack()
    for mark in marks(text, known):
        if directions or not mark.direction:
            stack.take(mark)
    return "".join(map(str, stack.open))


def unknown_tags(text: str, known: Collection[str]) -> dict[str, str]:
    """Names of tags in pairs, `[glad] … [/glad]`, that no known mood has: as keys, and as written.

    What is closed is no text, whatever it is called; a bracket that is never closed is.
    """
    if "[" not in text or "/" not in text:
        return {}
    closed = (match["name"].strip() for match in TAG.finditer(text) if match["close"])
    return {_plain(name): name for name in closed if not mood_named(name, known)}


def without_tags(text: str, names: Collection[str]) -> str:
    """The text without the tags of these names, by their keys."""
    pieces, at, spaced = list[str](), 0, True  # spaced: what is there ends in a space
    found = [each for each in TAG.finditer(text) if each["name"] and _plain(each["name"]) in names]
    for end, after in [*((each.start(), each.end()) for each in found), (len(text), len(text))]:
        piece = text[at:end]
        if found and spaced:
            piece = piece.lstrip(" \t")  # the tag stood between two spaces
        if piece:
            pieces.append(piece)
            spaced = piece[-1].isspace()
        at = after
    return "".join(pieces)


def _plain(name: str) -> str:
    return " ".join(name.split()).casefold()


def without_mood_tags(text: str, known: Collection[str]) -> str:
    """What is said."""
    text = without_tags(text, unknown_tags(text, known))
    if next(marks(text, known), None) is None:
        return text
    return _plain_spans(text, known)[0]


def mood_runs(text: str, known: Collection[str], language: str = "auto") -> list[MoodRun]:
    """The text without its tags, in runs of one mood each."""
    if next(marks(text, known), None) is None:
        return [MoodRun(text)]
    plain, spans = _plain_spans(text, known)
    runs: list[MoodRun] = []
    for piece, spoken in _clause_moods(plain, spans, language):
        if runs and (runs[-1].spoken == spoken or not letters(piece)):
            runs[-1] = MoodRun(runs[-1].text + piece, runs[-1].spoken)
        elif runs and not letters(runs[-1].text):
            runs[-1] = MoodRun(runs[-1].text + piece, spoken)
        else:
            runs.append(MoodRun(piece, spoken))
    return runs or [MoodRun(plain)]


def _plain_spans(text: str, known: Collection[str]) -> tuple[str, list[tuple[int, int, InMood]]]:
    """The text without tags, and spans [start, end) of it with the mood that holds there."""
    plain, at, stack = "", 0, MoodStack()
    spans: list[tuple[int, int, InMood]] = []

    def add(piece: str) -> None:
        nonlocal plain
        if plain[-1:].isspace() or not plain:
            piece = piece.lstrip(" \t")  # the tag stood between two spaces
        if piece:
            spans.append((len(plain), len(plain) + len(piece), stack.holds))
            plain += piece

    for mark in marks(text, known):
        before = text[at : mark.start]
        for line in _lines(before):
            add(line)
            if "\n" in line:
                stack.end_paragraph()
        stack.take(mark)
        at = mark.end
    for line in _lines(text[at:]):
        add(line)
        if "\n" in line:
            stack.end_paragraph()
    return plain, spans


def _lines(text: str) -> Iterator[str]:
    """The text, cut after its line ends."""
    at = 0
    for match in _PARAGRAPH.finditer(text):
        yield text[at : match.end()]
        at = match.end()
    if at < len(text):
        yield text[at:]


def clauses(text: str, language: str = "auto") -> list[str]:
    """Sentences cut at the marks inside them; joined they are the text."""
    pieces = []
    for sentence in split_sentences(text, language):
        ends = [match.end() for match in _CLAUSE.finditer(sentence)]
        cuts = [0, *(end for end in ends if end < len(sentence)), len(sentence)]
        pieces += [sentence[start:stop] for start, stop in pairwise(cuts)]
    return [piece for piece in pieces if piece]


def _clause_moods(
    text: str, spans: list[tuple[int, int, InMood]], language: str
) -> Iterator[tuple[str, InMood]]:
    pieces = clauses(text, language)
    shares: list[Counter[int]] = [Counter() for _ in pieces]  # letters by span
    for place, number, piece in _overlaps(text, pieces, spans):
        shares[place][number] += letters(piece)
    chosen = [_most(share, spans) for share in shares]
    places: dict[int, list[tuple[int, int]]] = {}
    for place, share in enumerate(shares):
        for number, count in share.items():
            places.setdefault(number, []).append((count, place))
    for number, own in places.items():
        spoken = spans[number][2]
        if spoken and max(own)[0] and not any(chosen[place] == spoken for _, place in own):
            chosen[max(own)[1]] = spoken
    yield from zip(pieces, chosen, strict=True)


def _overlaps(
    text: str, pieces: list[str], spans: list[tuple[int, int, InMood]]
) -> Iterator[tuple[int, int, str]]:
    """What clauses and spans have in common, in one pass: (clause, span, text)."""
    number = 0
    for place, end in enumerate(accumulate(map(len, pieces))):
        begin = end - len(pieces[place])
        while number < len(spans) and spans[number][0] < end:
            start, stop, _ = spans[number]
            if max(start, begin) < min(stop, end):
                yield place, number, text[max(start, begin) : min(stop, end)]
            if stop > end:
                break
            number += 1


def _most(share: Counter[int], spans: list[tuple[int, int, InMood]]) -> InMood:
    """The mood of most letters."""
    by_mood: Counter[InMood] = Counter()
    for number, count in share.items():
        by_mood[spans[number][2]] += count
    return by_mood.most_common(1)[0][0] if by_mood else PLAIN
