"""The audio of a cue by position, read from its file as it is needed.

A looped sound goes on from its beginning, with its end faded into it; another ends, faded out.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

import numpy as np
import soundfile
from numpy.typing import NDArray

from engine import SAMPLE_RATE, InvalidAudio

Samples = NDArray[np.float64]  # 1.0 is full scale
CROSSFADE: Final = round(1.5 * SAMPLE_RATE)  # samples, or a quarter of a shorter sound
SHORTEST_LOOP: Final = SAMPLE_RATE // 4  # a project file may hold one sample, read over and over
_GONE = "The sound of this music is gone. Upload it again."


class Reel:
    """`fade_out`: samples in which a sound that is not looped ends."""

    def __init__(self, path: Path, loop: bool, fade_out: int = 0) -> None:
        try:
            self._file: Any = soundfile.SoundFile(path)
        except (OSError, RuntimeError) as error:
            raise InvalidAudio(_GONE) from error
        self._samples = int(self._file.frames)
        self._cross = min(CROSSFADE, self._samples // 4)
        loop = loop and self._samples >= SHORTEST_LOOP
        self._period = self._samples - self._cross if loop else 0
        self._fade_out = min(fade_out, self._samples)
        self._at = 0  # where the file is read next

    def read(self, start: int, count: int) -> Samples:
        """`count` samples from `start` on; silence after the end. Raises InvalidAudio."""
        if self._period <= 0:
            return self._ending(start, count)
        parts: list[Samples] = []
        while count > 0:
            turn, place = divmod(start, self._period)
            crossed = turn > 0 and place < self._cross
            until = self._cross if crossed else self._period
            size = min(count, until - place)
            part = self._from_file(place, size)
            if crossed:
                coming = np.sin(np.arange(place, place + size) / self._cross * (np.pi / 2))
                going = np.sqrt(1 - np.square(coming))
                part = part * coming + self._from_file(self._period + place, size) * going
            parts.append(part)
            start, count = start + size, count - size
        return np.concatenate(parts) if parts else np.zeros(0)

    def _ending(self, start: int, count: int) -> Samples:
        read = self._from_file(start, min(count, max(0, self._samples - start)))
        if self._fade_out:
            rest = self._samples - np.arange(start, start + len(read))
            read = read * eased(rest / self._fade_out)
        return np.concatenate((read, np.zeros(count - len(read))))

    def _from_file(self, start: int, count: int) -> Samples:
        if count <= 0:
            return np.zeros(0)
        try:
            if start != self._at:
                self._file.seek(start)
            pcm = self._file.read(count, dtype="int16", always_2d=True)[:, 0]
        except (OSError, RuntimeError) as error:
            raise InvalidAudio(_GONE) from error
        self._at = start + len(pcm)
        samples: Samples = pcm / 32768.0
        return (
            samples
            if len(samples) == count
            else np.concatenate((samples, np.zeros(count - len(samples))))
        )


def eased(share: Samples) -> Samples:
    """A fade's gain: 0 at 0, 1 from 1 on, without a corner."""
    gain: Samples = np.square(np.sin(np.clip(share, 0.0, 1.0) * (np.pi / 2)))
    return gain
