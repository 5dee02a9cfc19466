"""Changes the speed of speech without changing its pitch (WSOLA).

Grains of 40 ms are read from the input `speed` times as fast as they are written, each shifted by
at most 12 ms to where it continues the last one best. A `Stretch` is fed pieces and finished once;
its output does not depend on how the input was cut.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from engine import Pcm

GRAIN = 960  # 40 ms at 24 kHz
HOP = GRAIN // 2
REACH = 288  # 12 ms: the longest pitch period of a low voice
_WINDOW = np.hanning(GRAIN + 1)[:GRAIN].astype(np.float32)  # halves sum to one
_TINY = np.float32(1e-3)


class Stretch:
    """Stretches one stream."""

    def __init__(self, speed: float) -> None:
        self._speed = speed
        self._input: NDArray[np.float32] = np.zeros(0, np.float32)
        self._dropped = 0  # input samples that are no longer needed
        self._fed = 0
        self._grains = 0
        self._given = 0
        self._natural = 0  # where the last grain continues in the input
        self._tail: NDArray[np.float32] = np.zeros(HOP, np.float32)

    def feed(self, pcm: Pcm) -> Pcm:
        self._input = np.concatenate([self._input, pcm.astype(np.float32)])
        self._fed += len(pcm)
        return self._lay(until=self._dropped + len(self._input))

    def finish(self) -> Pcm:
        """The rest; the total length is that of the input divided by the speed."""
        length, given = round(self._fed / self._speed), self._given
        padding = GRAIN + 2 * REACH + round(HOP * self._speed) * 2
        self._input = np.concatenate([self._input, np.zeros(padding, np.float32)])
        rest = self._lay(until=self._dropped + len(self._input))
        return rest[: max(0, length - given)]

    def _lay(self, until: int) -> Pcm:
        """Write all grains whose search range is known up to `until`."""
        laid = []
        while self._place() + REACH + GRAIN + HOP <= until and self._natural + HOP <= until:
            laid.append(self._next())
        self._forget()
        out = np.concatenate(laid) if laid else np.zeros(0, np.float32)
        self._given += len(out)
        return np.clip(np.rint(out), -32768, 32767).astype(np.int16)

    def _place(self) -> int:
        """The nominal start of the next grain."""
        return round(self._grains * HOP * self._speed)

    def _next(self) -> NDArray[np.float32]:
        start = self._best(self._place())
        at = start - self._dropped
        grain = self._input[at : at + GRAIN]
        if self._grains == 0:
            self._tail = grain[:HOP] * (1 - _WINDOW[:HOP])  # the first grain starts at full level
        grain = grain * _WINDOW
        out = self._tail + grain[:HOP]
        self._tail = grain[HOP:]
        self._natural, self._grains = start + HOP, self._grains + 1
        return out

    def _best(self, place: int) -> int:
        """The start near `place` that is most similar to the last grain's continuation."""
        if self._grains == 0:
            return place
        low = max(place - REACH, self._dropped)
        at, natural = low - self._dropped, self._natural - self._dropped
        template = self._input[natural : natural + HOP]
        region = self._input[at : at + place + REACH - low + HOP]
        likeness = np.correlate(region, template, "valid")
        squares = np.concatenate([[0], np.cumsum(region.astype(np.float64) ** 2)])
        energy = squares[HOP:] - squares[:-HOP]
        return low + int(np.argmax(likeness / np.sqrt(energy + _TINY)))

    def _forget(self) -> None:
        keep = max(self._dropped, min(self._natural, self._place() - REACH))
        self._input = self._input[keep - self._dropped :]
        self._dropped = keep


def stretch(pcm: Pcm, speed: float) -> Pcm:
    """Stretch a complete waveform."""
    if speed == 1:
        return pcm
    whole = Stretch(speed)
    return np.concatenate([whole.feed(pcm), whole.finish()])
