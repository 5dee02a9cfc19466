"""Shorthand of messages between people: "gr8", "b4", ":-)", "4ever". Smileys are not said."""

from __future__ import annotations

import re

from engine.text.rules import Rule

_FIGURED = {  # words written with figures
    "b4": "before", "gr8": "great", "m8": "mate", "l8r": "later", "l8": "late", "w8": "wait",
    "h8": "hate", "2moro": "tomorrow", "2day": "today", "2nite": "tonight", "4ever": "forever",
    "4eva": "forever",
}  # fmt: skip

_SMILEY = re.compile(r"(?<!\S)(?:<3|[:;]-?[)(DPp]|[:;]-[/|\\oO*]|xD)(?!\S)")

CHAT: tuple[Rule, ...] = (
    (_SMILEY, lambda m: ""),
    (
        re.compile(rf"(?<![\w-])({'|'.join(_FIGURED)})(?![\w-])", re.IGNORECASE),
        lambda m: _FIGURED[m[1].lower()],
    ),
    (re.compile(r"(?<![\w.&/'’-])r(?=\s(?:u|you)(?![\w'’]))"), lambda m: "are"),
    (re.compile(r"(?<![\w.&/'’-])u(?![\w.&/'’-])(?!\s?[=<>+×*/])"), lambda m: "you"),
)


def has_words(text: str) -> bool:
    """Whether anything in a text is said: letters or figures, other than those of smileys."""
    return any(map(str.isalnum, _SMILEY.sub("", text)))
