"""Words of a text and of a transcript in one form, and what differs between them.

A recogniser writes "£20" or "twenty pounds" as it likes, so both sides become the same words: every
digit is a word, and so is every letter that is said by its name. Knows no models.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial

JOINED = 6  # words that the other side may write as one: "rabbit hole", "F B I"

_ONES = (
    "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen "
    "sixteen seventeen eighteen nineteen"
)
_TENS = "twenty thirty forty fifty sixty seventy eighty ninety"
_ORDINALS = (
    "first second third fourth fifth sixth seventh eighth ninth tenth eleventh twelfth thirteenth "
    "fourteenth fifteenth sixteenth seventeenth eighteenth nineteenth"
)
_VALUES = {word: value for value, word in enumerate(_ONES.split())}
_VALUES |= {word: 10 * value for value, word in enumerate(_TENS.split(), 2)}
_NTH = {word: value for value, word in enumerate(_ORDINALS.split(), 1)}
_NTH |= {f"{word[:-1]}ieth": 10 * value for value, word in enumerate(_TENS.split(), 2)}
_NTH |= {"hundredth": 100, "thousandth": 1000}
_DECADES = {f"{word[:-1]}ies": 10 * value for value, word in enumerate(_TENS.split(), 2)}
_SCALES = {"thousand": 10**3, "million": 10**6, "billion": 10**9, "trillion": 10**12}
_CURRENCY = {"$": "dollars", "£": "pounds", "€": "euros", "¥": "yen"}
_ALIKE = {
    "km": "kilometers", "kg": "kilograms", "mg": "milligrams", "ml": "milliliters", "oz": "ounces",
    "ghz": "gigahertz", "gb": "gigabytes", "mph": "miles per hour", "ft": "foot", "feet": "foot",
    "m": "m", "mr": "mister", "mrs": "missus", "dr": "doctor", "st": "saint", "vs": "versus",
    "mt": "mount", "prof": "professor", "gen": "general", "capt": "captain", "jr": "junior",
    "inc": "incorporated", "ltd": "limited", "sen": "senator", "rep": "representative",
    "etc": "et cetera", "ok": "okay", "grey": "gray", "metres": "meters", "litre": "liter",
    "kilometres": "kilometers", "kilometre": "kilometer", "learnt": "learned", "min": "minutes",
    "w": "w", "missis": "missus", "o'clock": "oclock", "wifi": "wi fi", "program": "programme",
    "percentage": "percent", "ave": "avenue", "fig": "figure", "vol": "volume",
    "labelled": "labeled",
    "pence": "pence", "dollar": "dollars", "pound": "pounds", "euro": "euros",
    "centre": "center", "mueller": "muller", "disc": "disk", "ph": "p h",
}  # fmt: skip
_FRACTIONS = {"1/2": "half", "1/4": "1 quarter", "3/4": "3 quarters", "2/3": "2 thirds"}
_MONTHS = "january|february|march|april|may|june|july|august|september|october|november|december"
_CLOCK = re.compile(r"(?<![\d.$£€])(\d{1,2})\.(?=[0-5]\d\b)")
_RULES = (
    (re.compile(rf"\b({_MONTHS}) (\d{{1,2}})(?:st|nd|rd|th)?\b"), lambda m: f"{m[1]} {m[2]} nth "),
    (
        re.compile(rf"\b(\d{{1,2}})(?:st|nd|rd|th)? ({_MONTHS})\b"),
        lambda m: f"the {m[1]} nth of {m[2]}",
    ),
    (re.compile(r"(?<![\d/])(?:1/2|1/4|3/4|2/3)(?![\d/])"), lambda m: f" {_FRACTIONS[m[0]]} "),
    (re.compile(r"(?<=\d),(?=\d{3})"), lambda m: ""),
    (re.compile(r"([$£€])(\d[\d.]*) to (?=\1\d)"), lambda m: f"{m[2]} to "),
    (
        re.compile(r"([$£€¥])\s?(\d+)(?:\.(\d\d)(?!\d))?(\.\d+)?(\s(?:thousand|[mbt]r?illion))?"),
        lambda m: _money(*m.groups()),
    ),
    (re.compile(r"(?<=\d):00\b"), lambda m: " oclock "),
    (re.compile(r"(\d+)(?:st|nd|rd|th)\b"), lambda m: f" {m[1]} nth "),
    (re.compile(r"(\d+)'?s\b"), lambda m: f" {m[1]} s "),
    (re.compile(r"\d+(?:\.\d+){3}"), lambda m: m[0].replace(".", " dot ")),  # an address
    (re.compile(r"(?<=\d)\.(?=\d)"), lambda m: " point "),
    (re.compile(r"\bdouble (\w+)"), lambda m: f"{m[1]} {m[1]}"),  # "double oh seven"
    (re.compile(r"\b([a-z])2\1\b"), lambda m: f"{m[1]} to {m[1]}"),  # "B2B"
    (re.compile(r"\b(?:[a-z]\.){2,}"), lambda m: f"{m[0].replace('.', '')} "),
    (re.compile(r"(?<=[a-z])\.(?=[a-z])"), lambda m: " dot "),
    (re.compile(r"(?<=[a-z])/(?=[a-z])"), lambda m: " slash "),
    (
        re.compile(r"°\s?([cf])\b"),
        lambda m: " degrees celsius " if m[1] == "c" else " degrees fahrenheit ",
    ),
    (re.compile(r"km/h"), lambda m: " kilometers per hour "),
)
_MARKS = {"%": "percent", "&": "and", "@": "at", "+": "plus", "=": "equals", "°": "degrees",
          "#": "number", "½": "half"}  # fmt: skip
_WORD = re.compile(r"[a-z]+(?:'[a-z]+)*|\d+")


@dataclass(frozen=True)
class Differences:
    words: int
    wrong: int  # replaced
    missing: int
    added: int

    @property
    def errors(self) -> int:
        return self.wrong + self.missing + self.added

    def __add__(self, other: Differences) -> Differences:
        return Differences(
            self.words + other.words,
            self.wrong + other.wrong,
            self.missing + other.missing,
            self.added + other.added,
        )


NONE = Differences(0, 0, 0, 0)
_ROMAN = re.compile(r"(?<=[a-z] )(?=[IVX]{1,6}\b)(X{0,3})(IX|IV|V?I{0,3})\b")
_COUNTED = re.compile(r"\b(?:war|part|act|chapter|volume|book|phase|type) $", re.IGNORECASE)
_ROMAN_UNITS = ["", "I", "II", "III", "IV", "V", "VI", "VII", "VIII", "IX"]


def misheard(spoken: str, transcript: str) -> Differences:
    """What a transcript has otherwise; "Henry VIII" was heard as "the eighth" or as "eight"."""
    forms = {_ROMAN.sub(partial(_roman, way), transcript) for way in ("{}", "the {}th")}
    forms |= {_CLOCK.sub(r"\1:", form) for form in {transcript, *forms}}  # "7.45 pm"
    expected = canonical(spoken)
    found = [differences(expected, canonical(form)) for form in {transcript, *forms}]
    return min(found, key=lambda each: each.errors)


def _roman(way: str, match: re.Match[str]) -> str:
    number = 10 * len(match[1]) + _ROMAN_UNITS.index(match[2])
    counted = number == 1 and way == "{}" and _COUNTED.search(match.string[: match.start()])
    return way.format(number) if number > 1 or counted else match[0]


def canonical(text: str) -> list[str]:
    """The words of a text, every digit a word."""
    plain = unicodedata.normalize("NFKD", text.replace("½", " half ")).lower()
    plain = "".join(mark for mark in plain if not unicodedata.combining(mark))
    plain = plain.replace("’", "'").replace("‘", "'")
    for pattern, replacement in _RULES:
        plain = pattern.sub(replacement, plain)
    for mark, word in _MARKS.items():
        plain = plain.replace(mark, f" {word} ")
    words = [part for word in _WORD.findall(plain) for part in _ALIKE.get(word, word).split()]
    return list(_digits(words))


def differences(expected: list[str], heard: list[str]) -> Differences:
    """The fewest changes; words written as one on either side are no difference."""
    # costs[i][j]: (changes, wrong, missing, added) of the first i and j words
    costs = [[(0, 0, 0, 0)] * (len(heard) + 1) for _ in range(len(expected) + 1)]
    for i in range(len(expected) + 1):
        for j in range(len(heard) + 1):
            if i or j:
                costs[i][j] = min(_ways(costs, expected, heard, i, j))
    _, wrong, missing, added = costs[-1][-1]
    return Differences(len(expected), wrong, missing, added)


Cost = tuple[int, int, int, int]


def _ways(
    costs: list[list[Cost]], expected: list[str], heard: list[str], i: int, j: int
) -> Iterator[Cost]:
    if i and j:
        total, wrong, missing, added = costs[i - 1][j - 1]
        if expected[i - 1] == heard[j - 1]:
            yield total, wrong, missing, added
        else:
            yield total + 1, wrong + 1, missing, added
        for count in range(2, JOINED + 1):
            if count <= i and "".join(expected[i - count : i]) == heard[j - 1]:
                yield costs[i - count][j - 1]
            if count <= j and "".join(heard[j - count : j]) == expected[i - 1]:
                yield costs[i - 1][j - count]
    if i:
        total, wrong, missing, added = costs[i - 1][j]
        yield total + 1, wrong, missing + 1, added
    if j:
        total, wrong, missing, added = costs[i][j - 1]
        yield total + 1, wrong, missing, added + 1


def _money(sign: str, whole: str, cents: str | None, rest: str | None, scale: str | None) -> str:
    part = "pence" if sign == "£" else "cents"
    if cents and scale:
        return f" {whole} point {' '.join(cents)}{scale} {_CURRENCY[sign]} "
    if cents:
        return f" {whole} {_CURRENCY[sign]} {int(cents)} {part} "
    tail = f" point {' '.join(rest[1:])}" if rest else ""
    return f" {whole}{tail}{scale or ''} {_CURRENCY[sign]} "


def _value(word: str) -> int | None:
    return int(word) if word.isdecimal() else _VALUES.get(word)


def _digits(words: list[str]) -> Iterator[str]:
    """Numbers in words or figures as single digits."""
    at = 0
    while at < len(words):
        word = words[at]
        if word in _DECADES:
            yield from (*str(_DECADES[word]), "s")
        elif word in _NTH:
            yield from (*str(_NTH[word]), "nth")
        elif word == "oh" or (_value(word) is not None and len(word) > 3 and word.isdecimal()):
            yield from word.replace("oh", "0")
        elif _value(word) is not None:
            at, found, ending = _number(words, at)
            yield from (*found, *ending)
            continue
        elif word == "and" and at and words[at - 1] in ("dollars", "pounds", "dollar", "pound"):
            pass
        else:
            yield word
        at += 1


def _number(words: list[str], at: int) -> tuple[int, str, list[str]]:
    """A number from a place on: where it ends, its digits, and what makes it an ordinal."""
    first = words[at]
    total, part = 0, _value(first) or 0
    figures = first if first.isdecimal() else str(part)
    at += 1
    changed = False
    while at < len(words):
        word = words[at]
        value = _value(word) if not word.isdecimal() else None
        if word == "hundred" and 0 < part < 100:
            part, changed = 100 * part, True
        elif word in _SCALES and part:
            total, part, changed = total + part * _SCALES[word], 0, True
        elif (
            value is not None
            and value
            and part % (100 if value > 9 else 10) == 0
            and _fits(part, total, value)
        ):
            part, changed = part + value, True
        elif (
            word in _NTH
            and part
            and part % 10 == 0
            and _NTH[word] < 100
            and _fits(part, total, _NTH[word])
        ):
            return at + 1, str(total + part + _NTH[word]), ["nth"]
        elif word in _DECADES and 0 < part < 100:
            return at + 1, f"{total + part}{_DECADES[word]}", ["s"]
        elif (
            word == "and"
            and (part or total)
            and (part + total) % 100 == 0
            and at + 1 < len(words)
            and (words[at + 1] in _VALUES or words[at + 1] in _NTH)
        ):
            pass
        else:
            break
        at += 1
    return at, str(total + part) if changed else figures, []


def _fits(part: int, total: int, value: int) -> bool:
    """Whether a value continues a number: "twenty" "one", "hundred" "five", not "ten" "five"."""
    if part == 0:
        return total > 0
    if part % 100 == 0:
        return True
    return part % 100 >= 20 and value < 10
