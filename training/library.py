"""What the talker learns from, on the device: text ids, codes and speaker vectors by utterance.

Of every frame it is known which phones it has and which text id it says.

Tapes hold everything end to end; an utterance is a row of `table`. Filled from a `Pool` of
speech with a trained codec and speaker encoder, utterance by utterance as shards appear.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Protocol

import torch
from torch import Tensor

from engine.model.encoder import CodecEncoder
from engine.model.speaker import SpeakerEncoder
from training.homes import faster, homes
from training.pool import Pool, Spot
from training.speakers import NAMED, everyone
from training.speech import FRAME, PHONE_STEP, PHONES_A_FRAME

HUSH = 6  # frames of silence kept after an utterance, for references that end in silence
BATCH = 64  # utterances encoded at once
SPEED = 0.06  # at most so much faster or slower
# Columns of the table; FRAMES leaves the silence out.
TEXT, TEXT_LENGTH, CODE, FRAMES, SPEAKER, STYLE = range(6)


class Coded(Protocol):
    """A text's ids, and where each of them ends in it."""

    ids: list[int]
    offsets: list[tuple[int, int]]


class Ids(Protocol):
    def __call__(self, texts: list[str]) -> Sequence[Coded]: ...


class Library:
    def __init__(
        self, ids: Ids, encoder: CodecEncoder, speaker: SpeakerEncoder, device: torch.device
    ) -> None:
        self.ids, self.encoder, self.speaker, self.device = ids, encoder, speaker, device
        self.text = torch.zeros(0, dtype=torch.long, device=device)
        self.codes = torch.zeros(0, encoder.shape.codebooks, dtype=torch.uint8, device=device)
        self.phones = torch.zeros(0, PHONES_A_FRAME, dtype=torch.uint8, device=device)
        self.places = torch.zeros(0, dtype=torch.int16, device=device)  # text ids said, by frame
        self.vectors = torch.zeros(0, speaker.shape.width, device=device)  # an utterance each
        self.homes = torch.zeros_like(self.vectors)  # of its voice, at its speed
        self.speeds = torch.zeros(0, device=device)  # at which it was encoded
        self._axes = torch.tensor([speaker.axes() for speaker in everyone()], device=device)
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
        phones, letters = self._said(pool, spots, shifts, speed, codes.shape[1])
        same = min(frames) * FRAME
        vectors = self.speaker.embed(wave[:, :same])
        texts = self.ids([spot.text for spot in spots])
        places = place_ids(texts, letters)
        rows, at, code_at = [], len(self.text), len(self.codes)
        for spot, text, count in zip(spots, texts, frames, strict=True):
            rows.append([at, len(text.ids), code_at, count, spot.speaker, spot.style])
            at, code_at = at + len(text.ids), code_at + count + HUSH
        flat = [token for text in texts for token in text.ids]

        def kept(values: Tensor) -> Tensor:
            return torch.cat([row[: n + HUSH] for row, n in zip(values, frames, strict=True)])

        self.text = torch.cat((self.text, torch.tensor(flat, device=self.device)))
        self.codes = torch.cat((self.codes, kept(codes).to(torch.uint8)))
        self.phones = torch.cat((self.phones, kept(phones)))
        self.places = torch.cat((self.places, kept(places)))
        self.vectors = torch.cat((self.vectors, vectors.float()))
        axes = self._axes[[spot.speaker for spot in spots]]
        self.homes = torch.cat((self.homes, homes(faster(axes, speed))))
        self.speeds = torch.cat((self.speeds, self.vectors.new_full((len(spots),), speed)))
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
    ) -> tuple[Tensor, Tensor]:
        """Of the waves that `_cut` makes: phones [B, frames, 4], silence being phone 0, and the
        letters said by the middle of each frame [B, frames]."""
        middles = (torch.arange(frames * PHONES_A_FRAME, device=self.device) + 0.5) * PHONE_STEP
        before = torch.tensor(shifts, device=self.device)[:, None]
        lengths = torch.tensor([_length(spot) for spot in spots], device=self.device)[:, None]
        starts = torch.tensor([spot.start for spot in spots], device=self.device)[:, None]
        at = (middles * speed - before).floor().long()  # samples into the utterance
        inside = (at >= 0) & (at < lengths)
        label = (starts + at.clamp(min=0).minimum(lengths - 1)) // PHONE_STEP
        phones = (pool.phones[label] * inside).view(len(spots), frames, PHONES_A_FRAME)
        letters = pool.places[label].view(len(spots), frames, PHONES_A_FRAME)
        return phones, letters[..., PHONES_A_FRAME // 2]


def resampled(wave: Tensor, length: int) -> Tensor:
    """[B, n] -> [B, length]: the same sound, faster or slower."""
    own = wave.shape[1]
    if own == length:
        return wave
    return torch.fft.irfft(torch.fft.rfft(wave)[:, : length // 2 + 1], length) * (length / own)


def place_ids(texts: Sequence[Coded], letters: Tensor) -> Tensor:
    """Which text id is said where so many letters are: [B, frames] -> [B, frames]."""
    longest = max(len(text.ids) for text in texts)
    ends = [[end for _, end in text.offsets] for text in texts]
    table = torch.tensor([row + row[-1:] * (longest - len(row)) for row in ends])
    table = table.to(letters.device, torch.int16)
    last = torch.tensor([len(row) - 1 for row in ends], device=letters.device)[:, None]
    return torch.searchsorted(table, letters.contiguous(), right=True).minimum(last).to(torch.int16)


def _batches(spots: list[Spot]) -> Iterator[list[Spot]]:
    ordered = sorted(spots, key=_length)
    for start in range(0, len(ordered), BATCH):
        yield ordered[start : start + BATCH]


def _length(spot: Spot) -> int:
    return spot.stop - spot.start
