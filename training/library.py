"""What the talker learns from, on the device: text ids, codes and speaker vectors by utterance.

Tapes hold everything end to end; an utterance is a row of `table`. Filled from a `Pool` of
speech with a trained codec and speaker encoder, utterance by utterance as shards appear.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Protocol

import torch
from torch import Tensor

from engine.model.encoder import CodecEncoder
from engine.model.speaker import SpeakerEncoder
from training.pool import Pool, Spot
from training.speakers import NAMED
from training.speech import FRAME, PHONE_STEP, PHONES_A_FRAME

HUSH = 6  # frames of silence kept after an utterance, for references that end in silence
BATCH = 64  # utterances encoded at once
SPEED = 0.06  # at most so much faster or slower
# Columns of the table; FRAMES leaves the silence out.
TEXT, TEXT_LENGTH, CODE, FRAMES, SPEAKER, STYLE = range(6)


class Ids(Protocol):
    def __call__(self, texts: list[str]) -> list[list[int]]: ...


class Library:
    def __init__(
        self, ids: Ids, encoder: CodecEncoder, speaker: SpeakerEncoder, device: torch.device
    ) -> None:
        self.ids, self.encoder, self.speaker, self.device = ids, encoder, speaker, device
        self.text = torch.zeros(0, dtype=torch.long, device=device)
        self.codes = torch.zeros(0, encoder.shape.codebooks, dtype=torch.uint8, device=device)
        self.phones = torch.zeros(0, PHONES_A_FRAME, dtype=torch.uint8, device=device)
        self.vectors = torch.zeros(0, speaker.shape.width, device=device)  # an utterance each
        self.table = torch.zeros(0, 6, dtype=torch.long, device=device)
        self._done = 0

    def __len__(self) -> int:
        return len(self.table)

    @torch.no_grad()
    def grow(self, pool: Pool, at_most: int = 4000) -> int:
        """Take in utterances the pool has got since the last time."""
        spots = pool.spots[self._done : self._done + at_most]
        self._done += len(spots)
        for batch in _batches(spots):
            self._add(pool, batch, 1.0)
        return len(spots)

    @torch.no_grad()
    def vary(self, pool: Pool, count: int) -> int:
        """Take in some utterances once more: other frames begin elsewhere, and made voices
        speak a little faster or slower, so that no code is worth learning by heart."""
        if not pool.spots:
            return 0
        spots = [pool.spots[index] for index in torch.randint(len(pool.spots), (count,)).tolist()]
        named = [spot for spot in spots if spot.speaker < len(NAMED)]
        for batch in _batches(named):
            self._add(pool, batch, 1.0)
        for batch in _batches([spot for spot in spots if spot.speaker >= len(NAMED)]):
            speed = 1 + SPEED * (2 * torch.rand(()).item() - 1)
            self._add(pool, batch, speed)
        return len(spots)

    def _add(self, pool: Pool, spots: list[Spot], speed: float) -> None:
        """A batch of about equal lengths, each behind less than a frame of silence."""
        shifts = torch.randint(FRAME, (len(spots),)).tolist()
        frames = [
            math.ceil((_length(spot) + shift) / speed / FRAME)
            for spot, shift in zip(spots, shifts, strict=True)
        ]
        wave = self._cut(pool, spots, shifts, speed, (max(frames) + HUSH) * FRAME)
        codes = self.encoder.encode(wave)
        phones = self._said(pool, spots, shifts, speed, codes.shape[1])
        same = min(frames) * FRAME
        vectors = self.speaker.embed(wave[:, :same])
        texts = self.ids([spot.text for spot in spots])
        rows, at, code_at = [], len(self.text), len(self.codes)
        for spot, ids, count in zip(spots, texts, frames, strict=True):
            rows.append([at, len(ids), code_at, count, spot.speaker, spot.style])
            at, code_at = at + len(ids), code_at + count + HUSH
        flat = [token for ids in texts for token in ids]
        kept = [row[: count + HUSH] for row, count in zip(codes, frames, strict=True)]
        said = [row[: count + HUSH] for row, count in zip(phones, frames, strict=True)]
        self.text = torch.cat((self.text, torch.tensor(flat, device=self.device)))
        self.codes = torch.cat((self.codes, torch.cat(kept).to(torch.uint8)))
        self.phones = torch.cat((self.phones, torch.cat(said)))
        self.vectors = torch.cat((self.vectors, vectors.float()))
        self.table = torch.cat((self.table, torch.tensor(rows, device=self.device)))

    def _cut(
        self, pool: Pool, spots: list[Spot], shifts: list[int], speed: float, length: int
    ) -> Tensor:
        """Waves [B, length]: silence, the utterance at some speed, silence."""
        before = torch.tensor(shifts, device=self.device)[:, None]
        lengths = torch.tensor([_length(spot) for spot in spots], device=self.device)[:, None]
        starts = torch.tensor([spot.start for spot in spots], device=self.device) - before[:, 0]
        own = math.ceil(length * speed)
        at = torch.arange(own, device=self.device)
        wave = pool.cut(starts, own) * ((at >= before) & (at < before + lengths))
        return resampled(wave, length)

    def _said(
        self, pool: Pool, spots: list[Spot], shifts: list[int], speed: float, frames: int
    ) -> Tensor:
        """The phones [B, frames, 4] of the waves that `_cut` makes; silence is phone 0."""
        middles = (torch.arange(frames * PHONES_A_FRAME, device=self.device) + 0.5) * PHONE_STEP
        before = torch.tensor(shifts, device=self.device)[:, None]
        lengths = torch.tensor([_length(spot) for spot in spots], device=self.device)[:, None]
        starts = torch.tensor([spot.start for spot in spots], device=self.device)[:, None]
        at = (middles * speed - before).floor().long()  # samples into the utterance
        inside = (at >= 0) & (at < lengths)
        place = ((starts + at) // PHONE_STEP).clamp(0, len(pool.phones) - 1)
        return (pool.phones[place] * inside).view(len(spots), frames, PHONES_A_FRAME)


def resampled(wave: Tensor, length: int) -> Tensor:
    """[B, n] -> [B, length]: the same sound, faster or slower."""
    own = wave.shape[1]
    if own == length:
        return wave
    return torch.fft.irfft(torch.fft.rfft(wave)[:, : length // 2 + 1], length) * (length / own)


def _batches(spots: list[Spot]) -> Iterator[list[Spot]]:
    ordered = sorted(spots, key=_length)
    for start in range(0, len(ordered), BATCH):
        yield ordered[start : start + BATCH]


def _length(spot: Spot) -> int:
    return spot.stop - spot.start
