"""Expands English numbers, dates, money, units and abbreviations to words.

Conservative: ambiguous forms are not changed, nor is text without digits. Other languages are left
to the model. `words_for` is idempotent.
"""

from __future__ import annotations

import re
from functools import lru_cache

MONTHS = [
    "January", "February", "March", "April", "May", "June", "July", "August", "September",
    "October", "November", "December",
]  # fmt: skip
_MONTH = "|".join([*MONTHS, *(rf"{month[:3]}\.?" for month in MONTHS), r"Sept\.?"])
_NUMBER = r"\d{1,3}(?:,\d{3})+(?:\.\d+)?|\d+(?:\.\d+)?"
_SCALES = {"k": "thousand", "m": "million", "bn": "billion", "b": "billion", "tn": "trillion"}
_SCALE = r"thousand|million|billion|trillion|bn|tn|k|m|b"
_CURRENCIES = {
    "$": ("dollar", "cent"),
    "£": ("pound", "penny"),
    "€": ("euro", "cent"),
    "¥": ("yen", ""),
}
_UNITS = {
    "km": "kilometer", "m": "meter", "cm": "centimeter", "mm": "millimeter", "mi": "mile",
    "ft": "foot", "kg": "kilogram", "g": "gram", "mg": "milligram", "lb": "pound", "lbs": "pound",
    "oz": "ounce", "l": "liter", "ml": "milliliter", "km/h": "kilometer per hour",
    "mph": "mile per hour", "m/s": "meter per second", "kHz": "kilohertz", "Hz": "hertz",
    "MHz": "megahertz", "GHz": "gigahertz", "KB": "kilobyte", "kB": "kilobyte", "MB": "megabyte",
    "GB": "gigabyte", "TB": "terabyte", "ms": "millisecond", "kW": "kilowatt", "W": "watt",
    "V": "volt", "°C": "degree Celsius", "°F": "degree Fahrenheit", "°": "degree",
}  # fmt: skip
_UNIT = "|".join(re.escape(unit) for unit in sorted(_UNITS, key=len, reverse=True))
_COMMON = re.compile(r"\b(?:the|and|of|to|is|it|you|that|for|with|she|they|this|have|are|not)\b")
_WORD = re.compile(r"[^\W\d_]+")
_MANY = 15  # digits: longer runs are codes, not quantities
_LONGEST = 60  # digits; longer numbers are not expanded

# Order matters: the most specific first.
_PATTERN = re.compile(
    rf"""(?<![\w.,/:$£€¥-]) (?:
      (?P<iso> (?P<iso_year>[12]\d{{3}})-(?P<iso_month>0[1-9]|1[0-2])-(?P<iso_day>[0-2]\d|3[01]) )
    | (?P<date> (?P<month>{_MONTH})\ (?P<day>[0-3]?\d)(?:st|nd|rd|th)?
        (?: ,?\ (?P<year>[12]\d{{3}}) )? (?!:?\d|[.,]\d|\w) )
    | (?P<british> (?P<b_day>[0-3]?\d)(?:st|nd|rd|th)?\ (?P<b_month>{_MONTH})
        (?: ,?\ (?P<b_year>[12]\d{{3}}) )? (?!:?\d|\w) )
    | (?P<month_year> (?P<m_month>{_MONTH})\ (?P<m_year>[12]\d{{3}}) )
    | (?P<time> (?P<hour>[01]?\d|2[0-3]):(?P<minute>[0-5]\d) )
    | (?P<decade> [12]\d\d0s )
    | (?P<ordinal> \d{{1,6}}(?:st|nd|rd|th) )
    | (?P<percent> (?P<rate>{_NUMBER})\s?% )
    | (?P<measure> (?P<amount>{_NUMBER})\s?(?P<unit>{_UNIT}) )
    | (?P<range> (?P<low>\d{{1,6}})\s?[–-]\s?(?P<high>\d{{1,6}}) )
    | (?P<version> \d{{1,4}}(?:\.\d{{1,4}}){{2,3}} )
    | (?P<yearly> (?<=[a-z]\ )(?P<y>1[1-9]\d\d|20\d\d) )
    | (?P<plain> {_NUMBER} )
    ) (?!\w|[.,:/-]\d|%)""",
    re.VERBOSE,
)
_MONEY = re.compile(
    rf"""(?<![\w.,$£€¥-]) (?P<sign>[$£€¥])\s?(?P<sum>{_NUMBER})
    (?: \s?(?P<scale>{_SCALE})(?!\w) )? (?!\w|[.,]\d)""",
    re.VERBOSE,
)
_MINUS = re.compile(r"(?<!\S)[-−](?=\d)")
_YEAR_CUE = re.compile(r"\b(?:in|since|until|till|during|year|early|late|circa) $", re.IGNORECASE)
_WEAK_CUE = re.compile(r"\b(?:from|by|before|after|of|around) $", re.IGNORECASE)

_TITLES = {
    "Mr": "Mister", "Mrs": "Missus", "Ms": "Miz", "Dr": "Doctor", "Prof": "Professor",
    "Gen": "General", "Capt": "Captain", "Lt": "Lieutenant", "Sgt": "Sergeant", "Col": "Colonel",
    "Rev": "Reverend", "Hon": "Honorable", "Gov": "Governor", "Sen": "Senator",
}  # fmt: skip
_PHRASES = {
    "e.g.": "for example", "i.e.": "that is", "etc.": "et cetera", "vs.": "versus",
    "approx.": "approximately", "dept.": "department", "est.": "established",
}  # fmt: skip
_RULES = (
    # Before a name only: "Dr. Smith", never "the Dr."
    (re.compile(rf"\b({'|'.join(_TITLES)})\.(?=\s+[A-Z])"), lambda m: _TITLES[m[1]]),
    (re.compile(r"\bSt\.(?=\s+[A-Z][a-z])"), lambda m: "Saint"),
    (re.compile(r"\bNo\.(?=\s?\d)"), lambda m: "number "),
    (re.compile(r"\b(?:Fig|fig)\.(?=\s?\d)"), lambda m: "figure "),
    (re.compile(r" & "), lambda m: " and "),
    (re.compile(r"(?<![\w#])#(?=\d)"), lambda m: "number "),
)
_PHRASE = re.compile(
    "|".join(rf"(?<![\w.]){re.escape(phrase)}" for phrase in _PHRASES), re.IGNORECASE
)
_ENDS = re.compile(r"\s*(?:[\"'”’)\]]*\s*$|[\"'”’)\]]*\s+[A-Z])")


@lru_cache(maxsize=8192)  # most lines of a script are unchanged between two plans
def words_for(text: str) -> str:
    """English text with numbers and abbreviations as words."""
    text = expand_abbreviations(text)
    if not any(char.isdigit() for char in text):
        return text
    return _PATTERN.sub(_say, _MINUS.sub("minus ", _MONEY.sub(_say_money, text)))


def looks_english(text: str) -> bool:
    """Whether the text has enough English function words."""
    words = _WORD.findall(text[:20_000].lower())
    foreign = sum(not word.isascii() for word in words)
    common = len(_COMMON.findall(text[:20_000].lower()))
    return bool(words) and foreign * 20 <= len(words) and common * 10 >= len(words)


def _say(match: re.Match[str]) -> str:
    return _SAYERS[match.lastgroup or "plain"](match) if match.lastgroup else match[0]


def _say_money(match: re.Match[str]) -> str:
    one, part = _CURRENCIES[match["sign"]]
    amount = match["sum"].replace(",", "")
    if match["scale"]:
        scale = _SCALES.get(match["scale"], match["scale"])
        return f"{_count(amount)} {scale} {_plural(one)}"
    whole, _, cents = amount.partition(".")
    if cents and (len(cents) != 2 or not part):
        return f"{_count(amount)} {_plural(one)}"
    said = [f"{_count(whole)} {_agree(one, whole)}"] if int(whole) or not int(cents or 0) else []
    if int(cents or 0):
        said.append(f"{_count(cents)} {_agree(part, cents)}")
    return " and ".join(said)


def _say_date(month: str, day: str, year: str | None) -> str:
    if not 1 <= int(day) <= 31:
        return f"{month} {day}" + (f", {year}" if year else "")
    said = f"{_full_month(month)} {_ordinal(day)}"
    return f"{said}, {_year(year)}" if year else said


def _say_time(match: re.Match[str]) -> str:
    hour, minute = _count(str(int(match["hour"]))), int(match["minute"])
    if minute:
        return f"{hour} {'' if minute > 9 else 'oh '}{_count(str(minute))}"
    if _half(match):
        return hour
    return f"{hour} o'clock" if 1 <= int(match["hour"]) <= 12 else f"{hour} hundred"


def _half(match: re.Match[str]) -> bool:
    """Whether a.m. or p.m. follows."""
    return re.match(r"\s?[ap]\.?m\b", match.string[match.end() :], re.IGNORECASE) is not None


def _say_measure(match: re.Match[str]) -> str:
    first, space, rest = _UNITS[match["unit"]].partition(" ")
    amount = match["amount"].replace(",", "")
    return f"{_count(amount)} {_agree(first, amount)}{space}{rest}"


def _say_range(match: re.Match[str]) -> str:
    low, high = match["low"], match["high"]
    if int(low) >= int(high) or (len(low), len(high)) == (3, 4):
        return match[0]  # a score, a telephone number
    if len(low) == len(high) == 4 and low >= "1100" and high <= "2099":
        return f"{_year(low)} to {_year(high)}"
    return f"{_count(low)} to {_count(high)}"


def _say_year(match: re.Match[str]) -> str:
    """ "In 1999 we" is a year; "of 2000 people" is a count."""
    before = match.string[max(0, match.start() - 12) : match.start()]
    ends = not re.match(r"\s+[a-z]", match.string[match.end() :])
    is_year = _YEAR_CUE.search(before) or (ends and _WEAK_CUE.search(before))
    return _year(match["y"]) if is_year else _count(match["y"])


def _say_plain(match: re.Match[str]) -> str:
    number = match[0].replace(",", "")
    bracketed = match.string[match.start() - 1 : match.end() + 1] == f"({number})"
    if bracketed and len(number) == 4 and "1100" <= number <= "2099":
        return _year(number)
    if len(number) > _MANY or re.match(r"0\d", number):
        return _digits(number)
    return _count(number)


def _full_month(name: str) -> str:
    return next(month for month in MONTHS if month.startswith(name[:3]))


def _agree(noun: str, amount: str) -> str:
    return noun if amount.strip("0") == "1" and amount[-1:] != "0" else _plural(noun)


def _plural(noun: str) -> str:
    irregular = {"foot": "feet", "penny": "pence", "yen": "yen"}
    if noun.endswith("hertz"):
        return noun
    return irregular.get(noun, f"{noun}s")


def _ordinal(number: str) -> str:
    return _spell(str(int(number)), "ordinal")


def _year(number: str) -> str:
    return _spell(number, "year")


def _count(number: str) -> str:
    whole, point, digits = number.partition(".")
    said = _spell(whole, "cardinal")
    return f"{said} point {_digits(digits)}" if point else said


def _digits(number: str) -> str:
    return " ".join(_spell(digit, "cardinal") for digit in number if digit.isdigit())


@lru_cache(maxsize=4096)
def _spell(number: str, manner: str) -> str:
    from num2words import num2words  # imported late, since it loads sixty languages

    if len(number) > _LONGEST:  # more than it can count
        return _digits(number)
    return str(num2words(int(number), lang="en", to=manner)).replace(",", "")


_SAYERS = {
    "iso": lambda m: _say_date(MONTHS[int(m["iso_month"]) - 1], m["iso_day"], m["iso_year"]),
    "date": lambda m: _say_date(m["month"], m["day"], m["year"]),
    "british": lambda m: _say_date(m["b_month"], m["b_day"], m["b_year"]),
    "month_year": lambda m: f"{_full_month(m['m_month'])} {_year(m['m_year'])}",
    "time": _say_time,
    "decade": lambda m: _decade(m[0]),
    "ordinal": lambda m: _ordinal(m[0][:-2]),
    "percent": lambda m: f"{_count(m['rate'].replace(',', ''))} percent",
    "measure": _say_measure,
    "range": _say_range,
    "version": lambda m: " point ".join(_count(part) for part in m[0].split(".")),
    "yearly": _say_year,
    "plain": _say_plain,
}


def _decade(text: str) -> str:
    said = _year(text[:-1])
    return f"{said[:-1]}ies" if said.endswith("y") else f"{said}s"


def expand_abbreviations(text: str) -> str:
    """The text with its abbreviations written out."""
    for pattern, replacement in _RULES:
        text = pattern.sub(replacement, text)
    return re.sub(r"(number|figure) {2,}", r"\1 ", _PHRASE.sub(_say_phrase, text))


def _say_phrase(match: re.Match[str]) -> str:
    """Expand; a dot that also ends the sentence is kept."""
    said = _PHRASES[match[0].lower()]
    said = said[0].upper() + said[1:] if match[0][0].isupper() else said
    ends = match[0].lower() == "etc." and _ENDS.match(match.string[match.end() :])
    return f"{said}." if ends else said
