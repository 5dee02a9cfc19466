"""Whether one more request is admitted, from plain numbers that the scheduler has measured.

The same rule holds beside the loop and, with numbers that have travelled, where the steps run in
another process (engine/remote). What is left of a request is its tokens times the frames that a
token took lately, less what was made, even if it is held back. Running requests free their slots in
that order, and those that wait take the first that is free.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass
from heapq import heapify, heappop, heappush

from engine.config import EngineSettings
from engine.errors import Busy
from engine.requests.sequence import Sequence
from engine.thresholds import LEAST_LEFT
from engine.types import FRAME_SECONDS


@dataclass(frozen=True)
class Admission:
    """What is known about the slots of an engine, or of several together."""

    places: int = 0  # slots of the loaded talkers; 0: none is loaded yet
    slots: int = 1  # streams that can be afforded at the same time
    step: float = 0.0  # seconds of a step with all of them; 0: nothing was measured
    token_frames: float = 0.0  # frames of a text token
    overhead: float = 1.0  # steps' time that a frame takes
    queues: int = 1  # engines, each of which has a queue
    retry: float = 1.0  # seconds, at least, until one who was refused should ask again

    def check(self, new: Sequence, ahead: Iterable[Sequence], settings: EngineSettings) -> None:
        """Raises Busy. `ahead`: the open requests. Files may fill only a share of the queue."""
        ahead = tuple(ahead)
        queue = int(self.queues * settings.max_waiting * (1.0 if new.live else settings.file_share))
        longest = settings.max_wait if new.live else math.inf
        wait = self.expected_wait([each for each in ahead if each.live or not new.live])
        waiting = len(ahead) - (self.places or settings.max_num_seqs)
        if waiting >= queue or wait > longest:
            raise Busy(max(0, waiting), max(self.retry, wait))

    def expected_wait(self, ahead: Collection[Sequence]) -> float:
        """Seconds until one more request gets a slot; 0 while nothing was measured."""
        if not self.step or len(ahead) < self.slots:  # nothing was measured, or a slot is left
            return 0.0
        ordered = sorted(ahead, key=lambda each: (each.turn, each.id))
        running = [each for each in ordered if each.runs]
        waiting = [each for each in ordered if not each.runs]
        *_, last = self.starts(running, waiting)
        return last

    def starts(self, running: Iterable[Sequence], waiting: Iterable[Sequence]) -> Iterator[float]:
        """Seconds until each that waits gets a slot, and until one more would."""
        pace = self.step * max(1.0, self.overhead) or FRAME_SECONDS
        free = [pace * self._left(sequence) for sequence in running]
        free += [0.0] * (self.slots - len(free))
        heapify(free)
        while len(free) > max(1, self.slots):  # more run than the slots that are given again
            heappop(free)
        for sequence in waiting:
            start = heappop(free)
            yield start
            heappush(free, start + pace * self._left(sequence))
        yield free[0]

    def _left(self, sequence: Sequence) -> float:
        """Frames that are still to be generated."""
        expected = sequence.token_count * self.token_frames
        if sequence.ignore_end:
            expected = sequence.max_frames
        made = max(sequence.made, sequence.delivered)
        return max(LEAST_LEFT, min(expected, sequence.max_frames) - made)


def joined(several: Collection[Admission]) -> Admission:
    """The admission of engines that share requests: places add up, the slowest sets the pace."""
    measured = [each for each in several if each.step] or [Admission()]
    return Admission(
        places=sum(each.places for each in several),
        slots=max(1, sum(each.slots for each in several)),
        step=max(each.step for each in measured),
        token_frames=max(each.token_frames for each in measured),
        overhead=max(each.overhead for each in measured),
        queues=max(1, len(several)),
    )
