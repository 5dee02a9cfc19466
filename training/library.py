"""What the talker learns from, on the device: text ids, codes and speaker vectors by utterance.

Tapes hold everything end to end; an utterance is a row of `table`. Filled from a `Pool` of
speech with a trained codec and speaker encoder, utterance by utterance as shards appear.
"""

from __future__ import annotations

from typing import Protocol

import torch

from engine.model.encoder import CodecEncoder
from engine.model.speaker import SpeakerEncoder
from training.pool import Pool, Spot
from training.speech import FRAME

HUSH = 6  # frames of silence kept after an utterance, for references that end in silence
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
        self.vectors = torch.zeros(0, speaker.shape.width, device=device)  # an utterance each
        self.table = torch.zeros(0, 6, dtype=torch.long, device=device)
        self._done = 0

    def __len__(self) -> int:
        return len(self.table)

    @torch.no_grad()
    def grow(self, pool: Pool, at_most: int = 4000) -> int:
        """Take in utterances the pool has got since the last time."""
        spots = sorted(pool.spots[self._done : self._done + at_most], key=_length)
        self._done += len(spots)
        for start in range(0, len(spots), 64):
            self._add(pool, spots[start : start + 64])
        return len(spots)

    def _add(self, pool: Pool, spots: list[Spot]) -> None:
        """A batch of about equal lengths, each followed by silence."""
        frames = [_length(spot) // FRAME for spot in spots]
        starts = torch.tensor([spot.start for spot in spots], device=self.device)
        wave = pool.cut(starts, (max(frames) + HUSH) * FRAME)
        ends = torch.tensor(frames, device=self.device)[:, None] * FRAME
        wave = wave * (torch.arange(wave.shape[1], device=self.device) < ends)
        codes = self.encoder.encode(wave)
        same = min(frames) * FRAME
        vectors = self.speaker.embed(wave[:, :same])
        texts = self.ids([spot.text for spot in spots])
        rows, at, code_at = [], len(self.text), len(self.codes)
        for spot, ids, count in zip(spots, texts, frames, strict=True):
            rows.append([at, len(ids), code_at, count, spot.speaker, spot.style])
            at, code_at = at + len(ids), code_at + count + HUSH
        flat = [token for ids in texts for token in ids]
        kept = [row[: count + HUSH] for row, count in zip(codes, frames, strict=True)]
        self.text = torch.cat((self.text, torch.tensor(flat, device=self.device)))
        self.codes = torch.cat((self.codes, torch.cat(kept).to(torch.uint8)))
        self.vectors = torch.cat((self.vectors, vectors.float()))
        self.table = torch.cat((self.table, torch.tensor(rows, device=self.device)))


def _length(spot: Spot) -> int:
    return spot.stop - spot.start
