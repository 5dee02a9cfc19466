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
from training.data.speech_pool import Pool, Spot

HUSH = 6  # frames of silence kept after an utterance, for references that end in silence
AT_ONCE = 64  # utterances encoded at once


class Coded(Protocol):
    """A text's ids, and where each of them ends in it."""

    ids: list[int]
    offsets: list[tuple[int, int]]


@dataclass(frozen=True)
class Bundle:
    """Utterances of similar length, each with its samples of silence before it."""

    pool: Pool
    spots: list[Spot]
    shifts: list[int]
    speed: float

    @cached_property
    def frames(self) -> list[int]:
        """Frames of each utterance, with the silence before it."""
        both = zip(self.spots, self.shifts, strict=True)
        return [math.ceil((length(spot) + shift) / self.speed / FRAME) for spot, shift in both]

    def wave(self) -> Tensor:
        """[B, samples]: silence, the utterance, silence."""
        whole = (max(self.frames) + HUSH) * FRAME
        own = math.ceil(whole * self.speed)
        at = torch.arange(own, device=self.pool.device)
        inside = (at >= self._before) & (at < self._before + self._lengths)
        return resampled(self.pool.cut((self._starts - self._before)[:, 0], own) * inside, whole)

    def said(self, frames: int) -> tuple[Tensor, Tensor]:
        """Phones [B, frames, 4], where 0 is silence, and the letters spoken by the middle of each
        frame [B, frames]."""
        middles = torch.arange(frames * PHONES_A_FRAME, device=self.pool.device) + 0.5
        at = (middles * PHONE_STEP * self.speed - self._before).floor().long()  # into the utterance
        inside = (at >= 0) & (at < self._lengths)
        label = (self._starts + at.clamp(min=0).minimum(self._lengths - 1)) // PHONE_STEP
        shape = len(self.spots), frames, PHONES_A_FRAME
        phones = (self.pool.phones[label] * inside).view(shape)
        return phones, self.pool.places[label].view(shape)[..., PHONES_A_FRAME // 2]

    @cached_property
    def _before(self) -> Tensor:
        return self._column(self.shifts)

    @cached_property
    def _lengths(self) -> Tensor:
        return self._column([length(spot) for spot in self.spots])

    @cached_property
    def _starts(self) -> Tensor:
        return self._column([spot.start for spot in self.spots])

    def _column(self, values: list[int]) -> Tensor:
        return torch.tensor(values, device=self.pool.device)[:, None]


def of_a_length(spots: list[Spot]) -> Iterator[list[Spot]]:
    """Groups of similar length, at most AT_ONCE each."""
    ordered = sorted(spots, key=length)
    for start in range(0, len(ordered), AT_ONCE):
        yield ordered[start : start + AT_ONCE]


def shifted(pool: Pool, spots: list[Spot], speed: float) -> Bundle:
    """A batch with a random silence before each utterance."""
    return Bundle(pool, spots, torch.randint(FRAME, (len(spots),)).tolist(), speed)


def resampled(wave: Tensor, samples: int) -> Tensor:
    """[B, n] -> [B, samples]: the same audio, faster or slower."""
    own = wave.shape[1]
    if own == samples:
        return wave
    return torch.fft.irfft(torch.fft.rfft(wave)[:, : samples // 2 + 1], samples) * (samples / own)


def place_ids(texts: Sequence[Coded], letters: Tensor) -> Tensor:
    """The text id at each count of spoken letters: [B, frames] -> [B, frames]."""
    longest = max(len(text.ids) for text in texts)
    ends = [[end for _, end in text.offsets] for text in texts]
    table = torch.tensor([row + row[-1:] * (longest - len(row)) for row in ends])
    table = table.to(letters.device, torch.int16)
    last = torch.tensor([len(row) - 1 for row in ends], device=letters.device)[:, None]
    return torch.searchsorted(table, letters.contiguous(), right=True).minimum(last).to(torch.int16)


def length(spot: Spot) -> int:
    return spot.stop - spot.start
