"""Where each word lies in its speech: the likeliest way through the sounds of its letters.

A hidden Markov model: each sound is two states or three, pauses may be between words. What kind of
sound a frame has is told by a small network (`sound_kinds.npz`, made by training.word_times). Long
speech is followed within a band around the place that its share of letters suggests.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Final

import numpy as np
from numpy.typing import NDArray

from engine import SAMPLE_RATE, Pcm, spoken_form
from studio.word_times.features import HOP, Floats, feature_blocks
from studio.word_times.letter_sounds import KINDS, sounds_of

TOGETHER: Final = 2  # frames of features that are one here
FRAME: Final = TOGETHER * HOP / SAMPLE_RATE  # seconds
NETWORK: Final = Path(__file__).with_name("sound_kinds.npz")
PAUSE: Final = KINDS.index("pause")
VOWEL: Final = KINDS.index("vowel")
# States of a sound, each at least a frame.
_STATES: Final = {VOWEL: 2}
_LEAST: Final = 2
_SKIP: Final = 2.5  # cost of leaving out a sound that may be missing
_LEAVE: Final = 0.6  # cost of a frame more in the last state of a sound, beyond what is usual
_BREAK: Final = 3.0  # cost of a pause between words without a mark
_BAND: Final = 600  # states on either side of the expected one
_KEPT: Final = 16_384  # frames whose choices are in memory: 20 MB for five minutes
_MARKS: Final = '.,;:!?…—–)"”。，！？；：、'


@dataclass(frozen=True, eq=False)
class _Path:
    """The states of a text, laid out in a row: sounds of words, and pauses around them."""

    kinds: NDArray[np.int64]  # [states]
    words: NDArray[np.int64]  # [states] the word of each, -1 in a pause
    stays: Floats  # [states] what a frame more costs; inf where a state has one frame
    firsts: NDArray[np.int64]  # [sounds] the first state of each
    begins: NDArray[np.bool_]  # [states] whether a sound begins with it
    jumps: tuple[tuple[NDArray[np.int64], Floats], ...]  # from where else, at what cost: [sounds]
    ends: tuple[tuple[int, float], ...]  # states that speech may end in, and their costs


def align(words: Sequence[str], pcm: Pcm) -> list[tuple[float, float]] | None:
    """Start and end of each word in seconds; None where the speech is too short for them."""
    path, scores = _path(words), _scores(pcm)
    reached = _viterbi(path, scores)
    if reached is None:
        return None
    at = path.words[reached]
    frames = np.flatnonzero(at >= 0)  # in a word; words come in their order
    numbers = np.arange(len(words))
    first, last = (np.searchsorted(at[frames], numbers, side) for side in ("left", "right"))
    found: list[tuple[float, float]] = []
    for begin, end in zip(first, last, strict=True):
        before = found[-1][1] if found else 0.0
        heard = begin < end
        span = (frames[begin] * FRAME, (frames[end - 1] + 1) * FRAME) if heard else (before, before)
        found.append((float(span[0]), float(span[1])))
    return found


def _path(words: Sequence[str]) -> _Path:
    sounds: list[tuple[int, int, float]] = [(PAUSE, -1, 0.0)]  # kind, word, cost of leaving out
    for number, word in enumerate(words):
        spoken = [each for part in spoken_words(word) for each in sounds_of(part)]
        sounds += [(each.kind, number, _SKIP if each.optional else np.inf) for each in spoken]
        sounds.append((PAUSE, -1, 0.0 if word[-1:] in _MARKS else -_BREAK))
    counts = [_STATES.get(kind, _LEAST) for kind, _, _ in sounds]
    firsts = np.cumsum([0, *counts[:-1]])
    begins = np.zeros(sum(counts), np.bool_)
    begins[firsts] = True
    lasts = firsts + counts - 1
    stays = np.full(sum(counts), np.inf, np.float32)
    stays[lasts] = [0.0 if kind == PAUSE else _LEAVE for kind, _, _ in sounds]
    entering = np.array([-min(sound[2], 0.0) for sound in sounds])  # a pause where no mark is
    skipping = np.array([max(sound[2], 0.0) for sound in sounds])
    jumps: list[tuple[NDArray[np.int64], Floats]] = []
    for over in (1, 2, 3):
        sources = np.maximum(np.arange(len(sounds)) - over - 1, 0)
        costs = np.full(len(sounds), np.inf)
        for target in range(over + 1, len(sounds)):
            costs[target] = skipping[target - over : target].sum() + entering[target]
        jumps.append((lasts[sources].astype(np.int64), costs.astype(np.float32)))
    ends = [(int(lasts[-1]), 0.0)]
    for back in range(2, min(5, len(sounds)) + 1):
        cost = float(skipping[len(sounds) - back + 1 :].sum())
        if np.isfinite(cost):
            ends.append((int(lasts[-back]), cost))
    return _Path(
        np.repeat([sound[0] for sound in sounds], counts),
        np.repeat([sound[1] for sound in sounds], counts),
        stays,
        firsts,
        begins,
        ((np.maximum(firsts - 1, 0), entering.astype(np.float32)), *jumps),
        tuple(ends),
    )


def _viterbi(path: _Path, scores: Floats) -> NDArray[np.int64] | None:
    """[frames] the state of each, on the likeliest way; None if there is none.

    Choices are kept for `_KEPT` frames at a time: those of longer speech are made once more from
    the scores before them, on the way back.
    """
    states, frames = len(path.kinds), len(scores)
    if not frames:
        return None
    bands = _bands(scores, states)
    now = np.full(states, -np.inf, np.float32)
    begins = path.firsts[:2]
    now[begins] = scores[0][path.kinds[begins]]
    firsts, before, came = range(1, frames, _KEPT), [], []
    for first in firsts:
        low, high = bands[first - 1]
        before.append(now[low:high].copy())
        came = _sweep(path, scores, bands, now, first)
    score, state = max((now[state] - cost, state) for state, cost in path.ends)
    if not np.isfinite(score):
        return None
    way = [np.array([state])]
    for number in reversed(range(len(firsts))):
        if number < len(firsts) - 1:
            low, high = bands[firsts[number] - 1]
            now[:] = -np.inf
            now[low:high] = before[number]
            came = _sweep(path, scores, bands, now, firsts[number])
        way.append(_traced(path, came, int(way[-1][-1])))
    return np.concatenate(way)[::-1]


def _sweep(
    path: _Path, scores: Floats, bands: NDArray[np.int64], now: Floats, first: int
) -> list[tuple[int, NDArray[np.int8]]]:
    """Carry the states' scores on by `_KEPT` frames: of each the band's first state, and how each
    of the band was reached."""
    came: list[tuple[int, NDArray[np.int8]]] = []
    for frame in range(first, min(first + _KEPT, len(scores))):
        low, high = bands[frame]
        best, chosen = _step(path, now, low, high)
        came.append((low, chosen))
        earlier, later = bands[frame - 1]
        now[earlier:later] = -np.inf
        now[low:high] = best + scores[frame][path.kinds[low:high]]
    return came


def _step(path: _Path, now: Floats, low: int, high: int) -> tuple[Floats, NDArray[np.int8]]:
    """The best way into each state of the band: its score, and 0 for staying, 1 for the state
    before, 2 and more for jumps."""
    best = now[low:high] - path.stays[low:high]
    chosen = np.zeros(high - low, np.int8)
    before = np.full(high - low, -np.inf, np.float32)
    before[max(0, 1 - low) :] = now[max(low - 1, 0) : high - 1]
    before[path.begins[low:high]] = -np.inf
    better = before > best
    best, chosen = np.where(better, before, best), np.where(better, np.int8(1), chosen)
    first, last = np.searchsorted(path.firsts, (low, high))
    places = path.firsts[first:last] - low
    for number, (sources, costs) in enumerate(path.jumps, 2):
        over = now[sources[first:last]] - costs[first:last]
        better = over > best[places]
        best[places[better]], chosen[places[better]] = over[better], number
    return best, chosen


def _traced(
    path: _Path, came: Sequence[tuple[int, NDArray[np.int8]]], state: int
) -> NDArray[np.int64]:
    """The states before `state`, backwards: one for each frame of `came`."""
    way = []
    for low, chosen in reversed(came):
        how = int(chosen[state - low])
        if how == 1:
            state -= 1
        elif how:
            sound = np.searchsorted(path.firsts, state, side="right") - 1
            state = int(path.jumps[how - 2][0][sound])
        way.append(state)
    return np.array(way)


def _bands(scores: Floats, states: int) -> NDArray[np.int64]:
    """[frames, 2] first and last state beside the one that the share of speech suggests."""
    heard = np.cumsum(scores[:, PAUSE] < 0)
    middle = (heard / max(1, heard[-1]) * states).astype(np.int64)[:, None]
    bands: NDArray[np.int64] = np.clip(middle + np.array([-_BAND, _BAND]), 0, states)
    return bands


def _scores(pcm: Pcm) -> Floats:
    """[frames, kinds + 1] how much likelier each frame makes a kind; HEARD is any but a pause."""
    parts = [np.zeros((0, len(KINDS) + 1), np.float32)]
    return np.concatenate(parts + [_ratios(block) for block in feature_blocks(pcm)])


def _ratios(values: Floats) -> Floats:
    network = _network()
    hidden = np.maximum(values @ network["w1"] + network["b1"], 0)
    logits = hidden @ network["w2"] + network["b2"]
    likely = np.exp(logits - logits.max(1, keepdims=True))
    likely /= likely.sum(1, keepdims=True)
    prior = network["prior"]
    heard = (1 - likely[:, PAUSE]) / (1 - prior[PAUSE])
    ratios = np.concatenate((likely / prior, heard[:, None]), 1)
    scores = np.log(np.maximum(ratios, 1e-4))
    whole = len(scores) // TOGETHER * TOGETHER
    together: Floats = scores[:whole].reshape(-1, TOGETHER, scores.shape[1]).sum(1)
    return together.astype(np.float32)


@lru_cache(maxsize=1)
def _network() -> dict[str, Floats]:
    with np.load(NETWORK, allow_pickle=False) as file:
        return {name: file[name].astype(np.float32) for name in file.files}


def spoken_words(word: str) -> list[str]:
    """A word as it is spoken: figures, signs and capitals as words."""
    plain = word.strip(_MARKS + "(\"“'‘[")
    if plain.isalpha() and not (len(plain) > 1 and plain.isupper()):
        return [plain]
    if not plain.isascii():
        return [plain]
    return spoken_form(plain).split() or [plain]
