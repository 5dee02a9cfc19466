"""Runs an encoder network on whole recordings, eagerly or by CUDA graphs.

For a replay, recordings are padded to one of a few lengths, which does not change the result
(engine.model.padding), and several share a batch. Longer ones run eagerly. Knows no voices.
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
from engine.worker.cuda_graphs import Capture, GraphRunner, graph_capture
from engine.worker.state.prompts import to_device

FRAMES = (24, 32, 40, 48, 64, 80, 96, 112, 128, 160, 192, 256)  # 2 to 20 seconds
LENGTHS = tuple(frames * FRAME_SAMPLES for frames in FRAMES)
ROWS = (1, 4, 8)  # recordings in a batch
MAX_SAMPLES = 40 * SAMPLE_RATE  # of a batch: more need memory and are not faster
MARGIN = 1024  # samples past the end that are read: a window, and a few hops of the mel

Network = Callable[[Tensor, Padding], Tensor]  # waves [B, samples] -> a tensor of B rows


class EncoderRunner(Protocol):
    def __call__(self, audios: Sequence[Waveform]) -> list[Tensor]:
        """The network's output for each recording. The next call may overwrite it."""
        ...

    def warm(self) -> None:
        """Run once, since the first call takes half a second longer."""
        ...


def select_encoder(network: Network, device: torch.device) -> EncoderRunner:
    """Graphs where the device has them, else eager."""
    capture, plain = graph_capture(device), EagerEncoder(network, device)
    return GraphEncoder(plain, capture) if capture else plain


class EagerEncoder:
    def __init__(self, network: Network, device: torch.device) -> None:
        self.network, self.device = network, device

    def __call__(self, audios: Sequence[Waveform]) -> list[Tensor]:
        waves = (to_device(audio, self.device, torch.float32)[None] for audio in audios)
        return [self.network(wave, NO_PADDING)[0] for wave in waves]

    def warm(self) -> None:
        self([np.zeros(SAMPLE_RATE, np.float32)])


class GraphEncoder:
    def __init__(self, plain: EagerEncoder, capture: Capture) -> None:
        self._plain, self._graphs = plain, GraphRunner(capture, LENGTHS)
        self._waves = torch.zeros(MAX_SAMPLES, device=plain.device)
        self._samples = torch.ones(ROWS[-1], dtype=torch.long, device=plain.device)

    def __call__(self, audios: Sequence[Waveform]) -> list[Tensor]:
        """Recordings of similar length share a batch."""
        made: dict[int, Tensor] = {}
        order = sorted(range(len(audios)), key=lambda at: len(audios[at]))
        while order:
            some = _group_size([len(audios[at]) for at in order])
            made |= zip(
                order[:some], self._encode([audios[at] for at in order[:some]]), strict=True
            )
            order = order[some:]
        return [made[at] for at in range(len(audios))]

    def warm(self) -> None:
        """Capture every length, the longest first."""
        self._graphs.warm(self._warm)

    def _warm(self, length: int) -> None:
        for rows in _row_sizes(length):
            self._encode([np.zeros(length - MARGIN, np.float32)] * rows)

    def _encode(self, audios: Sequence[Waveform]) -> list[Tensor]:
        """Recordings that fit one replay, the longest last; or a longer one, eagerly."""
        if len(audios[-1]) + MARGIN > LENGTHS[-1]:
            return self._plain(audios)
        length = self._graphs.bucket(len(audios[-1]) + MARGIN)
        rows = next(rows for rows in _row_sizes(length) if rows >= len(audios))
        waves, samples = self._waves[: rows * length].view(rows, length), self._samples[:rows]
        for wave, audio in zip(waves, audios, strict=False):
            wave[: len(audio)] = to_device(audio, wave.device, torch.float32)
        samples[: len(audios)] = to_device([len(audio) for audio in audios], samples.device)
        made = self._graphs.run((rows, length), lambda: self._padded(waves, samples))
        return [row.clone() for row in made[: len(audios)]]

    def _padded(self, waves: Tensor, samples: Tensor) -> Tensor:
        return self._plain.network(waves, RightPadding(samples))


def _row_sizes(length: int) -> list[int]:
    """Possible batch sizes for this length."""
    return [rows for rows in ROWS if rows * length <= MAX_SAMPLES]


def _group_size(samples: Sequence[int]) -> int:
    """How many of these, the shortest first, share a replay; none is over twice another."""
    count = 1
    while count < len(samples) and _fit(count + 1, samples[0], samples[count]):
        count += 1
    return count


def _fit(rows: int, shortest: int, longest: int) -> bool:
    if longest > min(2 * shortest, LENGTHS[-1] - MARGIN):
        return False
    return rows <= _row_sizes(LENGTHS[bisect_left(LENGTHS, longest + MARGIN)])[-1]
