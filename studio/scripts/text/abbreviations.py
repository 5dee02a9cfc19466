"""Expands English abbreviations that are unambiguous in their context."""

from __future__ import annotations

import re

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


def expand(text: str) -> str:
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
