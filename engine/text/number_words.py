"""English number words: cardinals, ordinals, years, digits. Knows nothing of what is counted."""

from __future__ import annotations

import re
from functools import lru_cache

SCALES = ("", "thousand", "million", "billion", "trillion")
MOST_DIGITS = 15  # longer numbers are read digit by digit
YEARS = range(1010, 2100)
_LAKHS = re.compile(r"(?<![\w.,])[0-9]{1,2}(?:,[0-9]{2}){1,4},[0-9]{3}(?![\w,])")  # 1,00,000
_CONTINENTAL = re.compile(r"(?<![\w.,])[0-9]{1,3}(?:\.[0-9]{3}){1,4},[0-9]{2}(?![\w,]|\.[0-9])")
_POINTS = re.compile(  # 1.000.000, and where it is money 45.000 too
    r"(?<![\w.,])(?:[0-9]{1,3}(?:\.000){2,5}|[0-9]{1,3}(?:\.[0-9]{3}){2,5}(?=\s?[€%a-z])|"
    r"(?:(?<=€)|(?<=€\s))(?:[0-9]{2,3}\.[0-9]{3}|[1-9]\.[0-9]00)|"
    r"(?:[0-9]{2,3}\.[0-9]{3}|[1-9]\.[0-9]00)(?=\s?(?:€|EUR\b)))(?!\w|[.,][0-9])"
)
_COMMA = re.compile(  # a decimal one
    r"(?<=[$£€])\s?([0-9]{1,6}),([0-9]{1,2})(?![0-9]|,[0-9])|(?<![\w.,])([0-9]{1,6}),([0-9]{1,2})"
    r"(?=\s?(?:[€%°]|(?:kg|km|cm|mm|ml|EUR|Euro|Mio|Mrd|m|g|l)\b))"
)


def cardinal(digits: str) -> str:
    """ "1204" -> "one thousand two hundred and four"; no limit of length."""
    digits = digits.lstrip("0") or "0"
    if len(digits) > MOST_DIGITS:
        return spelled(digits)
    if digits == "0":
        return "zero"
    groups = []
    rest, scale = int(digits), 0
    while rest:
        rest, part = divmod(rest, 1000)
        if part:
            link = "and " if scale == 0 and rest and part < 100 else ""
            groups.append(f"{link}{_below_thousand(part)} {SCALES[scale]}".strip())
        scale += 1
    return " ".join(reversed(groups))


def ordinal(digits: str) -> str:
    digits = digits.lstrip("0") or "0"
    if len(digits) > MOST_DIGITS:
        return f"{spelled(digits)}th"
    number = int(digits)
    head, last = (number - number % 100, number % 100) if number > 100 else (0, number)
    if head and last:
        link = "" if number % 1000 > 100 else "and "
        before = cardinal(str(head))
        return f"{before} {link or 'and '}{_nth(last)}"
    return _nth(last) if not head else f"{cardinal(str(head))}th"


def year(digits: str) -> str:
    """ "1905" -> "nineteen oh five"; "2005" -> "two thousand and five"."""
    number = int(digits)
    if number not in YEARS or number // 10 in (200, 100):
        return cardinal(digits)
    century, rest = divmod(number, 100)
    if rest == 0:
        return f"{cardinal(str(century))} hundred"
    return f"{cardinal(str(century))} {'oh ' if rest < 10 else ''}{cardinal(str(rest))}"


def decade(digits: str) -> str:
    """ "1990" -> "nineteen nineties"."""
    spoken = year(digits) if len(digits) == 4 else cardinal(digits)
    return f"{spoken[:-1]}ies" if spoken.endswith("y") else f"{spoken}s"


def spelled(digits: str, zero: str = "zero") -> str:
    """Digit by digit."""
    return " ".join(
        zero if digit == "0" else _below_thousand(int(digit))
        for digit in digits
        if digit.isdecimal()
    )


def pair(digits: str) -> str:
    """ "05" -> "oh five", "00" -> "oh oh", "15" -> "fifteen"."""
    return spelled(digits, "oh") if digits[0] == "0" else cardinal(digits)


def number(written: str) -> str:
    """ "1,234.50" -> "one thousand two hundred and thirty-four point five zero"."""
    whole, point, rest = written.replace(",", "").partition(".")
    if point and rest:
        return f"{cardinal(whole) + ' ' if whole else ''}point {spelled(rest)}"
    return spelled(whole) if len(whole) > 1 and whole[0] == "0" else cardinal(whole)


def english_figures(text: str) -> str:
    """ "1.000.000", "45.000 €", "1,5 %", "1,00,000" with the marks that English has."""
    text = _LAKHS.sub(lambda m: m[0].replace(",", ""), text)
    text = _CONTINENTAL.sub(lambda m: m[0].replace(".", "").replace(",", "."), text)
    text = _POINTS.sub(lambda m: m[0].replace(".", ","), text)
    return _COMMA.sub(lambda m: f"{m[1] or m[3]}.{m[2] or m[4]}", text)


@lru_cache(maxsize=1024)
def _below_thousand(value: int) -> str:
    from num2words import num2words  # imported late, since it loads sixty languages

    return str(num2words(value, lang="en"))


@lru_cache(maxsize=128)
def _nth(value: int) -> str:
    from num2words import num2words

    return str(num2words(value, lang="en", to="ordinal"))


def raised_to(exponent: str) -> str:
    """What is said behind a base; figures other than 2 and 3 stay figures."""
    named = exponent.replace("-", "minus ")
    return {"2": " squared", "3": " cubed"}.get(named, f" to the power of {named}")
