"""Recordings through a network that hears them whole: as it is written, or replayed by length.

For a replay a recording lies at the start of one of a few lengths; what stands behind its end
changes nothing (engine.model.spans). Longer ones are heard as it is written. Knows no voices.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable
from typing import Protocol

import numpy as np
import torch
from torch import Tensor

from engine.model.spans import WHOLE, Padded, Span
from engine.types import FRAME_SAMPLES, SAMPLE_RATE, Waveform
from engine.worker.graphs import Record, Replays, recorder
from engine.worker.prompts import to_device

FRAMES = (24, 32, 40, 48, 64, 80, 96, 112, 128, 160, 192, 256)  # of the codec: 2 to 20 seconds
LENGTHS = tuple(frames * FRAME_SAMPLES for frames in FRAMES)
MARGIN = 1024  # samples behind an end that are looked at: a window, and a few of the mel's hops

Network = Callable[[Tensor, Span], Tensor]  # waves [1, samples] -> a tensor of one row


class Hearing(Protocol):
    def __call__(self, audio: Waveform) -> Tensor:
        """What the network makes of it: the first row. The next call may write over it."""
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

    def __call__(self, audio: Waveform) -> Tensor:
        return self.network(to_device(audio, self.device, torch.float32)[None], WHOLE)[0]

    def warm(self) -> None:
        self(np.zeros(SAMPLE_RATE, np.float32))


class ReplayedHearing:
    def __init__(self, plain: PlainHearing, record: Record) -> None:
        self._plain, self._replays = plain, Replays(record)
        self._wave = torch.zeros(1, LENGTHS[-1], device=plain.device)
        self._samples = torch.zeros(1, dtype=torch.long, device=plain.device)

    def __call__(self, audio: Waveform) -> Tensor:
        samples = len(audio)
        if samples + MARGIN > LENGTHS[-1]:
            return self._plain(audio)
        length = LENGTHS[bisect_left(LENGTHS, samples + MARGIN)]
        self._wave[0, :samples] = to_device(audio, self._wave.device, torch.float32)
        self._samples.fill_(samples)
        return self._replays.run(length, lambda: self._padded(length))[0]

    def warm(self) -> None:
        """Record every length, the longest first."""
        for length in reversed(LENGTHS):
            self(np.zeros(length - MARGIN, np.float32))

    def _padded(self, length: int) -> Tensor:
        return self._plain.network(self._wave[:, :length], Padded(self._samples))
