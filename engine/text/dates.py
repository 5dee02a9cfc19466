"""Dates, decades and times of day as they are said."""

from __future__ import annotations

import re

from engine.text.abbreviations import ends_sentence
from engine.text.letters import letter_names
from engine.text.number_words import cardinal, decade, ordinal, pair, spelled, year

MONTHS = (
    "January", "February", "March", "April", "May", "June", "July", "August", "September",
    "October", "November", "December",
)  # fmt: skip
DAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
_MONTH = "|".join([*MONTHS, *(rf"{month[:3]}\b\.?" for month in MONTHS), r"Sept\b\.?"])
SHORT_MONTHS = "Jan|Feb|Mar|Apr|Jun|Jul|Aug|Sept?|Oct|Nov|Dec"
SHORT_DAYS = r"Mon|Tues?|Weds?|Thu(?:rs?)?|Fri|Sat|Sun"
_YEAR = r"[12][0-9]{3}"
_NO_MORE = r"(?![\w]|[.,:/-][0-9])"

_ISO = re.compile(
    rf"(?<![\w./-])({_YEAR})[-/.](0?[1-9]|1[0-2])[-/.](0?[1-9]|[12][0-9]|3[01])(?![\w/-]|\.[0-9])(?:T(?=[0-9]))?"
)
_SLASHED = re.compile(
    rf"(?<![\w./-])(0?[1-9]|[12][0-9]|3[01])([/.-])(0?[1-9]|[12][0-9]|3[01])\2({_YEAR}|[0-9]{{2}})(?![\w/-]|\.[0-9])"
)
_NUMBERED_MONTH = re.compile(  # 01/2020, 2024-05; "2010-12" are years
    r"(?<![\w./-])(?:(0[1-9]|1[0-2])/((?:19|20)[0-9]{2})|((?:19|20)[0-9]{2})-(0[1-9]|1[0-2]))(?![\w/-]|[.,][0-9])"
)
_MONTH_DAY = re.compile(
    rf"\b({_MONTH})\s([0-3]?[0-9])(?:st|nd|rd|th)?(?:\s?[-–]\s?([0-3]?[0-9])(?:st|nd|rd|th)?)?"
    rf"(?:,?\s({_YEAR}))?{_NO_MORE}"
)
_DAY_MONTH = re.compile(
    rf"(?<![\w.,:/-])([Tt]he\s)?([0-3]?[0-9])(?:st|nd|rd|th)?(?:\s?[-–]\s?([0-3]?[0-9])(?:st|nd|rd|th)?)?"
    rf"(?:\sof)?\s({_MONTH})(?:,?\s({_YEAR}))?{_NO_MORE}"
)
_MONTH_YEAR = re.compile(rf"\b({_MONTH}),?\s({_YEAR}){_NO_MORE}")
_DATES = re.compile(  # "30 Sept. – 2 Oct.", "May 5 – June 3"
    rf"((?<=[0-9]\s)(?:{_MONTH})(?:,?\s{_YEAR})?)\s?[-–—]\s?(?=[0-3]?[0-9](?:st|nd|rd|th)?\s(?:{_MONTH}))"
    rf"|(\b(?:{_MONTH})\s[0-3]?[0-9](?:st|nd|rd|th)?(?:,?\s{_YEAR})?)\s?[-–—]\s?(?=(?:{_MONTH})\s[0-3]?[0-9])"
)
_WHOLE_NAMES = "|".join(DAYS), "|".join(MONTHS)
_NAMES = re.compile(
    "|".join(rf"\b(?:{names})\b\s?[-–—]\s?(?=(?:{names})\b)" for names in _WHOLE_NAMES)
)
_SHORT_MONTH = re.compile(rf"\b({SHORT_MONTHS})\.(?=\s[0-9a-z]|,)")
_WEEKDAYS = re.compile(rf"\b({SHORT_DAYS})\.?\s?[-–]\s?({SHORT_DAYS})\b(?:\.(?=\s[0-9a-z]|[,;)]))?")
_WORKDAYS = re.compile(r"(?<![\w-])M[-–]F(?=[,;)]|\.?\s?$|\.\s|\s[0-9])")
_WEEKDAY = re.compile(
    rf"\b({SHORT_DAYS})(?:\.,?|,)?(?=\s[0-9]|\s(?:{_MONTH})\b)|\b((?:{SHORT_DAYS}))\.(?=\s[a-z&]|[,;)])|\b(Mon|Tues|Wed|Thurs?|Fri)\.(?=\s|$)"
)
_DECADE = re.compile(
    r"(?<![\w.,])([12][0-9]{2}0)['’]?s(?:\s?[-–]\s?['’]?((?:[12][0-9])?[0-9]0)s)?(?!\w)"
)
_SHORT_DECADE = re.compile(r"(?<!\w)(['’‘]?)([1-9]0)['’]?s(?!\w)")
_DECADE_BEFORE = re.compile(
    r"(?:\b(?:the|his|her|our|their|my|your|early|mid|late)[\s-]"
    r"(?:[0-9]0['’]?s,?\s(?:and|or|to)\s)?|ties,?\s(?:and|or|to)\s)$",
    re.IGNORECASE,
)
_AGES = re.compile(r"(?<=[A-Za-z]-)([0-9]{1,2})s(?!\w)")  # "under-16s", "F-16s"
_SHORT_YEAR = re.compile(r"(?<=\s)['’‘]([0-9]{2})(?!\w)")
_HALF = r"(?:\s?([AaPp])(?:\.\s?[Mm]\.?|[Mm])(?!\w))"
_HALF_LETTER = re.compile(r"(?<![\w.,:/])((?:1[0-2]|0?[1-9]):[0-5][0-9])([ap])(?![\w.])")  # 7:30p
_ZULU = re.compile(r"(?<![\w:])([0-2][0-9]:[0-5][0-9])Z(?!\w)")
_LOGGED = re.compile(  # 4-Apr-2021
    rf"(?<![\w-])([0-3]?[0-9])-({SHORT_MONTHS}|May)-((?:19|20)?[0-9]{{2}})(?![\w-])"
)
_DECADE_OF = re.compile(  # "60s music"
    r"(?<![\w'’])([2-9]0s)(?=\s(?:music|rock|pop|fashion|styles?|movies?|films?|sitcoms?|hits|disco|nostalgia|hair)\b)"
)
_CLOCK = re.compile(
    rf"(?<![\w.,:/-])([01]?[0-9]|2[0-4])[:]([0-5][0-9])(?::([0-5][0-9]))?(\.[0-9]{{1,3}})?(?:h\b)?{_HALF}?(?![\w:])"
)
_LAP = re.compile(  # minutes and seconds: no hour is so late
    r"(?<![\w.,:/-])(?<!\bratio )(?<!\bratio of )"
    r"(2[5-9]|[3-5][0-9]):([0-5][0-9])(\.[0-9]{1,3})?(?![\w:])"
)
_DOTTED = re.compile(rf"(?<![\w.,:/-])(1[0-2]|0?[1-9])\.([0-5][0-9]){_HALF}")
_HOUR = re.compile(rf"(?<![\w.,:/])(1[0-2]|0?[1-9]){_HALF}")
_HOURS = re.compile(
    rf"(?<![\w.,:/])(1[0-2]|0?[1-9])((?::[0-5][0-9])?)\s?[-–—]\s?(?=(?:1[0-2]|0?[1-9])(?::[0-5][0-9])?{_HALF})"
)
_SPAN = re.compile(
    r"(?<=[AaPp][Mm])\s?[-–—]\s?(?=[0-9]|noon\b|midnight\b)|(?<=[AaPp]\.[Mm]\.)\s?[-–—]\s?(?=[0-9])|(?<=[0-9]:[0-5][0-9])\s?[-–—]\s?(?=[0-9]{1,2}:)"
)
_VERSES = re.compile(
    r"(?<![\w.,:/-])([0-9]{1,3}):([0-9]{1,3})\s?[-–]\s?(?=[0-9]{1,3}(?![\w:-]|[.,][0-9]))"
)
_BOOKS = (
    "Genesis|Exodus|Leviticus|Numbers|Deuteronomy|Joshua|Judges|Ruth|Samuel|Kings|Chronicles|Ezra|"
    "Nehemiah|Esther|Job|Psalms?|Proverbs|Ecclesiastes|Isaiah|Jeremiah|Ezekiel|Daniel|Hosea|Joel|"
    "Amos|Obadiah|Jonah|Micah|Habakkuk|Malachi|Matthew|Mark|Luke|John|Acts|Romans|Corinthians|"
    "Galatians|Ephesians|Philippians|Colossians|Thessalonians|Timothy|Titus|Hebrews|James|Peter|"
    "Jude|Revelations?|Quran|Surah?"
)
_VERSE = re.compile(rf"\b({_BOOKS})\s([0-9]{{1,3}}):([1-9][0-9]{{0,2}})([a-c]?)(?![\w:])")
_MILITARY = re.compile(
    r"(?<![\w.,:/-])(0[0-9]|1[0-9]|2[0-3])([0-5][0-9])\s?(?:hrs?\b(?:\.(?=\s[a-z]))?|hours\b)"
    r"|(?:(?<=\b[Aa]t )|(?<=\b[Bb]y )|(?<=ntil )|(?<=\bwas ))(0[0-9])([0-5][0-9])"
    r"(?![\w]|[.,:/-][0-9])"
)
_ON_SLASHED = re.compile(
    r"(?<=\b[Oo]n )(0?[1-9]|1[0-2])/(0?[1-9]|[12][0-9]|3[01])(?![\w/]|[.,][0-9]|\sof\b)"
)
_BY_SLASHED = re.compile(  # "by 1/2" may be a half
    r"(?:(?<=\bby )|(?<=\b[Dd]ue )|(?<=ntil )|(?<=efore )|(?<=fter )|(?<=ince ))"
    r"(0?[1-9]|1[0-2])/(1[3-9]|2[0-9]|3[01])(?![\w/]|[.,][0-9]|\sof\b)"
)
_DAY_FIRST = re.compile(  # "on 25/12": no month is so late
    r"(?:(?<=\b[Oo]n )|(?<=\bby )|(?<=\b[Dd]ue )|(?<=ntil )|(?<=efore )|(?<=fter )|(?<=ince ))"
    r"(1[3-9]|2[0-9]|3[01])/(0?[1-9]|1[0-2])(?![\w/]|[.,][0-9]|\sof\b)"
)
_DAY_SLASHED = re.compile(  # "Fri 6/7"
    rf"(?<!\w)({SHORT_DAYS}|[A-Z][a-z]{{2,5}}day)\b[.,]{{0,2}}\s(0?[1-9]|1[0-2])/(0?[1-9]|[12][0-9]|3[01])"
    r"(?![\w/]|[.,][0-9]|\sof\b)"
)
_SINCE = re.compile(
    rf"\b([Ff]rom|[Bb]etween)\s({_YEAR})\s(to|until|and)\s(?=['’][0-9]{{2}}\b|{_YEAR}\b)"
)
_COUNT_AFTER = re.compile(r"\s[a-z]")
_DURATION = re.compile(r"(?<![\w.,])([0-9]{1,3})h\s?([0-5]?[0-9])(?:m|min)?(?!\w)")
_AT = re.compile(r"\b(?:at|by|from|until)\s$", re.IGNORECASE)
_ERA = re.compile(r"(?<![\w.,])([0-9]{1,5})\s?(BCE|BC|AD|CE|B\.C\.E\.|B\.C\.|A\.D\.|C\.E\.)(?!\w)")
_ERA_FIRST = re.compile(r"\b(?:AD|A\.D\.)\s([0-9]{1,4})(?!\w)")

_YEAR_BEFORE = re.compile(
    r"(?:©|\b(?:in|since|copyright|easter|christmas|cue (?:one|two|three|four)|aitch (?:one|two)|"
    r"until|till|during|years?|pre|post|early|mid|late|circa|between|january|february|march|"
    r"april|may|june|july|august|september|october|november|december|spring|summer|autumn|winter|"
    r"fall|(?:class|war|battle|act|treaty|crash|crisis|panic|revolution|uprising|election|flood|"
    r"plague|fire|constitution) of))[\s,-]{1,3}$",
    re.IGNORECASE,
)
_ONE_YEAR = re.compile(
    r"(?:\b(?:the|this|that|an?|his|her|its|our|their|my|your)|['’]s)\s(?:[a-z-]{3,14}\s)?$"
    r"|\bfrom\s$|(?<![\w.,])[12][0-9]{3},?\s(?:and|or)\s$",
    re.IGNORECASE,
)
MANY = re.compile(r"\s(?:[a-z]+s|people|men|women|children|of|more|or|times|percent)\b")
_OPENING = re.compile(r"(?:^|[.!?][\"”’)]{0,2}\s)[\"“‘'(]?$")  # of a sentence
_HAPPENED = re.compile(r"\s(?:was|is|will|has|had|saw|brought|marked|began|ended|by|and all)\b")


def dates(text: str) -> str:
    """Dates, days of the week, decades and eras."""
    text = _DATES.sub(lambda m: f"{m[1] or m[2]} to ", text)
    text = _NAMES.sub(lambda m: f"{m[0].rstrip(' -–—')} to ", text)
    text = _LOGGED.sub(lambda m: f"{m[1]} {m[2]} {full_year(m[3])}", text)
    text = _DECADE_OF.sub(lambda m: f"'{m[1]}", text)
    text = _ISO.sub(_say_iso, text)
    text = _NUMBERED_MONTH.sub(_say_numbered_month, text)
    text = _SLASHED.sub(_say_slashed, text)
    for slashed in (_ON_SLASHED, _BY_SLASHED):
        text = slashed.sub(lambda m: f"{MONTHS[int(m[1]) - 1]} {ordinal(m[2])}", text)
    text = _DAY_FIRST.sub(lambda m: f"the {ordinal(m[1])} of {MONTHS[int(m[2]) - 1]}", text)
    text = _DAY_SLASHED.sub(_say_day_slashed, text)
    text = _SINCE.sub(lambda m: f"{m[1]} {year(m[2])} {m[3]} ", text)
    text = _WORKDAYS.sub("Monday to Friday", text)
    text = _WEEKDAYS.sub(lambda m: f"{weekday_name(m[1])} to {weekday_name(m[2])}", text)
    text = _WEEKDAY.sub(_say_weekday, text)
    text = _DAY_MONTH.sub(_say_day_month, text)
    text = _MONTH_DAY.sub(_say_month_day, text)
    text = _MONTH_YEAR.sub(lambda m: f"{month_name(m[1])} {year(m[2])}", text)
    text = _SHORT_MONTH.sub(lambda m: month_name(m[1]), text)
    text = _ERA.sub(_say_era, text)
    text = _ERA_FIRST.sub(lambda m: f"{letter_names('ad')} {year(m[1])}", text)
    text = _DECADE.sub(lambda m: decade(m[1]) + (f" to {decade(m[2])}" if m[2] else ""), text)
    text = _AGES.sub(lambda m: decade(m[1]), text)
    text = _SHORT_DECADE.sub(_say_short_decade, text)
    return _SHORT_YEAR.sub(lambda m: pair(m[1]), text)


def _say_short_decade(match: re.Match[str]) -> str:
    """ "'90s", "his 30s"; "wait 30s" are seconds."""
    if match[2] == "10" and not match[1]:  # No. 10's
        return match[0]
    named = match[1] or match[0][-2] in "'’" or _DECADE_BEFORE.search(match.string[: match.start()])
    return decade(match[2]) if named else match[0]


def is_year(written: str, left: str, right: str) -> bool:
    """Whether a number that nothing else has claimed is one, by what is to its left and right."""
    if len(written) != 4 or not "1010" <= written <= "2099":
        return False
    if _YEAR_BEFORE.search(left) or (_HAPPENED.match(right) and _OPENING.search(left)):
        return True
    if written < "1100":
        return False
    if left.endswith("(") and re.match(r"(?:\s[a-z]{1,20})?\)|,", right):
        return True
    if MANY.match(right):
        return False
    return bool(_ONE_YEAR.search(left)) or not re.match(r"\s[a-z]", right)


def times(text: str) -> str:
    """Times of day and durations."""
    text = _VERSES.sub(_say_verses, text)
    text = _VERSE.sub(_say_verse, text)
    text = _HALF_LETTER.sub(lambda m: f"{m[1]} {m[2]}m", _ZULU.sub(r"\1 Zulu", text))
    text = _MILITARY.sub(_say_military, text)
    text = _HOURS.sub(lambda m: f"{_clock(m[1], m[2][1:], '', True)} to ", text)
    text = _SPAN.sub(" to ", text)
    text = _LAP.sub(_say_lap, text)
    text = _CLOCK.sub(_say_clock, text)
    text = _DOTTED.sub(lambda m: _clock(m[1], m[2], m[3] or "") + _stop(m), text)
    text = _HOUR.sub(lambda m: _clock(m[1], "00", m[2] or "") + _stop(m), text)
    return _DURATION.sub(_say_duration, text)


def _say_verses(match: re.Match[str]) -> str:
    """ "Genesis 1:1-3"; a time before an hour, "9:30-10", is said alike."""
    chapter, verse = match.groups()
    zero = "oh " if len(verse) > 1 and verse[0] == "0" else ""
    if verse == "00":
        return match[0]
    return f"{cardinal(chapter)} {zero}{cardinal(verse)} to "


def _say_verse(match: re.Match[str]) -> str:
    """ "John 3:16", "Luke 3:16b"."""
    book, chapter, verse, part = match.groups()
    return f"{book} {cardinal(chapter)} {cardinal(verse)} {letter_names(part)}".rstrip()


def _say_military(match: re.Match[str]) -> str:
    """ "0630 hrs" -> "oh six thirty hours"."""
    hour, minute = filter(None, match.groups())
    late = cardinal(minute) if minute[0] != "0" else f"oh {cardinal(minute)}"
    spoken = f"{'oh ' if hour[0] == '0' else ''}{cardinal(hour)}"
    return f"{spoken} {'hundred' if minute == '00' else late} hours"


def month_name(written: str) -> str:
    return next(month for month in MONTHS if month.startswith(written[:3]))


def weekday_name(written: str) -> str:
    return next(day for day in DAYS if day.startswith(written[:3]))


def _say_weekday(match: re.Match[str]) -> str:
    spoken = weekday_name(match[1] or match[2] or match[3])
    return f"{spoken}{',' if ',' in match[0] else '.' if match[3] else ''}"


def _say_day_slashed(match: re.Match[str]) -> str:
    day = next((day for day in DAYS if day.startswith(match[1][:3])), match[1])
    return f"{day}, {MONTHS[int(match[2]) - 1]} {ordinal(match[3])}"


def _valid(day: str) -> bool:
    return 1 <= int(day) <= 31


def full_year(digits: str) -> str:
    if len(digits) == 4:
        return digits
    return f"{'19' if digits > '50' else '20'}{digits}"


def _say_iso(match: re.Match[str]) -> str:
    return f"{MONTHS[int(match[2]) - 1]} {ordinal(match[3])}, {year(match[1])}"


def _say_numbered_month(match: re.Match[str]) -> str:
    month, when = match[1] or match[4], match[2] or match[3]
    if match[4] and month > when[2:]:
        return match[0]
    return f"{MONTHS[int(month) - 1]} {year(when)}"


def _say_slashed(match: re.Match[str]) -> str:
    """Month first as in America, unless only the day can be first."""
    first, mark, second, last = match.groups()
    if len(last) == 2 and mark != "/":
        return match[0]
    month, day = (first, second) if mark != "." and int(first) <= 12 else (second, first)
    if int(month) > 12:
        month, day = day, month
    if int(month) > 12:
        return match[0]
    when = year(full_year(last))
    if (month, day) == (first, second):
        return f"{MONTHS[int(month) - 1]} {ordinal(day)}, {when}"
    return f"the {ordinal(day)} of {MONTHS[int(month) - 1]}, {when}"


def _say_month_day(match: re.Match[str]) -> str:
    month, day, last, when = match.groups()
    if not _valid(day) or (last and not _valid(last)):
        return match[0]
    left, right = match.string[: match.start()], match.string[match.end() :]
    if match[0].endswith(f" {day}") and left.lower().endswith("in ") and _COUNT_AFTER.match(right):
        return f"{month_name(month)} {cardinal(day)}"  # "in March 10 men came"
    spoken = f"{month_name(month)} {ordinal(day)}" + (f" to {ordinal(last)}" if last else "")
    return f"{spoken}, {year(when)}" if when else spoken


def _say_day_month(match: re.Match[str]) -> str:
    article, day, last, month, when = match.groups()
    if not _valid(day) or (last and not _valid(last)):
        return match[0]
    days = ordinal(day) + (f" to {ordinal(last)}" if last else "")
    spoken = f"{article or 'the '}{days} of {month_name(month)}"
    return f"{spoken}, {year(when)}" if when else spoken


def _say_era(match: re.Match[str]) -> str:
    return f"{year(match[1])} {letter_names(match[2])}{_stop(match)}"


def _stop(match: re.Match[str]) -> str:
    """The full stop of "p.m." that also ends the sentence."""
    tail = match.string[match.end() :]
    left = match.string[: match.start()]
    goes_on = _GOES_ON.match(tail) or _OPENED.search(left)
    begins = re.match(r"\s+[A-Z][a-z]", tail) and not goes_on
    return "." if match[0].endswith(".") and (begins or ends_sentence(tail)) else ""


_OPENED = re.compile(r"\b(?:At|By|Around|About|Before|After|Until|From)\s$")  # a sentence
_GOES_ON = re.compile(  # behind "5 p.m."
    rf"\s+(?:{'|'.join(_WHOLE_NAMES)}|{SHORT_DAYS}|{SHORT_MONTHS}|Eastern|Central|Mountain|Pacific|"
    r"[A-Z][a-z]+\stime)\b"
)


def _say_clock(match: re.Match[str]) -> str:
    hour, minute, second, fraction, half = match.groups()
    late = half if half and not (second or fraction) else ""
    spoken = _clock(hour, minute, late, bool(second or fraction))
    if second and minute == "00":
        spoken += " oh oh"
    if second:
        spoken += f" {pair(second)}"
    if fraction:
        spoken += f" point {spelled(fraction)}"
    if half and not late:
        spoken += f" {letter_names(half + 'm')}"
    return spoken + _stop(match)


def _say_lap(match: re.Match[str]) -> str:
    fraction = f" point {spelled(match[3][1:])}" if match[3] else ""
    return f"{cardinal(match[1])} {pair(match[2])}{fraction}"


def _clock(hour: str, minute: str, half: str, bare: bool = False) -> str:
    spoken, late = cardinal(hour), f" {letter_names(half + 'm')}" if half else ""
    if minute and int(minute):
        return f"{spoken} {pair(minute)}{late}"
    if late or bare:
        return spoken + late
    if hour in ("00", "0", "24"):
        return "midnight"
    return f"{spoken} o'clock" if int(hour) <= 12 else f"{spoken} hundred"


def _say_duration(match: re.Match[str]) -> str:
    hours, minutes = match.groups()
    if int(hours) > 12 or _AT.search(match.string[: match.start()]):
        return _clock(hours, minutes.zfill(2), "")
    return (
        f"{cardinal(hours)} hour{'' if int(hours) == 1 else 's'} "
        f"{cardinal(minutes)} minute{'' if int(minutes) == 1 else 's'}"
    )
