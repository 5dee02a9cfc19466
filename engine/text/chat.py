"""Shorthand of messages between people: "gr8", "b4", "lmk", ":-)". Smileys are not said."""

from __future__ import annotations

import re

from engine.text.rules import Rule, rewritten

_FIGURED = {  # words written with figures
    "b4": "before", "gr8": "great", "m8": "mate", "l8r": "later", "l8": "late", "w8": "wait",
    "h8": "hate", "2moro": "tomorrow", "2day": "today", "2nite": "tonight", "4ever": "forever",
    "4eva": "forever",
}  # fmt: skip
_SHORT = {  # in small letters: "NP" and "TY" are others
    "lmk": "let me know", "ttyl": "talk to you later", "tmrw": "tomorrow", "tmr": "tomorrow",
    "np": "no problem", "ty": "thank you", "ur": "your", "nvm": "never mind", "ofc": "of course",
    "pls": "please", "afaik": "as far as I know", "iirc": "if I recall correctly",
    "fwiw": "for what it's worth", "wyd": "what are you doing", "jk": "just kidding",
    "mtg": "meeting", "w/e": "whatever",
}  # fmt: skip
_NAMES = {"ur", "ty", "jk", "tmr"}  # with a capital
SMALL = frozenset(word for word in _SHORT if word.isalpha())
_SHOUTED = ("LMK", "TTYL", "AFAIK", "IIRC", "FWIW")  # that are nothing else
_ALONE = r"(?<![\w.&/'’@#-])"
_SMILEY = re.compile(r"(?<!\S)(?:<3|[:;]-?[)(DPp]|[:;]-[/|\\oO*]|xD)(?!\S)")
_MAY_BE = "late|there|back|home|here|ok|okay|able|good|nice|fun|like|ready|done|sure|careful|happy"

_RULES: tuple[Rule, ...] = (
    (
        re.compile(r"(?<=\b[Ii] )(?:<3(?=\s(?:u|you|it|this|my|the|your)\b)|❤\ufe0f?(?=\s\w))"),
        lambda m: "love",
    ),
    (_SMILEY, lambda m: ""),
    (re.compile(r"(?<!\S)(?:RE|FW):(?=\s)"), lambda m: {"R": "Re:", "F": "Forward:"}[m[0][0]]),
    (re.compile(r"\b([Pp])ls\.(?=\s[a-z])"), lambda m: f"{m[1]}lease"),
    (  # no road M8, no postcode W8
        re.compile(
            rf"(?<![\w-])({'|'.join(_FIGURED)}|G[rR]8|L8[rR]|2(?:Moro|Day|Nite)|4Ever)(?![\w-])"
        ),
        lambda m: _FIGURED[m[1].lower()],
    ),
    (
        re.compile(
            rf"{_ALONE}({'|'.join([*_SHORT, *map(str.capitalize, SMALL - _NAMES), *_SHOUTED])})"
            r"(?![\w/'’@-]|\.\w)"
        ),
        lambda m: _capital(m[1], _SHORT[m[1].lower()]),
    ),
    (re.compile(rf"{_ALONE}r(?=\s(?:u|you)(?![\w'’]))"), lambda m: "are"),
    (re.compile(rf"{_ALONE}c(?=\s(?:u|you)(?![\w'’]))"), lambda m: "see"),
    (re.compile(rf"{_ALONE}b(?=\s(?:{_MAY_BE}|l8)(?![\w'’]))"), lambda m: "be"),
    (re.compile(rf"{_ALONE}rn(?=\s?(?:[?!,.;]|$))"), lambda m: "right now"),
    (re.compile(r"(?<![\w.&/'’-])u(?![\w.&/'’-])(?!\s?[=<>+×*/])"), lambda m: "you"),
)
_ANY = re.compile(rf"[0-9:;<❤]|\b[urcb]\b|\b(?:xD|rn|w/e|{'|'.join(SMALL)})\b", re.IGNORECASE)


def chat(text: str) -> str:
    return rewritten(text, _RULES, _ANY)


def has_words(text: str) -> bool:
    """Whether anything in a text is said: letters or figures, other than those of smileys."""
    return any(map(str.isalnum, _SMILEY.sub("", text)))


def _capital(written: str, said: str) -> str:
    return said[0].upper() + said[1:] if written.istitle() else said
