"""Signs between words, accents, and what is not written in Latin letters."""

from __future__ import annotations

import re
import unicodedata

from engine.text.abbreviations import roman_value
from engine.text.number_words import cardinal, spelled

_SAID = {
    "&": " and ", "+": " plus ", "=": " equals ", "@": " at ", "%": " percent ", "§": " section ",
    "♭": " flat ", "♯": " sharp ", "©": " copyright ",
    "×": " times ", "÷": " divided by ", "≈": " about ", "≠": " is not ",
    "≤": " at most ", "≥": " at least ", "∞": " infinity ", "√": " root ", "±": " plus or minus ",
    "™": " ", "®": " ", "→": " to ", "⇒": " to ", "➔": " to ", "➜": " to ", "➡": " to ", "←": " from ", "£": " pounds ",  # noqa: E501
    "€": " euros ", "$": " dollars ", "¥": " yen ", "°": " degrees ", "№": " number ",
    "\\": " backslash ", "~": " about ", "µ": " micro ", "‰": " per thousand ", "#": " hash ",
    "¶": " paragraph ", "∈": " in ", "∉": " not in ", "∑": " sum ", "∏": " product of ",
    "∀": " for all ", "∃": " there is ", "∂": " partial ", "∪": " union ", "∩": " intersection ",
    "∝": " proportional to ", "∴": " therefore ", "⊂": " subset of ", "⊆": " subset of ",
    "⌘": " command ", "⌥": " option ", "⇧": " shift ", "⌃": " control ",
}  # fmt: skip
_LATIN = {
    "ß": "ss", "æ": "ae", "Æ": "Ae", "ø": "o", "Ø": "O", "ł": "l", "Ł": "L", "đ": "d", "Đ": "D",
    "ð": "d", "Ð": "D", "þ": "th", "Þ": "Th", "œ": "oe", "Œ": "Oe", "ŋ": "ng",
}  # fmt: skip
_QUOTES = str.maketrans({"’": "'", "‘": "'", "‛": "'", "`": "'", "´": "'", "ʼ": "'", "′": "'"})
_BULLET = re.compile(r"(^|\n)[ \t]{0,20}(?:[-*•‣▪◦·–—]|#{1,6}(?!\sof\b))[ \t]{1,5}(?=\S)")
_ITEM = re.compile(r"(^|\n)[ \t]{0,20}\(?([0-9]{1,3})[.)][ \t]{1,5}(?=[A-Za-z\"“])")
_NUMERAL = re.compile(  # of a chapter
    r"(^|\n)[ \t]{0,20}(?=[IVXL]{2,8}\b)(?!LI\b)(L?X{0,3}(?:IX|IV|V?I{0,3})|XL(?:IX|IV|V?I{1,3}))"
    r"(?:[.:][ \t]{1,5}(?=\S)|[.:]?[ \t]{0,20}\n)"
)
_BREAKS = re.compile(r"([^\s.!?:;,…])[ \t]*(?:\n[ \t]*){2,}")
_LINE = re.compile(r"([\w\"”')])[ \t]*\n[ \t]*(?=[A-Z0-9•*-])")
_ELLIPSIS = re.compile(r"\s?(?:…|\.{3,}|(?:\.\s){2,}\.)(?P<space>\s*)(?P<next>[A-Z]|$)?")
_DASHES = re.compile(r"\s?(?:—|―|--+|⸺)\s?|\s[–-]\s|(?<=[^\W\d])–(?=[^\W\d])")
_OPEN = re.compile(r"\s*[(\[{]\s*")
_CLOSE = re.compile(r"\s*[)\]}](?P<mark>[.,;:!?]?)")
_GENITIVE = re.compile(
    r"(?<=\w)'(?=\w)|(?<=[sS])'(?=\s)|(?<=\s)'(?=(?:tis|twas|em|cause|til|bout|n)\b)"
)
_SLASH = re.compile(r"(?<=[A-Za-z])(\s?)/(\s?)(?=[A-Za-z])")
_TAGS = (  # of pages and of speech; other names in angle brackets are somebody's
    "a|abbr|article|aside|audio|b|big|blockquote|body|br|button|center|cite|code|dd|del|dfn|div|dl|"
    "dt|em|emphasis|figure|font|footer|form|h[1-6]|head|header|hr|html|i|img|input|ins|kbd|label|"
    "li|link|main|mark|meta|nav|ol|option|p|phoneme|pre|prosody|q|ruby|rp|rt|s|samp|say-as|script|"
    "section|select|small|span|speak|strike|strong|style|sub|sup|svg|table|tbody|td|textarea|tfoot|"
    "th|thead|time|title|tr|tt|u|ul|var|video|voice|wbr|[a-z]{1,12}:[a-z-]{1,20}"
)
_BLOCK = re.compile(
    r"\s?</?(?:br|p|li|div|h[1-6]|tr|td|th|ul|ol)(?:\s[^<>]{0,200})?/?>", re.IGNORECASE
)
_CODE = re.compile(r"`{1,2}([^`\n]{1,200})`{1,2}")
_TAG = re.compile(rf"</?(?:{_TAGS})(?:\s[^<>]{{0,200}})?/?>", re.IGNORECASE)
_NAMED = re.compile(r"</?([A-Za-z][\w.-]{0,40})/?>")  # "<anna> hello"
_NOTE = re.compile(r"(?<=[\w.,;!?])\[[0-9]{1,3}\]")
_GREEK = re.compile(r"(?<![\u0370-\u03ff])[\u0370-\u03ff](?![\u0370-\u03ff])")
_EITHER = re.compile(
    r"\b(he/she|she/he|his/her|him/her|her/his|yes/no|true/false|his/hers)\b|(?<!\w)s/he\b",
    re.IGNORECASE,
)
_LOOSE = re.compile(r"(?<![A-Za-z0-9])-+|-+(?![A-Za-z0-9])")
_DIGITS = re.compile(r"[0-9]+")  # that were written as other signs
_NEVER = re.compile(r"[^A-Za-z0-9 ,.;:?!'\n-]")
_COMMAS = re.compile(r"\s*,(?:\s*,)+")
_BEFORE = re.compile(r"\s+(?=[,.;:?!])")
_DOUBLED = re.compile(r"[,;:]\s*(?=[.?!;:])|(?<=[.?!:;])\s*[,;](?=\s|$)|^\s*[,;:.]+\s*")
_REPEATED = re.compile(r"([?!])[?!]+|(?<=\.)\.+")
_SPACES = re.compile(r"\s+")


def foreign_alphabets(text: str) -> tuple[str, ...]:
    """Alphabets of words that are not in Latin letters: "Cyrillic", "Cjk"."""
    found: dict[str, None] = {}
    for mark in set(_GREEK.sub("", text)):
        if mark.isalpha() and ord(mark) > 0x24F:
            name = unicodedata.name(mark, "").split(" ")[0]
            if name not in ("LATIN", "", "MICRO", "MODIFIER", "FEMININE", "MASCULINE",
                            "FULLWIDTH", "MATHEMATICAL", "SCRIPT", "DOUBLE-STRUCK", "OHM",
                            "KELVIN", "ANGSTROM"):  # fmt: skip
                found[name.capitalize()] = None
    return tuple(sorted(found))


def layout(text: str, first: bool) -> str:
    """Lists and lines. `first`: the text begins a line."""
    text = _BLOCK.sub("\n", text)
    if "\n" not in text and not first:
        return text
    lead = "" if first else "\x00"
    text = lead + text.replace("\r\n", "\n").replace("\r", "\n")
    text = _BREAKS.sub(r"\1.\n", text)
    text = _LINE.sub(r"\1.\n", text)
    text = _BULLET.sub(r"\1", text)
    text = _ITEM.sub(r"\1\2. ", text)
    text = _NUMERAL.sub(lambda m: f"{m[1]}{cardinal(str(roman_value(m[2]))).capitalize()}. ", text)
    return text.removeprefix(lead)


def plain_marks(text: str) -> str:
    """Signs as words or pauses; letters without accents; the rest left out."""
    text = _CODE.sub(r"\1", text).translate(_QUOTES)
    text = _NAMED.sub(r"\1, ", _TAG.sub("", text))
    text = _NOTE.sub("", text)
    text = _GREEK.sub(_say_greek, text)
    text = _ELLIPSIS.sub(_pause, text)
    text = _DASHES.sub(", ", text)
    text = _EITHER.sub(_say_either, text)
    text = _SLASH.sub(lambda match: ", " if match[1] and match[2] else " ", text)
    text = _OPEN.sub(", ", text)
    text = _CLOSE.sub(lambda match: match["mark"] or ",", text)
    text = "".join(map(_plain, text))
    text = _DIGITS.sub(lambda match: f" {spelled(match[0])} ", _NEVER.sub(" ", text))
    return _tidy(_apostrophes(text))


def _say_either(match: re.Match[str]) -> str:
    first, _, second = match[0].partition("/")
    return f"{first if len(first) > 1 else first + 'he'} or {second}"


def _apostrophes(text: str) -> str:
    """Without single quotation marks, with the apostrophes of words."""
    kept = {match.start() for match in _GENITIVE.finditer(text)}
    return "".join(
        mark for place, mark in enumerate(text) if mark != "'" or place in kept
    ) if "'" in text else text  # fmt: skip


def _pause(match: re.Match[str]) -> str:
    ends = match["next"] is not None
    return f"{'.' if ends else ','}{match['space'] or ' '}{match['next'] or ''}"


def _plain(mark: str) -> str:
    if mark.isascii():
        return _SAID.get(mark, mark)
    if mark in _SAID or mark in _LATIN:
        return _SAID.get(mark) or _LATIN[mark]
    if mark in "–−‑‐":
        return "-"
    plain = unicodedata.normalize("NFKD", mark)
    latin = "".join(each for each in plain if each.isascii())
    if latin:
        return latin
    return " " if not unicodedata.combining(mark) and unicodedata.category(mark) != "Cf" else ""


def _say_greek(match: re.Match[str]) -> str:
    name = unicodedata.name(match[0], "")
    return f" {name.split('LETTER ')[1].split(' ')[0].lower()} " if "LETTER " in name else " "


def _tidy(text: str) -> str:
    text = _SPACES.sub(" ", _LOOSE.sub(" ", text))
    text = _COMMAS.sub(",", text)
    text = _BEFORE.sub("", text)
    text = _REPEATED.sub(lambda match: match[1] or "", text)
    text = _DOUBLED.sub(
        lambda match: " " if match[0][-1:].isspace() and match.start() else "", text
    )
    return re.sub(r"(?<=[,;:?!])(?=[A-Za-z])|(?<=[a-z][.])(?=[A-Z])", " ", text)
