"""Prefill: prompt rows through the talker, then codebook 0 of the first frame.

Pieces of prompts run eagerly, or by CUDA graph, all together and cut into blocks of a few
positions. The layout of prompts is not known here.
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
from engine.worker.state.prompts import PromptRows, embed_rows, to_device
from engine.worker.state.row_metadata import RowMetadata
from engine.worker.state.sampling import CANDIDATES
from engine.worker.talker.decode_graphs import POSITION_MULTIPLE, graph_positions
from engine.worker.talker.decode_step import FrameStep
from engine.worker.talker.talker_forward import RowInputs

BLOCK = 16  # positions
BLOCKS = (1, 2, 3, 4, 6, 8, 12, 16, 24, 32)  # blocks per graph
_COLUMNS = 4 + 2 * BLOCK  # numbers per block
CPU_BLOCK = 32  # positions that one pass takes on a CPU: most prompts in one or two


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
        """Whether it is the prompt's last piece."""
        return self.stop == len(self.prompt)


def whole_blocks(piece: PromptPiece) -> list[PromptPiece]:
    """The same blocks of a prompt, however it is cut: those that end with or before this piece.

    A block that is cut waits for its rest; its rows are then run together.
    """
    start = piece.start // CPU_BLOCK * CPU_BLOCK
    stop = piece.stop if piece.ends else piece.stop // CPU_BLOCK * CPU_BLOCK
    starts = range(start, stop, CPU_BLOCK)
    return [replace(piece, start=at, stop=min(at + CPU_BLOCK, stop)) for at in starts]


class Blocks(NamedTuple):
    """Blocks of pieces as a graph's inputs."""

    new: RowInputs  # inputs [N, BLOCK, width]
    rows: Tensor  # [N] rows whose prompts end
    last: Tensor  # [N] indices of their last inputs


class Prefiller:
    """Eager prefill: all pieces by one kernel, or on a GPU those of similar length in a batch, or
    one block after the other. Products and attention of other sizes sum in another order, so that
    on a CPU, which gains little by a batch, a prompt would depend on who came in the same step."""

    def __init__(self, step: FrameStep, row_metadata: RowMetadata) -> None:
        self._step, self._row_metadata = step, row_metadata

    def __call__(self, pieces: Sequence[PromptPiece]) -> None:
        if self._step.talk_prompts is not None:
            rows = [(piece.row, piece.start, len(piece)) for piece in pieces]
            x = torch.cat([piece.prompt.embed(piece.start, piece.stop) for piece in pieces])
            hidden = self._step.talk_prompts(x, rows)
            self._sample_first(pieces, hidden.split([len(piece) for piece in pieces]))
            return
        if self._step.device.type == "cpu":
            for piece in pieces:
                for block in whole_blocks(piece):
                    self._prefill([block])
            return
        groups: dict[int, list[PromptPiece]] = {}
        for piece in pieces:
            groups.setdefault((len(piece) - 1).bit_length(), []).append(piece)
        for group in groups.values():
            self._prefill(group)

    def _prefill(self, pieces: Sequence[PromptPiece]) -> None:
        step = self._step
        index = to_device([piece.row for piece in pieces], step.device)
        rows = [piece.prompt.embed(piece.start, piece.stop) for piece in pieces]
        x = torch.nn.utils.rnn.pad_sequence(rows, batch_first=True)
        starts = to_device([piece.start for piece in pieces], step.device)
        positions = starts[:, None] + torch.arange(x.shape[1], device=step.device)
        # Padding of shorter rows writes to positions that are written again later.
        positions = positions.clamp(max=step.slots.positions - 1)
        bounds = max(piece.start for piece in pieces) + x.shape[1]
        bounds = min(-(-bounds // POSITION_MULTIPLE) * POSITION_MULTIPLE, step.slots.positions)
        hidden = step.run(x, index, index, positions, bounds)
        self._sample_first(pieces, tuple(hidden))

    def _sample_first(self, pieces: Sequence[PromptPiece], hidden: Sequence[Tensor]) -> None:
        """Sample the first codes of prompts that end, from hidden states [T, width] of each."""
        ended = [
            (states, piece) for states, piece in zip(hidden, pieces, strict=True) if piece.ends
        ]
        if ended:
            rows = [piece.row for _, piece in ended]
            last = torch.stack([states[len(piece) - 1] for states, piece in ended])
            count = self._row_metadata.bounds(rows).first
            self._step.sample_first(to_device(rows, self._step.device), last, count)


class GraphPrefiller:
    """Prefill by CUDA graph, with each block as a row of the batch.

    All new keys and values are stored before any are read, and reads go by position, so a block
    attends to earlier blocks of its prompt in the same batch. One replay takes pieces of any
    lengths.
    """

    def __init__(self, step: FrameStep, row_metadata: RowMetadata, capture: Capture) -> None:
        self._step, self._row_metadata = step, row_metadata
        self._graphs = GraphRunner(capture, BLOCKS)
        like = step.slots.hidden
        self._given = like.new_zeros(BLOCKS[-1] * BLOCK, like.shape[1])
        # per block: row and start; per end: row and last input; text ids; codes
        self._table = torch.zeros(_COLUMNS * BLOCKS[-1], dtype=torch.long, device=step.device)

    def __call__(self, pieces: Sequence[PromptPiece]) -> None:
        for some in _parts(pieces):
            self._prefill(some, self.count(some))

    def count(self, pieces: Sequence[PromptPiece]) -> int | None:
        """Ids to rank when sampling the first codes."""
        rows = [piece.row for piece in pieces if piece.ends]
        return self._row_metadata.bounds(rows).first if rows else CANDIDATES

    @property
    def placeholder(self) -> PromptPiece:
        """A piece on the padding row, for capture."""
        nothing = np.zeros((2, 1), np.int64)
        prompt = PromptRows(self._step.talker, nothing, (), 1, ())
        return PromptPiece(self._step.slots.padding_row, prompt, 0, 1)

    def warm(self, count: int | None) -> None:
        """Capture all buckets."""
        self._graphs.warm(lambda blocks: self._prefill([self.placeholder] * blocks, count))

    def stage(self, pieces: Sequence[PromptPiece], sizes: Sequence[int] = BLOCKS) -> int:
        """Write pieces to the graphs' static inputs; returns the bucket."""
        table = _table(pieces, self._step.slots.padding_row, sizes)
        self._copy_given(pieces)
        place(self._table[: table.size], table.reshape(-1))
        return table.shape[1]

    def blocks(self, size: int) -> Blocks:
        """The static inputs of a bucket."""
        table = self._table[: _COLUMNS * size].view(_COLUMNS, size)
        index, starts, rows, last = table[:4]
        positions = starts[:, None] + torch.arange(BLOCK, device=index.device)
        positions = positions.clamp(max=self._step.slots.positions - 1)
        texts, codes = table[4:].view(2, size, BLOCK)
        given = self._given[: size * BLOCK].view(size, BLOCK, -1)
        x = embed_rows(self._step.talker, texts, codes, given)
        return Blocks(RowInputs(x, index, positions), rows, last)

    def sample_first(self, blocks: Blocks, hidden: Tensor, count: int | None) -> None:
        """Sample the first codes of prompts that end, from hidden states [N, BLOCK, width]."""
        self._step.sample_first(blocks.rows, hidden.flatten(0, 1)[blocks.last], count)

    def _prefill(self, pieces: Sequence[PromptPiece], count: int | None) -> None:
        size = self.stage(pieces)
        reach = graph_positions(self._step, max(each.stop for each in pieces))
        self._graphs.run((size, reach, count), lambda: self._run(size, reach, count))

    def _run(self, size: int, reach: int, count: int | None) -> None:
        blocks = self.blocks(size)
        x, index, positions = blocks.new
        self.sample_first(blocks, self._step.run(x, index, index, positions, reach), count)

    def _copy_given(self, pieces: Sequence[PromptPiece]) -> None:
        first = 0
        for piece in pieces:
            if piece.prompt.given:
                piece.prompt.copy_given(piece.start, piece.stop, self._given[first:])
            first += piece.blocks * BLOCK


def _table(pieces: Sequence[PromptPiece], padding_row: int, sizes: Sequence[int]) -> Numbers:
    """[_COLUMNS, blocks]; padding blocks and ends are on the padding row."""
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
    """Split pieces into batches for one graph; a piece may be cut."""
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
    """The first `most` rows of a piece, and the rest."""
    if len(piece) <= most:
        return piece, None
    middle = piece.start + most
    return replace(piece, stop=middle), replace(piece, start=middle)
