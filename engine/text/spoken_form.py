"""Written English as it is spoken, for checkpoints that were taught words and no figures.

"£20" becomes "twenty pounds", "FBI" the names of its letters. The text is read in segments that end
where nothing behind can change what is said before: between two ordinary small words. So a text
that arrives in pieces is said like the whole, and every pattern sees a few hundred characters at
most. Published Qwen3-TTS models read what is written by themselves and get nothing of this.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from engine.text.abbreviations import BARE, SHORTENED, abbreviations, dotted, single_letters
from engine.text.accents import accents
from engine.text.addresses import addresses, codes, mixed_words
from engine.text.chat import SMALL, chat
from engine.text.dates import DAYS, MONTHS, dates, times
from engine.text.formulas import formulas
from engine.text.letters import capitals
from engine.text.marks import foreign_alphabets, layout, plain_marks
from engine.text.notation import notation
from engine.text.quantities import amounts, plain_numbers
from engine.text.shorthand import shorthand

__all__ = ["SpokenForm", "as_sentence", "foreign_alphabets", "spoken_form"]

_LONGEST = 400  # characters of a segment
_BEFORE = 60  # characters to its left that are looked at
_SHORTENED = (
    f"{'|'.join(SHORTENED)}|eds|ft|oz|lb|lbs|in|hr|hrs|mins|secs|mo|yr|yrs|nd|rd|th|"
    "am|pm|al|wk|wks|sq|cu|gal|pt|yd|mi|sept|tues|thurs?|tsps?|tbsps?|messrs|ext"
)
_SAFE = re.compile(
    r"(?<![^\s\"“(])(?<![0-9]\s)(?![rbc]\s|[A-G]b\s)[A-Za-z]?[a-z]{1,30}(?:['’][a-z]{1,3})?"
    r"(?:[,;:!?]?\s{1,20}(?=[a-z])(?![ivxl]{1,6}(?!\w))|(?<=[a-z]{3})\.\s{1,20}(?=[A-Za-z\"“]))"
)
_ABBREVIATED = re.compile(
    rf"(?:^|\W)(?:(?:{_SHORTENED})\.|et|m(?:r|s|rs)|dr|prof)\s*$", re.IGNORECASE
)
_SENTENCE = re.compile(r"(?<=[a-z][.?!]\s)[a-z]")
_ENDS = (".", "?", "!")
_WORD_OR_MARK = re.compile(r"[A-Za-z][A-Za-z']*|[.?!,;:]")
_WORD = re.compile(r"[a-z]+")
_ARTICLES = frozenset(
    _WORD.findall(
        "the a an this these those my your his her its our their some any every each another"
    )
)
_LINKS = frozenset(  # words that have a capital in a heading alone
    _WORD.findall(
        "of and or but to in on at by for with from as if is are was were be not so than then it "
        "he she they we you who what how why when where do does did can will"
    )
)
_CALENDAR = frozenset(name.lower() for name in (*DAYS, *MONTHS) if name not in ("March", "May"))
_SAME = str.maketrans("₀₁₂₃₄₅₆₇₈₉⁄∕ſıİ", "0123456789//siI")  # patterns take them for others
_BARE = BARE | SMALL | {"rn"}  # words without a mark that are said as others
_PLAIN = re.compile(
    r"(?![A-Za-z]'s|[b-hj-np-z](?!\w))[A-Za-z]?[a-z]{1,30}(?:'[a-z]{1,3})?[,;:!?.]? ?"
)


def spoken_form(text: str) -> str:
    """The words of a whole text."""
    form = SpokenForm()
    return (form.append(text) + form.close()).strip()


def as_sentence(group: str) -> str:
    """A run that begins in the middle of a sentence, with a capital like all that was learned."""
    return group[:1].upper() + group[1:]


class SpokenForm:
    """The words of a text that arrives in pieces; together exactly those of the whole text."""

    def __init__(self) -> None:
        self._text = ""  # with what was said already at its beginning
        self._at = 0  # up to here it was said
        self._first = True
        self._ended = False  # whether what was said last ended a sentence
        self.foreign: tuple[str, ...] = ()  # alphabets whose words are left out
        self._space = True  # whether what was said last ends with a space
        self._capitals = _Capitals()

    def append(self, text: str) -> str:
        if new := foreign_alphabets(self._text[-1:] + text):
            self.foreign = tuple(sorted({*self.foreign, *new}))
        self._text += text
        return self._said(final=False)

    def close(self) -> str:
        """The rest."""
        return self._said(final=True)

    @property
    def held(self) -> str:
        """Text whose words may still change."""
        return self._text[self._at :]

    def _said(self, final: bool) -> str:
        parts = []
        for stop in self._stops(final):
            segment = self._text[self._at : stop]
            before = self._text[max(0, self._at - _BEFORE) : self._at]
            spoken = self._capitals(_say(segment, before, self._first))
            if self._space:
                spoken = spoken.lstrip()
            if spoken:
                parts.append(as_sentence(spoken) if self._first or self._ended else spoken)
                self._space, self._first = spoken[-1].isspace(), False
                self._ended = spoken.rstrip()[-1:] in _ENDS
            self._at = stop
        kept = max(0, self._at - _BEFORE)
        self._text, self._at = self._text[kept:], self._at - kept
        return "".join(parts)

    def _stops(self, final: bool) -> Iterator[int]:
        """The ends of the segments that are certain."""
        at, end = self._at, len(self._text)
        while at < end:
            window = min(end, at + _LONGEST)
            stop = self._safe(at, window)
            if not stop and window < at + _LONGEST and not final:
                return
            if not stop:
                stop = window if window == end and final else self._forced(at, window)
            yield stop
            at = stop

    def _safe(self, at: int, window: int) -> int:
        place = at
        while match := _SAFE.search(self._text, place, window):
            if not _ABBREVIATED.search(match[0]):
                return match.end()
            place = match.end()
        return 0

    def _forced(self, at: int, window: int) -> int:
        """After the last space of a window without a safe place."""
        space = max(self._text.rfind(" ", at, window), self._text.rfind("\n", at, window))
        return space + 1 if space > at else window


class _Capitals:
    """Small letters for common words inside sentences: "the Rabbit", "How To Write".

    There the model was taught capitals of names alone, and loses its place in the text at others.
    A capital without an article before it is taken for one of a name.
    """

    def __init__(self) -> None:
        self._begins = True  # whether the next word begins a sentence
        self._titled = False  # whether a capital that follows is none of a name

    def __call__(self, spoken: str) -> str:
        return _WORD_OR_MARK.sub(lambda match: self._word(match[0]), spoken)

    def _word(self, word: str) -> str:
        if not word[0].isalpha():
            self._begins, self._titled = self._begins or word in ".?!", False
            return word
        small, first, titled = word.lower(), self._begins, self._titled
        if small in _CALENDAR and word != "august":  # "ON MONDAY", which has small letters by now
            word = word.capitalize()
        self._begins, article = False, small in _ARTICLES
        if first or not word[0].isupper():
            self._titled = article or (titled and small == "of" and not first)
            return word
        if word == "I" or word.startswith("I'") or small in _CALENDAR:
            self._titled = False
            return word
        self._titled = titled or article or small in _LINKS
        return small if self._titled else word


def _say(segment: str, before: str, first: bool) -> str:
    if _PLAIN.fullmatch(segment) and not (
        _ABBREVIATED.search(segment) or segment.strip(" ,;:!?.").lower() in _BARE
    ):
        return accents(segment)
    tail = " " if segment[-1:].isspace() else ""
    text = layout(accents(segment.translate(_SAME)), first or before.endswith("\n"))
    text = addresses(shorthand(formulas(notation(chat(text)))))
    text = abbreviations(text, before)
    text = dates(text)
    text = dotted(times(text))
    text = codes(text, before)
    text = mixed_words(amounts(text, before))
    text = capitals(text)
    text = single_letters(text, before)
    text = plain_numbers(text, before)
    text = _SENTENCE.sub(lambda match: match[0].upper(), plain_marks(text).rstrip())
    return text + tail
