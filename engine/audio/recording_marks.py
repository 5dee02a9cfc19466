"""Where in a recording its flaws are heard. Knows no pictures and no networks."""

from __future__ import annotations

from dataclasses import dataclass
from typing import SupportsFloat, TypeAlias

import numpy as np
from numpy.typing import NDArray

from engine.audio.recording_quality import (
    AUDIBLE,
    STEP,
    Stretch,
    Values,
    by_height,
    levels_of,
    noise_floor,
    stretches,
)
from engine.audio.reference_audio import Recording
from engine.types import SAMPLE_RATE

Span: TypeAlias = tuple[float, float]  # seconds
_NEAR = 6.0  # dB over the noise up to which there is noise alone
_PAUSE = 8  # steps, the shortest that is shown
_GONE = 45.0  # dB below the loudest
_TAIL = 15  # steps; speech itself dies away sooner


@dataclass(frozen=True, eq=False)
class RecordingMarks:
    """`pauses`: where noise is heard alone; `tails`: where words die away slowly."""

    levels: Values  # dB, of every 10 ms
    floor: float  # dB, of the noise
    pauses: tuple[Span, ...]
    clipped: tuple[Span, ...]
    tails: tuple[Span, ...]
    stretches: tuple[Stretch, ...]
    others: tuple[Stretch, ...]  # those that are not of the person who speaks most


def marks_of(recording: Recording) -> RecordingMarks:
    """All marks of a recording, whether or not they are flaws of it."""
    levels = levels_of(recording.waveform)
    floor = noise_floor(levels)
    spoken = tuple(stretches(recording.waveform))
    return RecordingMarks(
        levels,
        floor,
        _runs(levels <= floor + _NEAR, _PAUSE),
        recording.clipped_at,
        _tails(levels),
        spoken,
        _others(spoken),
    )


def _runs(wanted: NDArray[np.bool_], least: int) -> tuple[Span, ...]:
    edges = np.flatnonzero(np.diff(np.concatenate(([0], wanted.astype(np.int8), [0]))))
    pairs = zip(edges[::2], edges[1::2], strict=True)
    return tuple(_span(start, stop) for start, stop in pairs if stop - start >= least)


def _tails(levels: Values) -> tuple[Span, ...]:
    """Spans in which loud sound dies away: until it is silent, or something is loud again."""
    loud = levels > levels.max() - AUDIBLE
    ends = np.flatnonzero(loud[:-1] & ~loud[1:]) + 1
    heard = levels > levels.max() - _GONE
    found = []
    for start in ends:
        rest = np.flatnonzero(~heard[start:] | loud[start:])
        stop = start + int(rest[0]) if len(rest) else len(levels)
        if stop - start >= _TAIL:
            found.append(_span(start, stop))
    return tuple(found)


def _others(spoken: tuple[Stretch, ...]) -> tuple[Stretch, ...]:
    """The low stretches or the high ones, whichever are fewer: those of another person."""
    low, high = by_height(spoken)
    return tuple(sorted(low if len(low) < len(high) else high))


def _span(start: SupportsFloat, stop: SupportsFloat) -> Span:
    """A span in seconds, from numbers of steps."""
    return float(start) * STEP / SAMPLE_RATE, float(stop) * STEP / SAMPLE_RATE
