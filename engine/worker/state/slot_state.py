"""What the device remembers of each slot of a talker between steps.

One row a slot, plus one spare that belongs to nobody. A row is written whole when its slot is
given away, so nothing of its last owner is left. No networks here.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields

import numpy as np
import torch
from torch import Tensor

from engine.model.configs import TalkerConfig
from engine.plan import Admit
from engine.worker.staging import Numbers
from engine.worker.state.kv_cache import KeyValueCache, Rows, zeros
from engine.worker.state.prompts import PromptRows
from engine.worker.state.sampling import KNOBS, sampling_row, seed_keys

OPENED, TOLD = 6 + KNOBS, 4  # columns of the tables that slots are written from
FIRST = 512  # positions that have memory in any case, where the others' grows
_CODE = torch.int16  # every code of a frame fits


@dataclass(frozen=True)
class Slots:
    """The frame to come is made from `hidden` and `code`; its number is `frame`."""

    hidden: Tensor  # [slots, width] the talker's last hidden state
    code: Tensor  # [slots] codebook 0 of the frame to come
    position: Tensor  # [slots] where the talker's next input goes
    frame: Tensor  # [slots] frames made
    seen: Tensor  # [slots, codes] which ids codebook 0 has had
    text: Tensor  # [slots, positions, width] the text track
    texts: Tensor  # [slots] its length
    spoken: Tensor  # [slots] how much of it the prompt's rows take
    codes: Tensor  # [slots, positions, codebooks] every frame made
    knobs: Tensor  # [slots, KNOBS]
    keys: Tensor  # [slots, 2] of the random stream
    endless: Tensor  # [slots] the end of speech is never drawn
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
        """`grows`: keys and values have memory for the first positions; for more by `reach`."""
        rows, width = slots + 1, config.transformer.hidden_size
        cache = KeyValueCache.growing if grows else KeyValueCache.allocate

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
            knobs=make(KNOBS, kind=torch.float32),
            keys=make(2),
            endless=make(kind=torch.bool),
            cache=cache(config.transformer, rows, positions, device, dtype),
        )
        for row in range(rows):
            made.reach(row, positions if row == 0 else FIRST)  # the first is taken first
        return made

    @property
    def tensors(self) -> tuple[Tensor, ...]:
        own = (getattr(self, field.name) for field in fields(self))
        return (*(each for each in own if isinstance(each, Tensor)), *self.cache.tensors)

    @property
    def bytes(self) -> int:
        own = self.tensors[: -len(self.cache.tensors)]
        return sum(tensor.nbytes for tensor in own) + self.cache.bytes

    @property
    def padding_row(self) -> int:
        """The row that belongs to nobody."""
        return len(self.frame) - 1

    @property
    def positions(self) -> int:
        return self.text.shape[1]

    def held(self, row: int) -> int:
        """Positions of a row that have memory."""
        return min((each.held[row] for each in self.cache.grown), default=self.positions)

    def reach(self, row: int, positions: int) -> None:
        """Let a row have memory for so many, or raise torch.OutOfMemoryError."""
        for each in self.cache.grown:
            each.ensure(row, min(positions, self.positions))

    def shrink(self, rows: Sequence[int]) -> None:
        """Rows that are nobody's give back what they have for more than the first positions."""
        for each in self.cache.grown:
            each.shrink(rows, min(FIRST, self.positions))

    def rest(self, row: int) -> None:
        """A row that is stepped for nobody stays where it is."""
        self.position[row].fill_(0)
        self.frame[row].fill_(0)

    def open(self, table: Tensor) -> None:
        """Give rows to sequences: `slot_table` on the device [R, OPENED]."""
        index, position, spoken, endless = table[:, :4].unbind(1)
        self.position[index] = position
        self.spoken[index] = spoken
        self.endless[index] = endless.bool()
        self.keys[index] = table[:, 4:6]
        self.knobs[index] = table[:, 6:].int().view(self.knobs.dtype)
        for kept in (self.texts, self.frame, self.seen):
            kept.index_fill_(0, index, 0)

    def append(self, table: Tensor, track: Tensor) -> None:
        """More text: `text_table` on the device [texts, TOLD], and as rows [texts, width]."""
        index, at, texts, _ = table.unbind(1)
        self.text[index, at] = track
        self.texts[index] = texts

    def start(self, rows: Rows, index: Tensor, hidden: Tensor, code: Tensor) -> None:
        """The rows' next frame is to be made from these."""
        self.hidden[rows] = hidden
        self.code[rows] = code
        self.seen.index_put_((index, code), self.seen.new_ones(()))


def slot_table(admits: Sequence[tuple[int, Admit]], prompts: Sequence[PromptRows]) -> Numbers:
    """[R, OPENED]: the row, where its next input goes, texts that the prompt takes, endlessness,
    keys; and the bits of the knobs."""
    pairs = zip(admits, prompts, strict=True)
    table = [_opening(row, admit, prompt) for (row, admit), prompt in pairs]
    draws = np.array([sampling_row(admit.sampling) for _, admit in admits], np.float32)
    return np.concatenate((np.array(table, np.int64), draws.view(np.int32)), axis=1)


def _opening(row: int, admit: Admit, prompt: PromptRows) -> list[int]:
    length = len(prompt)
    keys = seed_keys(admit.seed)
    return [row, length, length - prompt.body, admit.ignore_end, *keys]


def text_table(row: int, texts: int, ids: Sequence[int]) -> Numbers:
    """[ids, TOLD] for a row that holds `texts`: the row, each text's place, how many texts
    there are in the end, and the text's id."""
    table = np.empty((len(ids), TOLD), np.int64)
    table[:, 0], table[:, 2], table[:, 3] = row, texts + len(ids), ids
    table[:, 1] = np.arange(texts, texts + len(ids))
    return table
