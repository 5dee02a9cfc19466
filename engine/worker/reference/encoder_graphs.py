"""Recordings through a network that hears them whole: as it is written, or replayed by size.

For a replay a recording lies at the start of one of a few lengths; what stands behind its end
changes nothing (engine.model.padding), so some are heard side by side. Longer ones are heard as it
is written. Knows no voices.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Sequence
from typing import Protocol

import numpy as np
import torch
from torch import Tensor

from engine.model.padding import NO_PADDING, Padding, RightPadding
from engine.types import FRAME_SAMPLES, SAMPLE_RATE, Waveform
from engine.worker.cuda_graphs import GraphCache, Record, recorder
from engine.worker.state.prompts import to_device

FRAMES = (24, 32, 40, 48, 64, 80, 96, 112, 128, 160, 192, 256)  # of the codec: 2 to 20 seconds
LENGTHS = tuple(frames * FRAME_SAMPLES for frames in FRAMES)
ROWS = (1, 4, 8)  # recordings side by side
MOST = 40 * SAMPLE_RATE  # samples at a time: more take memory, and are no quicker
MARGIN = 1024  # samples behind an end that are looked at: a window, and a few of the mel's hops

Network = Callable[[Tensor, Padding], Tensor]  # waves [B, samples] -> a tensor of B rows


class Hearing(Protocol):
    def __call__(self, audios: Sequence[Waveform]) -> list[Tensor]:
        """What the network makes of each. The next call may write over it."""
        ...

    def warm(self) -> None:
        """The first recording takes libraries half a second more; this was it."""
        ...


def hearing(network: Network, device: torch.device) -> Hearing:
    """What suits the device."""
    record, plain = recorder(device), PlainHearing(network, device)
    return ReplayedHearing(plain, record) if record else plain


class PlainHearing:
    def __init__(self, network: Network, device: torch.device) -> None:
        self.network, self.device = network, device

    def __call__(self, audios: Sequence[Waveform]) -> list[Tensor]:
        waves = (to_device(audio, self.device, torch.float32)[None] for audio in audios)
        return [self.network(wave, NO_PADDING)[0] for wave in waves]

    def warm(self) -> None:
        self([np.zeros(SAMPLE_RATE, np.float32)])


class ReplayedHearing:
    def __init__(self, plain: PlainHearing, record: Record) -> None:
        self._plain, self._replays = plain, GraphCache(record)
        self._waves = torch.zeros(MOST, device=plain.device)
        self._samples = torch.ones(ROWS[-1], dtype=torch.long, device=plain.device)

    def __call__(self, audios: Sequence[Waveform]) -> list[Tensor]:
        """Those of like length side by side."""
        made: dict[int, Tensor] = {}
        order = sorted(range(len(audios)), key=lambda at: len(audios[at]))
        while order:
            some = _alike([len(audios[at]) for at in order])
            made |= zip(order[:some], self._heard([audios[at] for at in order[:some]]), strict=True)
            order = order[some:]
        return [made[at] for at in range(len(audios))]

    def warm(self) -> None:
        """Record every size, the longest first."""
        for length in reversed(LENGTHS):
            for rows in _rows(length):
                self._heard([np.zeros(length - MARGIN, np.float32)] * rows)

    def _heard(self, audios: Sequence[Waveform]) -> list[Tensor]:
        """Recordings that fit one replay, the longest last; or a longer one."""
        if len(audios[-1]) + MARGIN > LENGTHS[-1]:
            return self._plain(audios)
        length = LENGTHS[bisect_left(LENGTHS, len(audios[-1]) + MARGIN)]
        rows = next(rows for rows in _rows(length) if rows >= len(audios))
        waves, samples = self._waves[: rows * length].view(rows, length), self._samples[:rows]
        for wave, audio in zip(waves, audios, strict=False):
            wave[: len(audio)] = to_device(audio, wave.device, torch.float32)
        samples[: len(audios)] = to_device([len(audio) for audio in audios], samples.device)
        made = self._replays.run((rows, length), lambda: self._padded(waves, samples))
        return [row.clone() for row in made[: len(audios)]]

    def _padded(self, waves: Tensor, samples: Tensor) -> Tensor:
        return self._plain.network(waves, RightPadding(samples))


def _rows(length: int) -> list[int]:
    """Recordings of this length that are heard side by side."""
    return [rows for rows in ROWS if rows * length <= MOST]


def _alike(samples: Sequence[int]) -> int:
    """How many of these, the shortest first, share a replay: none is more than twice another."""
    count = 1
    while count < len(samples) and _fit(count + 1, samples[0], samples[count]):
        count += 1
    return count


def _fit(rows: int, shortest: int, longest: int) -> bool:
    if longest > min(2 * shortest, LENGTHS[-1] - MARGIN):
        return False
    return rows <= _rows(LENGTHS[bisect_left(LENGTHS, longest + MARGIN)])[-1]
