"""Batches of utterances for encoding: each after less than a frame of silence, at some speed.

Waves and labels are cut from the same pool. Knows no networks.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Protocol

import torch
from torch import Tensor

from training.data.speech_format import FRAME, PHONE_STEP, PHONES_A_FRAME
from training.data.speech_pool import Segment, SpeechPool

TRAILING_SILENCE = 6  # frames kept after an utterance, for references that end in silence
MAX_BATCH = 64  # utterances encoded at once


class Encoding(Protocol):
    """A text's ids, and where each of them ends in it."""

    @property
    def ids(self) -> list[int]: ...
    @property
    def offsets(self) -> list[tuple[int, int]]: ...


@dataclass(frozen=True)
class EncodingBatch:
    """Utterances of similar length, each with its samples of silence before it."""

    pool: SpeechPool
    segments: list[Segment]
    shifts: list[int]
    speed: float

    @cached_property
    def frames(self) -> list[int]:
        """Frames of each utterance, with the silence before it."""
        both = zip(self.segments, self.shifts, strict=True)
        return [
            math.ceil((length(segment) + shift) / self.speed / FRAME) for segment, shift in both
        ]

    def wave(self) -> Tensor:
        """[B, samples]: silence, the utterance, silence."""
        whole = (max(self.frames) + TRAILING_SILENCE) * FRAME
        size = math.ceil(whole * self.speed)
        at = torch.arange(size, device=self.pool.device)
        inside = (at >= self._before) & (at < self._before + self._lengths)
        return resample(self.pool.cut((self._starts - self._before)[:, 0], size) * inside, whole)

    def labels(self, frames: int) -> tuple[Tensor, Tensor]:
        """Phones [B, frames, 4], where 0 is silence, and the letters spoken by the middle of each
        frame [B, frames]."""
        middles = torch.arange(frames * PHONES_A_FRAME, device=self.pool.device) + 0.5
        at = (middles * PHONE_STEP * self.speed - self._before).floor().long()  # into the utterance
        inside = (at >= 0) & (at < self._lengths)
        label = (self._starts + at.clamp(min=0).minimum(self._lengths - 1)) // PHONE_STEP
        shape = len(self.segments), frames, PHONES_A_FRAME
        phones = (self.pool.phones[label] * inside).view(shape)
        return phones, self.pool.places[label].view(shape)[..., PHONES_A_FRAME // 2]

    @cached_property
    def _before(self) -> Tensor:
        return self._column(self.shifts)

    @cached_property
    def _lengths(self) -> Tensor:
        return self._column([length(segment) for segment in self.segments])

    @cached_property
    def _starts(self) -> Tensor:
        return self._column([segment.start for segment in self.segments])

    def _column(self, values: list[int]) -> Tensor:
        return torch.tensor(values, device=self.pool.device)[:, None]


def group_by_length(segments: list[Segment]) -> Iterator[list[Segment]]:
    """Groups of similar length, at most MAX_BATCH each."""
    ordered = sorted(segments, key=length)
    for start in range(0, len(ordered), MAX_BATCH):
        yield ordered[start : start + MAX_BATCH]


def encoding_batch(pool: SpeechPool, segments: list[Segment], speed: float) -> EncodingBatch:
    """A batch with a random silence before each utterance."""
    return EncodingBatch(pool, segments, torch.randint(FRAME, (len(segments),)).tolist(), speed)


def resample(wave: Tensor, samples: int) -> Tensor:
    """[B, n] -> [B, samples]: the same audio, faster or slower."""
    length = wave.shape[1]
    if length == samples:
        return wave
    return torch.fft.irfft(torch.fft.rfft(wave)[:, : samples // 2 + 1], samples) * (
        samples / length
    )


def spoken_tokens(texts: Sequence[Encoding], letters: Tensor) -> Tensor:
    """The text id at each count of spoken letters: [B, frames] -> [B, frames]."""
    longest = max(len(text.ids) for text in texts)
    ends = [[end for _, end in text.offsets] for text in texts]
    table = torch.tensor([row + row[-1:] * (longest - len(row)) for row in ends])
    table = table.to(letters.device, torch.int16)
    last = torch.tensor([len(row) - 1 for row in ends], device=letters.device)[:, None]
    return torch.searchsorted(table, letters.contiguous(), right=True).minimum(last).to(torch.int16)


def length(segment: Segment) -> int:
    return segment.stop - segment.start
