"""Estimates how long requests wait for a slot, from the work ahead of them.

What is left of a request is its tokens times the frames that a token took lately, less what was
delivered. Running requests free their slots in that order, and those that wait take the first that
is free. Loop and callers both ask; what is learnt is two floats.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from heapq import heapify, heappop, heappush
from typing import Final

from engine.requests.sequence import Sequence
from engine.types import FRAME_SECONDS

TOKEN_FRAMES: Final = 4.0  # of a text token, before any was measured
SHARE: Final = 0.1  # of a new measurement
MOST_OVERHEAD: Final = 3.0  # more is a request that waited for its text
LEAST_FRAMES: Final = 5.0  # that are left of a request which is longer than expected


class WaitEstimate:
    """Frames of a token, and steps' time that a frame takes, as moving averages.

    A frame takes longer than a step: prompts of others, and the time to the last chunk.
    """

    def __init__(self) -> None:
        self._token_frames = TOKEN_FRAMES
        self._measured = 0  # requests
        self._overhead = 1.0

    def record(self, tokens: int, frames: int, seconds: float, step: float) -> None:
        """A request of `tokens` made `frames` while it held its slot for `seconds`.

        `step`: seconds of a step at its end.
        """
        if not frames or not step:
            return
        share = max(SHARE, 1 / (1 + self._measured))  # the first ones are averaged
        self._measured += 1
        self._token_frames += share * (frames / max(1, tokens) - self._token_frames)
        self._overhead += share * (min(MOST_OVERHEAD, seconds / frames / step) - self._overhead)

    def starts(
        self, running: Iterable[Sequence], waiting: Iterable[Sequence], slots: int, step: float
    ) -> Iterator[float]:
        """Seconds until each that waits gets one of `slots`, and until one more would.

        `step`: seconds of a step with all slots in use; 0 if nothing was measured.
        """
        pace = step * max(1.0, self._overhead) or FRAME_SECONDS
        free = [pace * self._left(sequence) for sequence in running]
        free += [0.0] * (slots - len(free))
        heapify(free)
        while len(free) > max(1, slots):  # more run than the slots that are given again
            heappop(free)
        for sequence in waiting:
            start = heappop(free)
            yield start
            heappush(free, start + pace * self._left(sequence))
        yield free[0]

    def _left(self, sequence: Sequence) -> float:
        """Frames that are still to be generated."""
        expected = sequence.token_count * self._token_frames
        if sequence.ignore_end:
            expected = sequence.max_frames
        return max(LEAST_FRAMES, min(expected, sequence.max_frames) - sequence.delivered)
