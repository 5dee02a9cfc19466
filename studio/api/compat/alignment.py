"""The times of characters, as ElevenLabs tells them, from the times of words.

A word's time is shared by its letters; a space lasts from the end of a word to the next one.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np

from engine import Pcm
from studio.word_times import word_times


@dataclass(frozen=True)
class Alignment:
    """`edges`: seconds at which characters begin, and at which the last one ends."""

    characters: list[str]
    edges: list[float]

    def seconds(self) -> dict[str, Any]:
        """In seconds, as the HTTP routes send it."""
        return {
            "characters": self.characters,
            "character_start_times_seconds": [round(each, 3) for each in self.edges[:-1]],
            "character_end_times_seconds": [round(each, 3) for each in self.edges[1:]],
        }

    def milliseconds(self) -> dict[str, Any]:
        """In milliseconds, as the WebSocket sends it."""
        edges = [round(1000 * each) for each in self.edges]
        return {
            "chars": self.characters,
            "charStartTimesMs": edges[:-1],
            "charDurationsMs": [stop - start for start, stop in pairwise(edges)],
        }


def align(text: str, pcm: Pcm, speed: float = 1.0) -> Alignment:
    """`pcm`: the speech of the text, before its speed was changed."""
    places, times = [0], [0.0]  # characters whose times are known
    at = 0
    for word, start, stop in word_times(text, pcm):
        at = text.index(word, at)
        places += [at, at + len(word)]
        times += [start, stop]
        at += len(word)
    times = list(np.maximum.accumulate(times))
    places.append(len(text))
    times.append(times[-1])
    # Of two times for one place the later one: the silence before a text is not its first letter's.
    known = dict(zip(places, times, strict=True))
    edges = np.interp(np.arange(len(text) + 1), list(known), list(known.values()))
    return Alignment(list(text), [float(each) / speed for each in edges])
