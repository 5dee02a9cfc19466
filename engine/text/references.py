"""References to books, laws, verses and episodes, written out so that the other rules know them.

"Matt. 5:3", "§§ 4-6", "p. xii", "S02E05". Knows no numbers' names: figures stay figures here.
"""

from __future__ import annotations

import re

from engine.text.abbreviations import COUNTED, roman_value
from engine.text.letters import letter_names
from engine.text.rules import Rule

_BOOKS = {
    "Gen": "Genesis", "Exod": "Exodus", "Ex": "Exodus", "Jn": "John",
    "Lev": "Leviticus", "Deut": "Deuteronomy", "Ps": "Psalm",
    "Prov": "Proverbs", "Isa": "Isaiah", "Jer": "Jeremiah", "Ezek": "Ezekiel", "Dan": "Daniel",
    "Matt": "Matthew", "Rom": "Romans", "Gal": "Galatians", "Eph": "Ephesians",
    "Phil": "Philippians", "Col": "Colossians", "Heb": "Hebrews", "Rev": "Revelation",
}  # fmt: skip
_PROCEDURES = {"Civ": "Civil", "Crim": "Criminal", "App": "Appellate", "Bankr": "Bankruptcy"}
_NUMBERED = {  # "1 Cor. 13"
    "Cor": "Corinthians", "Sam": "Samuel", "Kgs": "Kings", "Chron": "Chronicles",
    "Chr": "Chronicles", "Thess": "Thessalonians", "Tim": "Timothy", "Pet": "Peter", "Jn": "John",
}  # fmt: skip
_NUMBERED_BOOK = "|".join(sorted({*_NUMBERED, *_NUMBERED.values()}, key=len, reverse=True))


def _say_pages(match: re.Match[str]) -> str:
    first, last = (str(roman_value(part.upper())) if part else "" for part in match.groups()[1:])
    return f"{match[1]} {first}{f' to {last}' if last else ''}"


def _say_item(match: re.Match[str]) -> str:
    """ "(a) one", "b) two"; no end of brackets that were opened before."""
    opened = match.string[: match.start()].count("(") > match.string[: match.start()].count(")")
    return match[0] if opened and not match[1] else f"{letter_names(match[2])},"


REFERENCES: tuple[Rule, ...] = (
    (re.compile(r"(?<=[a-z])\((e?s)\)"), lambda m: m[1]),
    (re.compile(r"(?<!\S)(\(?)([a-hj-z])\)(?=\s\S)"), _say_item),
    (re.compile(r"\bpop\.(?=\sof\b)"), lambda m: "population"),
    (re.compile(r"(?<![\w.])c\.\s?(?=[£$€][0-9])"), lambda m: "circa "),
    (re.compile(r"\b([Nn])o\.(?=:\s?[0-9+(]|\s(?:is|was)\b)"), lambda m: f"{m[1]}umber"),
    (  # notes
        re.compile(r"(?:(?<=[a-z]{2})|(?<=[.,;:!?\"”]))\[[1-9][0-9]{0,2}(?:[,–-]\s?[0-9]{1,3}){0,4}\](?!\.[a-z])"),
        lambda m: "",
    ),
    (
        re.compile(rf"\b({'|'.join(_BOOKS)})\.?\s(?=[0-9]{{1,3}}:[0-9])"),
        lambda m: f"{_BOOKS[m[1]]} ",
    ),
    (re.compile(r"\b([Ee])p(s?)\.\s?(?=[0-9IVX])"), lambda m: f"{m[1]}pisode{m[2]} "),
    (
        re.compile(r"\b[Ss]0?([0-9]{1,2})\s?[Ee]0?([0-9]{1,2})\b"),
        lambda m: f"season {m[1]} episode {m[2]}",
    ),
    (
        re.compile(r"\b(Rm|Apt|[Ff]igs?|[Vv]ols?|Jct|Bldg|Ch|[Pp]g|Eq)\s(?=[0-9])"),
        lambda m: f"{m[1]}. ",
    ),
    (
        re.compile(r"(?<![\w.])([KD])\.\s(?=[0-9]{2,4}(?!\w))"),  # Mozart's, Schubert's
        lambda m: f"{letter_names(m[1])} ",
    ),
    (
        re.compile(r"\b[Cc]at\.\s(?=[1-5](?:\s(?:storm|hurricane)|[,;)]|\.?\s?$))"),
        lambda m: "category ",
    ),
    (re.compile(r"\bed\.\s(?=[A-Z])"), lambda m: "edited by "),
    (re.compile(r"\bSc\.\s(?=[0-9ivxIVX])"), lambda m: "Scene "),
    (re.compile(r"\b[Nn]r\.\s?(?=[0-9])"), lambda m: "number "),
    (
        re.compile(r"\bISSN:?\s([0-9]{4})-([0-9]{3}[0-9X])(?!\w)"),
        lambda m: f"{letter_names('ISSN')} {' '.join(m[1])}, {' '.join(m[2])}",
    ),
    (re.compile(r"(?<=[0-9])ff\.?(?!\w)"), lambda m: " and following"),
    (re.compile(r"\b(Eqs?|Refs?|Figs?)\.\s[(\[]([0-9]{1,3})[)\]](?!\s?[-–])"),
     lambda m: f"{m[1]}. {m[2]}"),
    (re.compile(r"(?<![\w.,-])((?:19|20)[0-9]{2})([a-d])(?=[,;).])"),
     lambda m: f"{m[1]}, {letter_names(m[2])}"),
    (re.compile(r"\bApp\.\s(?=[A-Z0-9](?!\w))"), lambda m: "Appendix "),
    (re.compile(r"(?<=[a-z] )No\s(?=[0-9])"), lambda m: "number "),
    (  # flat 2ab
        re.compile(r"(?<![\w.,])([0-9]{1,3})([a-d]{2})(?![\w'’-])"),
        lambda m: f"{m[1]} {letter_names(m[2])}",
    ),
    (re.compile(r"§§\s?"), lambda m: "sections "),
    (
        re.compile(r"\bFed\.\sR\.\s(Civ|Crim|App|Bankr)\.\sP\."),
        lambda m: f"Federal Rule of {_PROCEDURES[m[1]]} Procedure",
    ),
    (
        re.compile(
            rf"\b((?i:{COUNTED})\.?)\s([ivx]{{2,5}}|[iv](?=[,.;:)]|\s*$))(?![\w'’-])"
        ),
        lambda m: f"{m[1]} {m[2].upper()}",
    ),
    (
        re.compile(r"\b(pp?\.|pages?)\s([ivxl]{1,6})(?:\s?[-–]\s?([ivxl]{1,6}))?(?![\w'’-])"),
        _say_pages,
    ),
    (
        re.compile(r"(?<!\w)\((i{1,3}|i?v|vi{1,3}|ix)\)"),
        lambda m: f"({roman_value(m[1].upper())})",
    ),
    (
        re.compile(rf"(?<![\w.,])([123])\s({_NUMBERED_BOOK})\b\.?(?=\s[0-9]{{1,3}}\b)"),
        lambda m: f"{('First', 'Second', 'Third')[int(m[1]) - 1]} {_NUMBERED.get(m[2], m[2])}",
    ),
    (  # section H.3.10
        re.compile(r"(?<![\w.])([A-Z])((?:\.[0-9]{1,3}){1,3})(?!\w|\.[0-9])"),
        lambda m: letter_names(m[1]) + m[2].replace(".", " point "),
    ),
)  # fmt: skip
