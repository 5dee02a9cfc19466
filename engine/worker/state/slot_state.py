"""Device state of a talker's slots between steps.

One row per slot, plus one padding row. All state of a row is reset when its slot is assigned, so
nothing of the previous sequence is left. No networks here.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields

import numpy as np
import torch
from torch import Tensor

from engine.model.configs import TalkerConfig
from engine.model.zeros import zeros
from engine.plan import Admit
from engine.worker.staging import Numbers
from engine.worker.state.kv_cache import KeyValueCache, Rows
from engine.worker.state.prompts import PromptRows
from engine.worker.state.sampling import SAMPLING_COLUMNS, sampling_row, seed_keys

SLOT_COLUMNS, TEXT_COLUMNS = 6 + SAMPLING_COLUMNS, 4  # of `slot_table` and `text_table`
INITIAL_POSITIONS = 512  # positions that always have memory, in slots that grow
_CODE = torch.int16  # every code of a frame fits


@dataclass(frozen=True)
class Slots:
    """The next frame is computed from `hidden` and `code`; its number is `frame`."""

    hidden: Tensor  # [slots, width] the talker's last hidden state
    code: Tensor  # [slots] codebook 0 of the next frame
    position: Tensor  # [slots] of the talker's next input
    frame: Tensor  # [slots] number of the next frame
    seen: Tensor  # [slots, codes] ids sampled for codebook 0
    text: Tensor  # [slots, positions, width] the text track
    texts: Tensor  # [slots] its length
    spoken: Tensor  # [slots] texts used by prompt rows
    codes: Tensor  # [slots, positions, codebooks] all frames
    sampling: Tensor  # [slots, SAMPLING_COLUMNS]
    keys: Tensor  # [slots, 2] of the random stream
    endless: Tensor  # [slots] never sample end of speech
    cache: KeyValueCache

    @classmethod
    def allocate(
        cls,
        config: TalkerConfig,
        slots: int,
        positions: int,
        device: torch.device,
        dtype: torch.dtype,
        grows: bool = False,
    ) -> Slots:
        """`grows`: keys and values get memory for INITIAL_POSITIONS, and more by `grow`."""
        rows, width = slots + 1, config.transformer.hidden_size
        cache = KeyValueCache.allocate_growing if grows else KeyValueCache.allocate

        def make(*size: int, kind: torch.dtype = torch.long) -> Tensor:
            return zeros(rows, *size, dtype=kind, device=device)

        made = cls(
            hidden=make(width, kind=dtype),
            code=make(),
            position=make(),
            frame=make(),
            seen=make(config.vocab_size, kind=torch.bool),
            text=make(positions, width, kind=dtype),
            texts=make(),
            spoken=make(),
            codes=make(positions, config.codebooks, kind=_CODE),
            sampling=make(SAMPLING_COLUMNS, kind=torch.float32),
            keys=make(2),
            endless=make(kind=torch.bool),
            cache=cache(config.transformer, rows, positions, device, dtype),
        )
        for row in range(rows):
            made.grow(row, positions if row == 0 else INITIAL_POSITIONS)  # row 0 is used first
        return made

    @property
    def tensors(self) -> tuple[Tensor, ...]:
        values = (getattr(self, field.name) for field in fields(self))
        return (*(each for each in values if isinstance(each, Tensor)), *self.cache.tensors)

    @property
    def bytes(self) -> int:
        tensors = self.tensors[: -len(self.cache.tensors)]
        return sum(tensor.nbytes for tensor in tensors) + self.cache.bytes

    @property
    def padding_row(self) -> int:
        """The row that no slot uses."""
        return len(self.frame) - 1

    @property
    def positions(self) -> int:
        return self.text.shape[1]

    def held(self, row: int) -> int:
        """Positions of a row that have memory."""
        return min((each.held[row] for each in self.cache.growing), default=self.positions)

    def grow(self, row: int, positions: int) -> None:
        """Map memory for this many positions, or raise torch.OutOfMemoryError."""
        for each in self.cache.growing:
            each.ensure(row, min(positions, self.positions))

    def shrink(self, rows: Sequence[int]) -> None:
        """Release the memory of free rows past INITIAL_POSITIONS."""
        for each in self.cache.growing:
            each.shrink(rows, min(INITIAL_POSITIONS, self.positions))

    def reset_row(self, row: int) -> None:
        """Move the padding row back to its start after a step."""
        self.position[row].fill_(0)
        self.frame[row].fill_(0)

    def open(self, table: Tensor) -> None:
        """Assign rows to sequences from `slot_table` on the device [R, SLOT_COLUMNS]."""
        index, position, spoken, endless = table[:, :4].unbind(1)
        self.position[index] = position
        self.spoken[index] = spoken
        self.endless[index] = endless.bool()
        self.keys[index] = table[:, 4:6]
        self.sampling[index] = table[:, 6:].int().view(self.sampling.dtype)
        for kept in (self.texts, self.frame, self.seen):
            kept.index_fill_(0, index, 0)

    def append(self, table: Tensor, track: Tensor) -> None:
        """Append text: `text_table` on the device [texts, TEXT_COLUMNS], embedded as `track`."""
        index, at, texts, _ = table.unbind(1)
        self.text[index, at] = track
        self.texts[index] = texts

    def start(self, rows: Rows, index: Tensor, hidden: Tensor, code: Tensor) -> None:
        """Set the inputs of the rows' next frame."""
        self.hidden[rows] = hidden
        self.code[rows] = code
        self.seen.index_put_((index, code), self.seen.new_ones(()))


def slot_table(admits: Sequence[tuple[int, Admit]], prompts: Sequence[PromptRows]) -> Numbers:
    """[R, SLOT_COLUMNS]: row, position, spoken, endless, keys, and the bits of the sampling
    parameters."""
    pairs = zip(admits, prompts, strict=True)
    table = [_slot_row(row, admit, prompt) for (row, admit), prompt in pairs]
    draws = np.array([sampling_row(admit.sampling) for _, admit in admits], np.float32)
    return np.concatenate((np.array(table, np.int64), draws.view(np.int32)), axis=1)


def _slot_row(row: int, admit: Admit, prompt: PromptRows) -> list[int]:
    length = len(prompt)
    keys = seed_keys(admit.seed)
    return [row, length, length - prompt.body, admit.ignore_end, *keys]


def text_table(row: int, texts: int, ids: Sequence[int]) -> Numbers:
    """[ids, TEXT_COLUMNS] for a row that has `texts`: row, place on the track, new number of
    texts, and id."""
    table = np.empty((len(ids), TEXT_COLUMNS), np.int64)
    table[:, 0], table[:, 2], table[:, 3] = row, texts + len(ids), ids
    table[:, 1] = np.arange(texts, texts + len(ids))
    return table
