"""How many of a CPU's cores the codec gets beside a talker's steps, and these beside it.

A kernel gains little from its last threads, so two kernels side by side, each on a part of the
cores, can take less time than one after the other on all of them. That is told from what both were
timed at. Knows numbers, no kernels.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import ClassVar, NamedTuple

import numpy as np

ROWS = 4  # of the larger steps that are timed
SINGLE = 2.0  # times as long as one of several frames a frame takes that is a chunk of its own
TALKER_PART = 0.4  # of a step, after the frame's codes are known
PAYS = 0.95  # of the time one after the other; a smaller gain may be chance


class FrameTimes(NamedTuple):
    """Seconds by threads, up to as many as each has."""

    steps: Mapping[int, Mapping[int, float]]  # of steps, by rows
    codec: Mapping[int, float]  # of a frame in the codec

    @property
    def known(self) -> bool:
        """Whether all of it was timed while nothing else had the cores."""
        return math.inf not in self.note().values()

    def note(self) -> dict[str, float]:
        """As it is kept."""
        steps = {f"step {n} {t}": s for n, found in self.steps.items() for t, s in found.items()}
        return steps | {f"codec {threads}": seconds for threads, seconds in self.codec.items()}

    @classmethod
    def of_note(cls, note: Mapping[str, float]) -> FrameTimes | None:
        """None: it is no such note."""
        steps: dict[int, dict[int, float]] = {}
        codec: dict[int, float] = {}
        for name, seconds in note.items():
            match name.split():
                case ["step", rows, threads] if rows.isdecimal() and threads.isdecimal():
                    steps.setdefault(int(rows), {})[int(threads)] = seconds
                case ["codec", threads] if threads.isdecimal():
                    codec[int(threads)] = seconds
                case _:
                    return None
        return cls(steps, codec) if codec and 1 in steps else None


class CoreShares:
    """Of one talker. `cores`: that it shares with the codec."""

    forced: ClassVar[int | None] = None  # the codec's threads, for measurements

    def __init__(self, cores: int, times: FrameTimes) -> None:
        self.cores, self.times = cores, times
        self._found: dict[tuple[int, bool], int] = {}  # by rows, and whether for a first chunk

    def codec(self, rows: int, first: bool = False) -> int:
        """The codec's threads beside a step of so many rows; 0: the step waits for it. `first`: it
        waits for it at its end, since a listener does."""
        if self.forced is not None:
            return min(self.forced, self.cores - 1)
        if (rows, first) not in self._found:
            self._found[rows, first] = self._choose(rows, first)
        return self._found[rows, first]

    def __str__(self) -> str:
        """What was timed in ms, and what was chosen, in one line."""
        steps = "; ".join(f"step of {rows} {_table(t)}" for rows, t in self.times.steps.items())
        shares = {rows: self.codec(rows) for rows in (1, 2, 4, 8)}
        return (
            f"{self.cores} cores; {steps}; codec, a frame {_table(self.times.codec)}; "
            f"codec's threads beside rows: {shares}; expected ms: "
            + ", ".join(f"{rows}: {1e3 * self.seconds(rows):.1f}" for rows in shares)
        )

    def seconds(self, rows: int) -> float:
        """A step and as many frames in the codec, of which the slower one counts if they run side
        by side."""
        threads = self.codec(rows)
        return self._beside(rows, threads) if threads else self._in_turn(rows)

    def step_seconds(self, rows: int, threads: int) -> float:
        """A step alone, on so many threads."""
        few, *more = sorted(self.times.steps)
        first = _at(self.times.steps[few], threads)
        if not more:
            return first
        last = _at(self.times.steps[more[-1]], threads)
        return max(0.0, first + (last - first) * (rows - few) / (more[-1] - few))

    def codec_seconds(self, rows: int, threads: int) -> float:
        """A frame of each row in the codec."""
        return rows * _at(self.times.codec, threads)

    def _choose(self, rows: int, first: bool) -> int:
        step, codec = max(self.times.steps[1]), max(self.times.codec)
        if step + codec <= self.cores:
            return codec
        if len(self.times.codec) == len(self.times.steps[1]) == 1:  # not tried
            return 0
        counts = range(1, min(codec, self.cores - 1) + 1)
        best = min(counts, key=lambda threads: self._beside(rows, threads), default=0)
        if not best or self._beside(rows, best) >= PAYS * self._in_turn(rows):
            return 0
        return min(counts, key=lambda threads: self._first(rows, threads)) if first else best

    def _beside(self, rows: int, threads: int) -> float:
        step = self.step_seconds(rows, self.cores - threads)
        return max(step, self.codec_seconds(rows, threads))

    def _first(self, rows: int, threads: int) -> float:
        """The part of a step that runs beside a first chunk, and that chunk."""
        step = TALKER_PART * self.step_seconds(rows, self.cores - threads)
        return max(step, SINGLE * self.codec_seconds(1, threads))

    def _in_turn(self, rows: int) -> float:
        return self.step_seconds(rows, self.cores) + self.codec_seconds(rows, self.cores)


def _at(seconds: Mapping[int, float], threads: int) -> float:
    """Between the counts that were timed, on a straight line."""
    counts = sorted(seconds)
    return float(np.interp(threads, counts, [seconds[count] for count in counts]))


def _table(seconds: Mapping[int, float]) -> str:
    return " ".join(f"{threads}:{1e3 * each:.1f}" for threads, each in sorted(seconds.items()))
