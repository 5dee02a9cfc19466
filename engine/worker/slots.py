"""What the device remembers of each slot of a talker between steps.

One row a slot, plus one spare that belongs to nobody. A row is written whole when its slot is
given away, so nothing of its last owner is left. No networks here.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields

import torch
from torch import Tensor

from engine.model.shapes import TalkerShape
from engine.plan import Admit
from engine.worker.cache import KeyValueCache, Rows, zeros
from engine.worker.prompts import PromptRows, to_device
from engine.worker.sampling import KNOBS, knob_row, seed_keys

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
    made: Tensor  # [slots, positions, codebooks] every frame made
    knobs: Tensor  # [slots, KNOBS]
    keys: Tensor  # [slots, 2] of the random stream
    endless: Tensor  # [slots] the end of speech is never drawn
    cache: KeyValueCache

    @classmethod
    def allocate(
        cls,
        shape: TalkerShape,
        slots: int,
        positions: int,
        device: torch.device,
        dtype: torch.dtype,
    ) -> Slots:
        rows, width = slots + 1, shape.block.width

        def make(*size: int, kind: torch.dtype = torch.long) -> Tensor:
            return zeros(rows, *size, dtype=kind, device=device)

        return cls(
            hidden=make(width, kind=dtype),
            code=make(),
            position=make(),
            frame=make(),
            seen=make(shape.codes, kind=torch.bool),
            text=make(positions, width, kind=dtype),
            texts=make(),
            spoken=make(),
            made=make(positions, shape.codebooks, kind=_CODE),
            knobs=make(KNOBS, kind=torch.float32),
            keys=make(2),
            endless=make(kind=torch.bool),
            cache=KeyValueCache.allocate(shape.block, rows, positions, device, dtype),
        )

    @property
    def tensors(self) -> tuple[Tensor, ...]:
        own = (getattr(self, field.name) for field in fields(self))
        return (*(each for each in own if isinstance(each, Tensor)), *self.cache.tensors)

    @property
    def bytes(self) -> int:
        return sum(tensor.nbytes for tensor in self.tensors)

    @property
    def spare(self) -> int:
        """The row that belongs to nobody."""
        return len(self.frame) - 1

    @property
    def positions(self) -> int:
        return self.text.shape[1]

    def rest(self, row: int) -> None:
        """A row that is stepped for nobody stays where it is."""
        self.position[row].fill_(0)
        self.frame[row].fill_(0)

    def open(self, admits: Sequence[tuple[int, Admit]], prompts: Sequence[PromptRows]) -> None:
        """Give rows to sequences."""
        device, pairs = self.knobs.device, list(zip(admits, prompts, strict=True))
        draws = [knob_row(admit.draw) for _, admit in admits]
        table = [_numbers(row, admit, prompt) for (row, admit), prompt in pairs]
        numbers = to_device(table, device)
        index, position, spoken, texts, endless = numbers[:, :5].unbind(1)
        self.knobs[index] = to_device(draws, device, torch.float32)
        self.keys[index] = numbers[:, 5:]
        self.endless[index] = endless.bool()
        for kept, now in ((self.position, position), (self.spoken, spoken), (self.texts, texts)):
            kept[index] = now
        self.seen.index_fill_(0, index, False)
        self.frame.index_fill_(0, index, 0)
        for (row, _), prompt in pairs:
            if length := len(prompt.track):
                self.text[row, :length] = prompt.track

    def append(self, row: int, length: int, track: Tensor) -> None:
        """More text for a row that holds `length` texts."""
        self.text[row, length : length + len(track)] = track
        self.texts[row].fill_(length + len(track))

    def start(self, rows: Rows, index: Tensor, hidden: Tensor, code: Tensor) -> None:
        """The rows' next frame is to be made from these."""
        self.hidden[rows] = hidden
        self.code[rows] = code
        self.seen.index_put_((index, code), self.seen.new_ones(()))


def _numbers(row: int, admit: Admit, prompt: PromptRows) -> list[int]:
    """The row, where its next input goes, texts that are spoken, texts, endlessness, keys."""
    length = len(prompt)
    keys = seed_keys(admit.seed)
    return [row, length, length - prompt.body, len(prompt.track), admit.ignore_end, *keys]
