"""English number words: cardinals, ordinals, years, digits. Knows nothing of what is counted."""

from __future__ import annotations

from functools import lru_cache

SCALES = ("", "thousand", "million", "billion", "trillion")
MOST_DIGITS = 15  # longer numbers are read digit by digit
YEARS = range(1010, 2100)


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
