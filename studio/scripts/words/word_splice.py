"""Some words of a line taken from another take of it, joined where both are quiet.

The joints are looked for between words, at the chosen ones and up to WIDER words around them: the
quieter, the less a joint is heard. Knows no engine and no store.
"""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np

from engine import SAMPLE_RATE, InvalidText, Pcm
from studio.scripts.words.line_words import LineWord, line_words, word_at

WIDER: Final = 2  # words that are taken along on either side, where that makes a quieter joint
COST: Final = 9.0  # dB by which a joint must be quieter for each word that is taken along
AROUND: Final = round(0.06 * SAMPLE_RATE)  # samples into the words beside a joint
WINDOW: Final = round(0.01 * SAMPLE_RATE)  # of loudness
FADE: Final = round(0.008 * SAMPLE_RATE)
SMOOTH: Final = -30.0  # dB below the speech: a joint that nobody hears
NONE: Final = -60.0  # at the line's beginning and end: no joint, but not at the cost of every word


class Spliced(NamedTuple):
    """`words`: what was exchanged. `joint`: the loudest joint, in dB relative to the speech."""

    pcm: Pcm
    words: str
    joint: float


class _Joint(NamedTuple):
    """A cut before a word, in both takes."""

    place: int
    old: int
    new: int
    level: float


def splice(text: str, old: Pcm, new: Pcm, start: int, stop: int) -> Spliced:
    """`old`, with the words in characters [start, stop) of the text from `new`.

    Raises InvalidText where the words cannot be told apart.
    """
    mine, theirs = line_words(text, old), line_words(text, new)
    if not mine or len(mine) != len(theirs):
        raise InvalidText("The words of this line cannot be told apart. Regenerate all of it.")
    first = word_at(mine, start)
    last = max(first, word_at(mine, stop - 1))
    level = _level(old)
    before = _best(old, new, mine, theirs, range(first, max(-1, first - WIDER - 1), -1))
    after = _best(old, new, mine, theirs, range(last + 1, min(len(mine), last + 1 + WIDER) + 1))
    piece = _as_loud(new[before.new : after.new], _level(new), level)
    joined = _crossfaded(old[: before.old], piece, old[after.old :])
    words = text[mine[before.place].start : mine[after.place - 1].stop]
    return Spliced(joined, words, max(before.level, after.level))


def _best(
    old: Pcm, new: Pcm, mine: list[LineWord], theirs: list[LineWord], places: range
) -> _Joint:
    """The quietest joint before one of these words; each further one must be worth it."""
    found = [_joint(old, new, mine, theirs, place) for place in places]
    return min(found, key=lambda each: each.level + COST * abs(each.place - places[0]))


def _joint(old: Pcm, new: Pcm, mine: list[LineWord], theirs: list[LineWord], place: int) -> _Joint:
    """The place where the sounds are joined, and the loudness there; both ends are silent."""
    if place == 0:
        return _Joint(place, 0, 0, NONE)
    if place == len(mine):
        return _Joint(place, len(old), len(new), NONE)
    (at, one), (there, two) = _quietest(old, mine, place), _quietest(new, theirs, place)
    return _Joint(place, at, there, max(one, two))


def _quietest(pcm: Pcm, words: list[LineWord], place: int) -> tuple[int, float]:
    """The quietest moment between a word and the one before it, and its level in dB relative to
    the speech."""
    before, word = words[place - 1], words[place]
    start = max((before.begins + before.ends) // 2, before.ends - AROUND)
    stop = min((word.begins + word.ends) // 2, word.begins + AROUND)
    moments = range(start, max(start + 1, stop), WINDOW // 2)
    levels = [_level(pcm[max(0, at - WINDOW // 2) : at + WINDOW // 2]) for at in moments]
    quietest = int(np.argmin(levels))
    return moments[quietest], 20 * float(np.log10(levels[quietest] / _level(pcm)))


def _level(pcm: Pcm) -> float:
    """The level, at least that of one quantisation step, so that it has a logarithm."""
    if not len(pcm):
        return 1.0
    return max(1.0, float(np.sqrt(np.mean(pcm.astype(np.float64) ** 2))))


def _as_loud(pcm: Pcm, level: float, wanted: float) -> Pcm:
    gain = float(np.clip(wanted / level, 0.5, 2.0))
    return np.clip(np.round(pcm * gain), -32768, 32767).astype(np.int16)


def _crossfaded(*parts: Pcm) -> Pcm:
    """Join the parts; neighbours overlap for FADE samples where both are that long."""
    whole = parts[0]
    for part in parts[1:]:
        fade = min(FADE, len(whole), len(part))
        rise = np.linspace(0, 1, fade, endpoint=False)
        mixed = whole[len(whole) - fade :] * (1 - rise) + part[:fade] * rise
        whole = np.concatenate(
            [whole[: len(whole) - fade], np.round(mixed).astype(np.int16), part[fade:]]
        )
    return whole
