"""The talker's dataset on the device: text ids, codes and speaker vectors by utterance.

Each frame has its phones and the text id spoken in it. Tapes hold everything end to end; an
utterance is a row of `table`. It is filled from a `Pool` of speech with a trained codec and speaker
encoder, as shards appear.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import torch
from torch import Tensor

from engine.model.encoder import CodecEncoder
from engine.model.speaker import SpeakerEncoder
from training import model_config
from training.batching.encoding_batches import HUSH, Bundle, Coded, of_a_length, place_ids, shifted
from training.batching.speaker_targets import faster, speaker_targets
from training.data.speakers import NAMED, everyone
from training.data.speech_format import FRAME, PHONES_A_FRAME
from training.data.speech_pool import Pool

SPEED = 0.06  # largest relative change of speed
# Columns of the table; FRAMES excludes the silence.
TEXT, TEXT_LENGTH, CODE, FRAMES, SPEAKER, STYLE = range(6)


class Ids(Protocol):
    def __call__(self, texts: list[str]) -> Sequence[Coded]: ...


class TalkerDataset:
    def __init__(
        self, ids: Ids, encoder: CodecEncoder, speaker: SpeakerEncoder | None, device: torch.device
    ) -> None:
        """Without a speaker encoder every utterance's vector is its speaker's target."""
        self.ids, self.encoder, self.speaker, self.device = ids, encoder, speaker, device
        self.text = torch.zeros(0, dtype=torch.long, device=device)
        self.codes = torch.zeros(0, encoder.config.codebooks, dtype=torch.uint8, device=device)
        self.phones = torch.zeros(0, PHONES_A_FRAME, dtype=torch.uint8, device=device)
        self.places = torch.zeros(0, dtype=torch.int16, device=device)  # text id spoken, by frame
        self.vectors = torch.zeros(0, model_config.WIDTH, device=device)  # an utterance each
        self.targets = torch.zeros_like(self.vectors)  # of the speaker, at the utterance's speed
        self.speeds = torch.zeros(0, device=device)  # at which each was encoded
        self._axes = torch.tensor([speaker.axes() for speaker in everyone()], device=device)
        self.table = torch.zeros(0, 6, dtype=torch.long, device=device)
        self._done = 0

    def __len__(self) -> int:
        return len(self.table)

    @torch.no_grad()
    def grow(self, pool: Pool, at_most: int = 4000) -> int:
        """Add utterances that are new in the pool."""
        spots = pool.spots[self._done : self._done + at_most]
        self._done += len(spots)
        for alike in of_a_length(spots):
            self._add(shifted(pool, alike, 1.0))
        return len(spots)

    @torch.no_grad()
    def vary(self, pool: Pool, count: int) -> int:
        """Encode some utterances again with other frame offsets and slightly other speeds, so that
        codes are not memorised."""
        if not pool.spots:
            return 0
        spots = [pool.spots[index] for index in torch.randint(len(pool.spots), (count,)).tolist()]
        named = [spot for spot in spots if spot.speaker < len(NAMED)]
        for alike in of_a_length(named):
            self._add(shifted(pool, alike, 1.0))
        for alike in of_a_length([spot for spot in spots if spot.speaker >= len(NAMED)]):
            speed = 1 + SPEED * (2 * torch.rand(()).item() - 1)
            self._add(shifted(pool, alike, speed))
        return len(spots)

    def _add(self, bundle: Bundle) -> None:
        wave, frames = bundle.wave(), bundle.frames
        codes = self.encoder.encode(wave)
        phones, letters = bundle.said(codes.shape[1])
        texts = self.ids([spot.text for spot in bundle.spots])
        rows = self._rows(bundle, texts)
        same = min(frames) * FRAME
        axes = self._axes[[spot.speaker for spot in bundle.spots]]
        self.text = longer(self.text, torch.tensor([token for text in texts for token in text.ids]))
        self.codes = longer(self.codes, kept(codes, frames).to(torch.uint8))
        self.phones = longer(self.phones, kept(phones, frames))
        self.places = longer(self.places, kept(place_ids(texts, letters), frames))
        targets = speaker_targets(faster(axes, bundle.speed))
        vectors = self.speaker.embed(wave[:, :same]).float() if self.speaker else targets
        self.vectors = longer(self.vectors, vectors)
        self.targets = longer(self.targets, targets)
        self.speeds = longer(self.speeds, torch.full((len(rows),), bundle.speed))
        self.table = longer(self.table, rows)

    def _rows(self, bundle: Bundle, texts: Sequence[Coded]) -> Tensor:
        """Rows of the table: the places of each utterance's text and codes, and its labels."""
        rows, at, code_at = [], len(self.text), len(self.codes)
        for spot, text, count in zip(bundle.spots, texts, bundle.frames, strict=True):
            rows.append([at, len(text.ids), code_at, count, spot.speaker, spot.style])
            at, code_at = at + len(text.ids), code_at + count + HUSH
        return torch.tensor(rows)


def longer(tape: Tensor, values: Tensor) -> Tensor:
    return torch.cat((tape, values.to(tape.device)))


def kept(values: Tensor, frames: Sequence[int]) -> Tensor:
    """Rows [B, T, ...] cut to their frames and HUSH, end to end."""
    return torch.cat([row[: count + HUSH] for row, count in zip(values, frames, strict=True)])
