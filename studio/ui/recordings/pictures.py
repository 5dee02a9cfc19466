"""A picture for each check of a recording: its sound from left to right, with the places marked
where something is wrong. SVG in the page's colours. Knows no components.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape
from typing import Final, TypeAlias

import numpy as np

from engine import Recording, RecordingMarks

WIDTH, HEIGHT = 180, 40  # of a picture
BARS: Final = 90  # across a recording
SCALE: Final = 15.0  # seconds across the picture of its length, unless it is longer
DEEP: Final = 60.0  # dB below the loudest at which a level's bar is lowest
MOST_TOLD: Final = 3  # places in words
Span: TypeAlias = tuple[float, float]  # seconds


def length(marks: RecordingMarks, recording: Recording, best: Span) -> str:
    """Beside the length that is best."""
    whole = max(SCALE, recording.seconds)
    left, right = (round(WIDTH * each / whole, 1) for each in best)
    zone = f'<rect class="best" x="{left}" y="0" width="{right - left:.1f}" height="{HEIGHT}"/>'
    share = recording.seconds / whole
    return _svg(zone + _bars(_sizes(marks, round(BARS * share)), (), recording.seconds, share))


def noise(marks: RecordingMarks, recording: Recording, bad: bool) -> str:
    """Levels in dB, over the line of the noise; where there is nothing else, it is marked."""
    top = float(marks.levels.max())
    line = HEIGHT - _height(1 - (top - marks.floor) / DEEP)
    floor = f'<path class="line" d="M0 {line:.1f}H{WIDTH}"/>'
    return _svg(_levels(marks, recording, marks.pauses if bad else ()) + floor)


def level(marks: RecordingMarks, recording: Recording, bad: bool) -> str:
    """The sound between the bounds at which it is clipped."""
    bounds = f'<path class="line" d="M0 1H{WIDTH}M0 {HEIGHT - 1}H{WIDTH}"/>'
    where = marks.clipped if bad else ()
    return _svg(bounds + _bars(_sizes(marks, BARS), where, recording.seconds))


def room(marks: RecordingMarks, recording: Recording, bad: bool) -> str:
    """Levels in dB; where they fall slowly, they are marked."""
    return _svg(_levels(marks, recording, marks.tails if bad else ()))


def people(marks: RecordingMarks, recording: Recording, bad: bool) -> str:
    """How high each stretch is, over the sound; those of another person are marked."""
    others = marks.others if bad else ()
    pitches = np.log2([each.pitch for each in marks.stretches] or [1.0])
    low, high = float(pitches.min()), float(pitches.max())
    middle, reach = (low + high) / 2, max(1.5, high - low)  # octaves
    dashes = {True: "", False: ""}
    for each, pitch in zip(marks.stretches, pitches, strict=False):
        left, right = (WIDTH * time / recording.seconds for time in (each.start, each.stop))
        y = HEIGHT * (0.5 - 0.8 * (float(pitch) - middle) / reach)
        dashes[each in others] += f"M{left:.1f} {y:.1f}H{max(left + 1, right - 1.5):.1f}"
    kinds = (("pitch", False), ("pitch marked", True))
    lines = "".join(f'<path class="{kind}" d="{dashes[other]}"/>' for kind, other in kinds)
    spans = [(each.start, each.stop) for each in others]
    return _svg(_bars(_sizes(marks, BARS), spans, recording.seconds, faint=True) + lines)


def in_words(places: Iterable[Span]) -> str:
    """The first places, in seconds: 1.2 s, 3.4–4.0 s."""
    every: list[Span] = []
    for start, stop in sorted(places):
        joined = bool(every) and start <= every[-1][1]
        every[-1:] = [(every[-1][0], stop)] if joined else [*every[-1:], (start, stop)]
    words = [
        f"{start:.1f} s" if stop - start < 0.1 else f"{start:.1f}–{stop:.1f} s"
        for start, stop in every[:MOST_TOLD]
    ]
    return ", ".join([*words, *(["…"] if len(every) > MOST_TOLD else [])])


def _svg(drawn: str) -> str:
    return (
        f'<svg class="timbre-picture" viewBox="0 0 {WIDTH} {HEIGHT}" aria-hidden="true">'
        f"{drawn}</svg>"
    )


def _sizes(marks: RecordingMarks, count: int) -> Sequence[float]:
    """How loud each of so many equal parts is, from 0 to 1."""
    levels = 10 ** ((marks.levels - marks.levels.max()) / 20)
    return [
        float(part.max()) if len(part) else 0.0 for part in np.array_split(levels, max(1, count))
    ]


def _bars(
    sizes: Sequence[float],
    marked: Sequence[Span],
    seconds: float,
    share: float = 1.0,
    faint: bool = False,
) -> str:
    """The sound around its middle line, over a share of the width."""
    step = WIDTH * share / len(sizes)
    paths = {True: "", False: ""}
    for place, size in enumerate(sizes):
        high = max(1.0, (HEIGHT - 4) * size)
        begin, end = (seconds * each / len(sizes) for each in (place, place + 1))
        bar = f"M{(place + 0.5) * step:.1f} {(HEIGHT - high) / 2:.1f}v{high:.1f}"
        paths[_meets(marked, begin, end)] += bar
    return _paths(paths, "faint" if faint else "")


def _levels(marks: RecordingMarks, recording: Recording, marked: Sequence[Span]) -> str:
    top, step = float(marks.levels.max()), WIDTH / BARS
    paths = {True: "", False: ""}
    for place, part in enumerate(np.array_split(marks.levels, BARS)):
        size = 1 - (top - float(part.mean())) / DEEP if len(part) else 0.0
        begin, end = (recording.seconds * each / BARS for each in (place, place + 1))
        bar = f"M{(place + 0.5) * step:.1f} {HEIGHT}v-{_height(size):.1f}"
        paths[_meets(marked, begin, end)] += bar
    return _paths(paths)


def _height(size: float) -> float:
    return 1 + (HEIGHT - 3) * min(1.0, max(0.0, size))


def _meets(spans: Sequence[Span], begin: float, end: float) -> bool:
    return any(start < end and stop >= begin for start, stop in spans)


def _paths(paths: dict[bool, str], kind: str = "") -> str:
    plain = f'<path class="{escape(kind)}" d="{paths[False]}"/>'
    return plain + (f'<path class="marked" d="{paths[True]}"/>' if paths[True] else "")
