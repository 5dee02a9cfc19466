"""Words with accents, and acronyms that are words, in spellings that are read as they are said.

A model that was taught English letters reads "café" as "cave". Each spelling here was listened to
(training/experiments); a word that is read well without its accents has none.
"""

from __future__ import annotations

import re
import unicodedata

_SAID = {  # with their accents or without
    "cafe": "caffay", "fiance": "feeonsay", "fiancee": "feeonsay", "deja": "dayzhah", "vu": "voo",
    "souffle": "sooflay", "pinata": "peenyata", "decor": "daycor", "touche": "tooshay",
    "voila": "vwala", "chloe": "chloey", "bronte": "brontay", "andre": "ondray", "nino": "neenyo",
    "senora": "senyora", "brulee": "broolay",
    "unesco": "yoonesco", "covid": "coevid", "nasa": "nassa", "fifa": "feefa",
    "nasdaq": "nazdack", "jpeg": "jay-pegg",
}  # fmt: skip
_ACCENTED = {  # without their accents they are other words, or read well
    "résumé": "rezzoomay", "rosé": "rozay", "exposé": "expozay", "pâté": "pattay",
    "purée": "puree", "entrée": "entree", "matinée": "matinee", "née": "nay",
    "jalapeño": "jalapeno", "josé": "hozay",
}  # fmt: skip
_WORD = re.compile(r"[^\W\d_]{2,30}")
_PLAIN = re.compile(
    rf"(?<![.\w])(?!touches\b)({'|'.join(sorted(_SAID, key=len, reverse=True))})(s?)\b",
    re.IGNORECASE,
)


def accents(text: str) -> str:
    """The text with the accented words that are read wrongly in another spelling."""
    if not text.isascii():
        text = _WORD.sub(_say_accented, unicodedata.normalize("NFC", text))
    return _PLAIN.sub(lambda match: _as(match[1], _SAID[match[1].lower()]) + match[2], text)


def _say_accented(match: re.Match[str]) -> str:
    word = match[0]
    if word.isascii():
        return word
    small = word.lower()
    core, ending = (small[:-1], "s") if small.endswith("s") else (small, "")
    if core in _ACCENTED:
        return _as(word, _ACCENTED[core] + ending)
    plain = _without(small)
    if plain in _SAID or plain.removesuffix("s") in _SAID:
        return _as(word, plain)
    spoken = re.sub(r"(?<=[b-df-hj-np-tv-xz])ée?(?=s?$)", "ay", small).replace("ñ", "ny")
    return word if spoken == small else _as(word, spoken)


def _without(word: str) -> str:
    marks = unicodedata.normalize("NFD", word)
    return "".join(mark for mark in marks if not unicodedata.combining(mark))


def _as(word: str, spoken: str) -> str:
    return spoken[:1].upper() + spoken[1:] if word[:1].isupper() else spoken
