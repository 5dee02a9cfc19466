"""The words of lines for the page: when each is heard, and which ones a press means.

A page counts characters as JavaScript does, in UTF-16 units.
"""

from __future__ import annotations

from bisect import bisect_left
from functools import lru_cache
from itertools import accumulate
from typing import Any, Final

from engine import InvalidAudio, Message, RequestError
from studio.scripts import LineAudio
from studio.scripts.store import ScriptStore
from studio.scripts.words.line_words import LineWord, line_words
from studio.scripts.words.word_splice import SMOOTH, Spliced
from studio.ui.i18n import inform

JOINED: Final = "Made anew: “{words}”. It is joined in pauses, and the line is locked to it."
TIGHT: Final = (
    "Made anew: “{words}”. It is joined in running speech, {level} dB below it: listen to the "
    "joint. The take before is kept."
)


def words_shown(store: ScriptStore, number: str, line: object) -> list[tuple[int, int, int, int]]:
    """For each word of a line its first character and the one after it, the sample where it
    begins and where it ends. Empty without sound."""
    try:
        opened = store.look(number)
        text = opened.script.line(_number(line)).text
        key = opened.take(_number(line))
        if not key or opened.sounds is None:
            return []
        found = _words(opened.sounds, key, text)
    except (RequestError, InvalidAudio):
        return []
    units = _units(text)
    return [(units[each.start], units[each.stop], each.begins, each.ends) for each in found]


def characters(store: ScriptStore, number: str, press: dict[str, Any]) -> range:
    """The characters of a line's text that a press means."""
    try:
        units = _units(store.look(number).script.line(_number(press.get("line"))).text)
    except RequestError:
        return range(0)
    first, stop = (bisect_left(units, _number(press.get(name))) for name in ("at", "to"))
    return range(first, stop)


def tell_joined(spliced: Spliced) -> None:
    text = JOINED if spliced.joint < SMOOTH else TIGHT
    inform(Message(text, words=spliced.words, level=f"{-spliced.joint:.0f}"))


@lru_cache(maxsize=512)
def _words(sounds: LineAudio, key: str, text: str) -> tuple[LineWord, ...]:
    """A sound never changes under its key."""
    return tuple(line_words(text, sounds.read(key)))


def _units(text: str) -> list[int]:
    """How many units stand before each character, and how many there are."""
    return [0, *accumulate(1 + (ord(each) > 0xFFFF) for each in text)]


def _number(value: object) -> int:
    """A page may send anything; no line has the number -1."""
    return value if isinstance(value, int) and not isinstance(value, bool) else -1
