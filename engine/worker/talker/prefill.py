"""Prompts into slots: rows of embeddings through the talker, and codebook 0 of the first frame.

Pieces run as they are written; where recordings can be made, all of them together, cut into
blocks of a few positions. How a prompt's rows are laid out is not known here.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from engine.worker.cuda_graphs import Capture, GraphRunner
from engine.worker.staging import Numbers, place
from engine.worker.state.prompts import PromptRows, embedded, to_device
from engine.worker.state.row_metadata import RowMetadata
from engine.worker.state.sampling import CANDIDATES
from engine.worker.talker.decode_graphs import ROUND, reach_of
from engine.worker.talker.decode_step import FrameStep
from engine.worker.talker.talker_forward import RowInputs

BLOCK = 16  # positions
BLOCKS = (1, 2, 3, 4, 6, 8, 12, 16, 24, 32)  # in one recording
_COLUMNS = 4 + 2 * BLOCK  # numbers a block


@dataclass(frozen=True, eq=False)
class PromptPiece:
    """Rows [start, stop) of a prompt."""

    row: int  # of the slots
    prompt: PromptRows
    start: int
    stop: int

    def __len__(self) -> int:
        return self.stop - self.start

    @property
    def blocks(self) -> int:
        return -(-len(self) // BLOCK)

    @property
    def ends(self) -> bool:
        """Nothing follows."""
        return self.stop == len(self.prompt)


class Blocks(NamedTuple):
    """Pieces side by side, as recorded work has them."""

    new: RowInputs  # inputs [N, BLOCK, width]
    rows: Tensor  # [N] whose prompts end
    last: Tensor  # [N] and with which of all inputs


class Prefiller:
    """Pieces from anywhere, those of like length side by side."""

    def __init__(self, step: FrameStep, row_metadata: RowMetadata) -> None:
        self._step, self._row_metadata = step, row_metadata

    def __call__(self, pieces: Sequence[PromptPiece]) -> None:
        groups: dict[int, list[PromptPiece]] = {}
        for piece in pieces:
            groups.setdefault((len(piece) - 1).bit_length(), []).append(piece)
        for group in groups.values():
            self._fill(group)

    def _fill(self, pieces: Sequence[PromptPiece]) -> None:
        step = self._step
        index = to_device([piece.row for piece in pieces], step.device)
        own = [piece.prompt.cut(piece.start, piece.stop) for piece in pieces]
        x = torch.nn.utils.rnn.pad_sequence(own, batch_first=True)
        starts = to_device([piece.start for piece in pieces], step.device)
        positions = starts[:, None] + torch.arange(x.shape[1], device=step.device)
        # Rows shorter than the longest run on into positions that are written again later.
        positions = positions.clamp(max=step.slots.positions - 1)
        bounds = max(piece.start for piece in pieces) + x.shape[1]
        bounds = min(-(-bounds // ROUND) * ROUND, step.slots.positions)
        hidden = step.run(x, index, index, positions, bounds)
        ended = [(at, piece) for at, piece in enumerate(pieces) if piece.ends]
        if ended:
            rows = [piece.row for _, piece in ended]
            last = torch.stack([hidden[at, len(piece) - 1] for at, piece in ended])
            count = self._row_metadata.bounds(rows).first
            step.begin(to_device(rows, step.device), last, count)


class GraphPrefiller:
    """Everything by recordings, cut into blocks that are rows of their own.

    All that is new is kept before anything is read, and what is read goes by positions: a block
    finds those before it wherever they stand. So one replay takes pieces of any lengths together.
    """

    def __init__(self, step: FrameStep, row_metadata: RowMetadata, record: Capture) -> None:
        self._step, self._row_metadata, self._graphs = (
            step,
            row_metadata,
            GraphRunner(record, BLOCKS),
        )
        like = step.slots.hidden
        self._given = like.new_zeros(BLOCKS[-1] * BLOCK, like.shape[1])
        # of each block its row and start, of each end its row and last place; texts; codes
        self._table = torch.zeros(_COLUMNS * BLOCKS[-1], dtype=torch.long, device=step.device)

    def __call__(self, pieces: Sequence[PromptPiece]) -> None:
        for some in _parts(pieces):
            self._fill(some, self.count(some))

    def count(self, pieces: Sequence[PromptPiece]) -> int | None:
        """Ids that are ranked for what they begin with."""
        rows = [piece.row for piece in pieces if piece.ends]
        return self._row_metadata.bounds(rows).first if rows else CANDIDATES

    @property
    def placeholder(self) -> PromptPiece:
        """That stands for any, where it is only recorded."""
        nothing = np.zeros((2, 1), np.int64)
        prompt = PromptRows(self._step.talker, nothing, (), 1, ())
        return PromptPiece(self._step.slots.padding_row, prompt, 0, 1)

    def warm(self, count: int | None) -> None:
        """Capture every size."""
        self._graphs.warm(lambda blocks: self._fill([self.placeholder] * blocks, count))

    def stage(self, pieces: Sequence[PromptPiece], sizes: Sequence[int] = BLOCKS) -> int:
        """Put them where recordings of so many blocks find them."""
        table = _table(pieces, self._step.slots.padding_row, sizes)
        self._give(pieces)
        place(self._table[: table.size], table.reshape(-1))
        return table.shape[1]

    def blocks(self, size: int) -> Blocks:
        """What is there."""
        table = self._table[: _COLUMNS * size].view(_COLUMNS, size)
        index, starts, rows, last = table[:4]
        positions = starts[:, None] + torch.arange(BLOCK, device=index.device)
        positions = positions.clamp(max=self._step.slots.positions - 1)
        texts, codes = table[4:].view(2, size, BLOCK)
        given = self._given[: size * BLOCK].view(size, BLOCK, -1)
        x = embedded(self._step.talker, texts, codes, given)
        return Blocks(RowInputs(x, index, positions), rows, last)

    def begin(self, blocks: Blocks, hidden: Tensor, count: int | None) -> None:
        """Those that end are done: hidden states [N, BLOCK, width]."""
        self._step.begin(blocks.rows, hidden.flatten(0, 1)[blocks.last], count)

    def _fill(self, pieces: Sequence[PromptPiece], count: int | None) -> None:
        size, reach = self.stage(pieces), reach_of(self._step, max(each.stop for each in pieces))
        self._graphs.run((size, reach, count), lambda: self._run(size, reach, count))

    def _run(self, size: int, reach: int, count: int | None) -> None:
        blocks = self.blocks(size)
        x, index, positions = blocks.new
        self.begin(blocks, self._step.run(x, index, index, positions, reach), count)

    def _give(self, pieces: Sequence[PromptPiece]) -> None:
        first = 0
        for piece in pieces:
            if piece.prompt.given:
                piece.prompt.give(piece.start, piece.stop, self._given[first:])
            first += piece.blocks * BLOCK


def _table(pieces: Sequence[PromptPiece], padding_row: int, sizes: Sequence[int]) -> Numbers:
    """[_COLUMNS, blocks]; blocks and ends that are too many are the spare row's."""
    needed = sum(piece.blocks for piece in pieces)
    table = np.zeros((_COLUMNS, sizes[bisect_left(sizes, needed)]), np.int64)
    table[[0, 2]] = padding_row
    ids, first, ended = table[4:].reshape(2, -1), 0, 0
    for piece in pieces:
        blocks, at = piece.blocks, first * BLOCK
        table[0, first : first + blocks] = piece.row
        table[1, first : first + blocks] = range(piece.start, piece.stop, BLOCK)
        ids[:, at : at + len(piece)] = piece.prompt.ids[:, piece.start : piece.stop]
        if piece.ends:
            table[2:4, ended] = piece.row, at + len(piece) - 1
            ended += 1
        first += blocks
    return table


def _parts(pieces: Sequence[PromptPiece]) -> Iterator[list[PromptPiece]]:
    """As many at a time as one recording takes; the last of them may be cut."""
    some: list[PromptPiece] = []
    room = BLOCKS[-1]
    for piece in pieces:
        rest: PromptPiece | None = piece
        while rest is not None:
            now, rest = _cut(rest, room * BLOCK)
            some.append(now)
            room -= now.blocks
            if not room:
                yield some
                some, room = [], BLOCKS[-1]
    if some:
        yield some


def _cut(piece: PromptPiece, most: int) -> tuple[PromptPiece, PromptPiece | None]:
    """So many rows of a piece, and those behind."""
    if len(piece) <= most:
        return piece, None
    middle = piece.start + most
    return replace(piece, stop=middle), replace(piece, start=middle)
