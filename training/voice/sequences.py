"""Spoken lines as the talker's input: an engine's prompt, and the line's frames after it.

The prompt is laid out by the engine's own `Embedder`, so what is learned is what is spoken. Row p
predicts codebook 0 of the frame that row p + 1 feeds back; the predictor gets the hidden state of
that same row p. Knows no losses and no files.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from typing import Literal, TypeAlias

import numpy as np
import torch
from torch import Tensor

from engine.checkpoints.checkpoint import LocalCheckpoint
from engine.model.talker import Talker
from engine.types import CODEBOOKS, Clone, Codes, Vector
from engine.worker.staging import Numbers
from engine.worker.state.prompts import GIVEN, NOTHING, Embedder, embed_rows

NONE = -1
Layout: TypeAlias = Literal["whole", "streamed"]
LAYOUTS: tuple[Layout, ...] = ("streamed", "whole")


@dataclass(frozen=True, eq=False)
class Line:
    """A text as ids, and the codes of its recording [frames, 16]."""

    text_ids: tuple[int, ...]
    codes: Codes


@dataclass(frozen=True, eq=False)
class LineRows:
    """One line's rows."""

    text: Numbers  # [T] ids
    code: Numbers  # [T] of the prompt's rows: an id, NOTHING, or GIVEN
    voice: Numbers  # [T] the number of the voice's row, NONE elsewhere
    fed: Numbers  # [T, 16] the frame that a row feeds back, or NONE
    target: Numbers  # [T, 16] the frame that a row predicts, or NONE
    ends: Numbers  # [T] whether a row predicts the end of speech

    def __len__(self) -> int:
        return len(self.text)


@dataclass(frozen=True, eq=False)
class Batch:
    """Sequences side by side, with rows of nothing behind the shorter ones."""

    text: Tensor  # [B, T]
    code: Tensor  # [B, T]
    voice: Tensor  # [B, T]
    fed: Tensor  # [B, T, 16]
    target: Tensor  # [B, T, 16]
    ends: Tensor  # [B, T] bool

    @property
    def first(self) -> Tensor:
        """[B, T] whether a row predicts a frame or the end."""
        return (self.target[..., 0] != NONE) | self.ends


class SequenceMaker:
    """Lays lines out for one checkpoint, with `rows` learned rows after the voice's vector."""

    def __init__(self, checkpoint: LocalCheckpoint, talker: Talker, rows: int) -> None:
        self._checkpoint, self._rows = checkpoint, rows
        with torch.no_grad():
            self._embedder = Embedder(talker, checkpoint.ids)
        self._width = checkpoint.capabilities.width

    def make(self, line: Line, language: str, layout: Layout) -> LineRows:
        """The rows of a line: prompt, then a row a frame, whose last predicts the end."""
        voice = Clone(np.zeros(self._width, np.float32))
        prompt = self._checkpoint.prompt(line.text_ids, voice, language, layout, open_text=False)
        if self._rows:
            learned = np.zeros((self._rows, self._width), np.float32)
            prompt = replace(prompt, rows=learned)
        with torch.no_grad():
            laid = self._embedder.layout([prompt])[0]
        start, frames = len(laid), len(line.codes)
        track = laid.track_ids[start - laid.body :] if laid.track_ids else ()
        after = [*track, *[self._checkpoint.ids.tts_pad] * frames][:frames]
        fed = np.full((start + frames, CODEBOOKS), NONE, np.int64)
        fed[start:] = line.codes
        target = np.roll(fed, -1, axis=0)
        target[-1] = NONE
        code = np.concatenate((laid.ids[1], np.full(frames, NOTHING, np.int64)))
        given = code == GIVEN
        ends = np.zeros(start + frames, bool)
        ends[-1] = True
        return LineRows(
            np.concatenate((laid.ids[0], np.array(after, np.int64))),
            code,
            np.where(given, np.cumsum(given) - 1, NONE),
            fed,
            target,
            ends,
        )


def batch_of(sequences: Sequence[LineRows], pad: int, device: torch.device | str) -> Batch:
    """Sequences as one batch; `pad` is the text id of empty rows."""
    longest = max(map(len, sequences))
    empty = {"text": pad, "code": NOTHING, "voice": NONE, "fed": NONE, "target": NONE, "ends": 0}
    columns = {}
    for field in fields(Batch):
        tensors = [getattr(each, field.name) for each in sequences]
        shape = (len(tensors), longest, *tensors[0].shape[1:])
        whole = np.full(shape, empty[field.name], tensors[0].dtype)
        for row, values in zip(whole, tensors, strict=True):
            row[: len(values)] = values
        columns[field.name] = torch.from_numpy(whole).to(device)
    return Batch(**columns)


def embed(talker: Talker, batch: Batch, voice: Tensor) -> Tensor:
    """The talker's input [B, T, width]; voice [rows, width]: its vector, then its learned rows."""
    voice_rows = voice[batch.voice.clamp(min=0)].to(talker.codec_head.weight.dtype)
    x = embed_rows(talker, batch.text, batch.code, voice_rows)
    frames = talker.embed_codes(batch.fed.clamp(min=0))
    return x + frames * (batch.fed[..., :1] != NONE)


def voice_of(clone: Clone) -> Vector:
    """A voice's rows in the prompt [rows, width]."""
    vector = clone.vector[None]
    return vector if clone.rows is None else np.concatenate((vector, clone.rows))
