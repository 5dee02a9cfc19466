"""Words as they are said: digits, money, times and titles spelt out alike in texts and transcripts.

Both ways of saying a thing become one: "and", "o'clock" and the names of currencies are left out
beside numbers, since a recogniser writes "$12.50" whichever way it heard it.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from num2words import num2words

from training.data.text import words_of
from training.voice.words import edit_distances, word_errors

_NUMBER = re.compile(r"\$?(\d+(?:,\d{3})*(?:[.:]\d+)?)(st|nd|rd|th)?\b")
_BARE_TIME = re.compile(r"(?<![\d$.,:])(1[0-2]|[1-9])([0-5]\d)(?![\d%:]|[.,]\d)\b")
_SAID = {
    "mr": "mister",
    "mrs": "missus",
    "dr": "doctor",
    "prof": "professor",
    "st": "saint",
    "ok": "okay",
    "gray": "grey",
    "canceled": "cancelled",
    "traveling": "travelling",
    "traveled": "travelled",
    "labeled": "labelled",
}
_SILENT = {"dollar", "dollars", "cent", "cents", "o'clock", "percent", "and", "oh", "am", "pm"}
YEARS = range(1100, 2100)


def spoken_words(text: str) -> list[str]:
    """The words of a text or transcript; hyphens part words."""
    plain = text.replace("’", "'").replace("-", " ")
    spelt = _NUMBER.sub(lambda match: f" {_spelt(*match.groups())} ", plain)
    words = [_SAID.get(word, word) for word in words_of(spelt.replace("%", " "))]
    words = [word.strip("'") for word in words]
    if spelt == plain and not set(words) & _NAMES_OF_NUMBERS:
        return [word for word in words if word]
    return [word for word in words if word and word not in _SILENT]


def _spelt(digits: str, ordinal: str | None) -> str:
    whole, _, rest = digits.replace(",", "").partition(":" if ":" in digits else ".")
    if ordinal:
        return _words(int(whole), "ordinal")
    year = "," not in digits and not rest and int(whole) in YEARS
    words = _words(int(whole), "year" if year else "cardinal")
    if not rest:
        return words
    return f"{words} {_words(int(rest), 'cardinal') if int(rest) else ''}"


def _words(number: int, way: str) -> str:
    return str(num2words(number, to=way)).replace("-", " ").replace(",", "")


_NAMES_OF_NUMBERS = {_words(number, "cardinal") for number in (*range(20), *range(20, 100, 10))} | {
    "hundred",
    "thousand",
}


def heard_words(spoken: Sequence[str], transcript: str) -> list[str]:
    """The transcript's words, of two readings the one nearer to `said`.

    A recogniser writes the time 5:20 as "520" too, which is a number elsewhere.
    """
    times = _BARE_TIME.sub(r"\1:\2", transcript)
    return min(map(spoken_words, (transcript, times)), key=lambda heard: word_errors(spoken, heard))


def unsaid_end(spoken: Sequence[str], heard: Sequence[str]) -> int:
    """How many of the last words were not heard at all: what the best match leaves over."""
    last = [row[-1] for row in edit_distances(spoken, heard)]
    best = min(last)
    return len(spoken) - max(index for index, value in enumerate(last) if value == best)
