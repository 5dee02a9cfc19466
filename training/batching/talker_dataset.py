"""The talker's dataset on the device: text ids, codes and speaker vectors by utterance.

Each frame has its phones and the text id spoken in it. Tapes hold everything end to end; an
utterance is a row of `table`. It is filled from a `SpeechPool` with a trained codec and speaker
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
from training.batching.encoding_batches import (
    TRAILING_SILENCE,
    Encoding,
    EncodingBatch,
    encoding_batch,
    group_by_length,
    spoken_tokens,
)
from training.batching.speaker_targets import faster, speaker_targets
from training.data.speakers import NAMED, all_speakers
from training.data.speech_format import FRAME, PHONES_A_FRAME
from training.data.speech_pool import SpeechPool

SPEED = 0.06  # largest relative change of speed
# Columns of the table; FRAMES excludes the silence.
TEXT, TEXT_LENGTH, CODE, FRAMES, SPEAKER, STYLE = range(6)


class Tokenize(Protocol):
    def __call__(self, texts: list[str], /) -> Sequence[Encoding]: ...


class TalkerDataset:
    def __init__(
        self,
        ids: Tokenize,
        encoder: CodecEncoder,
        speaker: SpeakerEncoder | None,
        device: torch.device,
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
        self._axes = torch.tensor([speaker.axes() for speaker in all_speakers()], device=device)
        self.table = torch.zeros(0, 6, dtype=torch.long, device=device)
        self._done = 0

    def __len__(self) -> int:
        return len(self.table)

    @torch.no_grad()
    def grow(self, pool: SpeechPool, at_most: int = 4000) -> int:
        """Add utterances that are new in the pool."""
        segments = pool.segments[self._done : self._done + at_most]
        self._done += len(segments)
        for alike in group_by_length(segments):
            self._add(encoding_batch(pool, alike, 1.0))
        return len(segments)

    @torch.no_grad()
    def reencode(self, pool: SpeechPool, count: int) -> int:
        """Encode some utterances again with other frame offsets and slightly other speeds, so that
        codes are not memorised."""
        if not pool.segments:
            return 0
        segments = [
            pool.segments[index] for index in torch.randint(len(pool.segments), (count,)).tolist()
        ]
        named = [segment for segment in segments if segment.speaker < len(NAMED)]
        for alike in group_by_length(named):
            self._add(encoding_batch(pool, alike, 1.0))
        others = [segment for segment in segments if segment.speaker >= len(NAMED)]
        for alike in group_by_length(others):
            speed = 1 + SPEED * (2 * torch.rand(()).item() - 1)
            self._add(encoding_batch(pool, alike, speed))
        return len(segments)

    def _add(self, batch: EncodingBatch) -> None:
        wave, frames = batch.wave(), batch.frames
        codes = self.encoder.encode(wave)
        phones, letters = batch.labels(codes.shape[1])
        texts = self.ids([segment.text for segment in batch.segments])
        rows = self._rows(batch, texts)
        same = min(frames) * FRAME
        axes = self._axes[[segment.speaker for segment in batch.segments]]
        ids = torch.tensor([token for text in texts for token in text.ids])
        self.text = extended(self.text, ids)
        self.codes = extended(self.codes, trimmed(codes, frames).to(torch.uint8))
        self.phones = extended(self.phones, trimmed(phones, frames))
        self.places = extended(self.places, trimmed(spoken_tokens(texts, letters), frames))
        targets = speaker_targets(faster(axes, batch.speed))
        vectors = self.speaker.embed(wave[:, :same]).float() if self.speaker else targets
        self.vectors = extended(self.vectors, vectors)
        self.targets = extended(self.targets, targets)
        self.speeds = extended(self.speeds, torch.full((len(rows),), batch.speed))
        self.table = extended(self.table, rows)

    def _rows(self, batch: EncodingBatch, texts: Sequence[Encoding]) -> Tensor:
        """Rows of the table: the places of each utterance's text and codes, and its labels."""
        rows, at, code_at = [], len(self.text), len(self.codes)
        for segment, text, count in zip(batch.segments, texts, batch.frames, strict=True):
            rows.append([at, len(text.ids), code_at, count, segment.speaker, segment.style])
            at, code_at = at + len(text.ids), code_at + count + TRAILING_SILENCE
        return torch.tensor(rows)


def extended(tape: Tensor, values: Tensor) -> Tensor:
    return torch.cat((tape, values.to(tape.device)))


def trimmed(values: Tensor, frames: Sequence[int]) -> Tensor:
    """Rows [B, T, ...] cut to their frames and the silence after them, end to end."""
    return torch.cat(
        [row[: count + TRAILING_SILENCE] for row, count in zip(values, frames, strict=True)]
    )
