"""Prompts into slots: rows of embeddings through the talker, and codebook 0 of the first frame.

Pieces run as they are written; where recordings can be made, all of them together, cut into
blocks of a few positions. How a prompt's rows are laid out is not known here.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from engine.worker.frames import FrameStep
from engine.worker.graphs import Record, Replays
from engine.worker.ledger import Ledger
from engine.worker.prompts import to_device
from engine.worker.sampling import CANDIDATES
from engine.worker.steps import ROUND, reach_of

BLOCK = 16  # positions
BLOCKS = (1, 2, 3, 4, 6, 8, 12, 16, 24, 32)  # in one recording


@dataclass(frozen=True, eq=False)
class Piece:
    """Some rows of a prompt."""

    row: int  # of the slots
    x: Tensor  # [T, width]
    start: int
    ends: bool  # nothing follows


class Filling:
    """Pieces from anywhere, those of like length side by side."""

    def __init__(self, step: FrameStep, ledger: Ledger) -> None:
        self._step, self._ledger = step, ledger

    def __call__(self, pieces: Sequence[Piece]) -> None:
        groups: dict[int, list[Piece]] = {}
        for piece in pieces:
            groups.setdefault((len(piece.x) - 1).bit_length(), []).append(piece)
        for group in groups.values():
            self._fill(group)

    def _fill(self, pieces: Sequence[Piece]) -> None:
        step = self._step
        index = to_device([piece.row for piece in pieces], step.device)
        x = torch.nn.utils.rnn.pad_sequence([piece.x for piece in pieces], batch_first=True)
        starts = to_device([piece.start for piece in pieces], step.device)
        positions = starts[:, None] + torch.arange(x.shape[1], device=step.device)
        # Rows shorter than the longest run on into positions that are written again later.
        positions = positions.clamp(max=step.slots.positions - 1)
        extent = max(piece.start for piece in pieces) + x.shape[1]
        extent = min(-(-extent // ROUND) * ROUND, step.slots.positions)
        hidden = step.run(x, index, index, positions, extent)
        ended = [(at, piece) for at, piece in enumerate(pieces) if piece.ends]
        if ended:
            rows = [piece.row for _, piece in ended]
            last = torch.stack([hidden[at, len(piece.x) - 1] for at, piece in ended])
            count = self._ledger.extent(rows).first
            step.begin(to_device(rows, step.device), last, count)


class ReplayedFilling:
    """Everything by recordings, cut into blocks that are rows of their own.

    All that is new is kept before anything is read, and what is read goes by positions: a block
    finds those before it wherever they stand. So one replay takes pieces of any lengths together.
    """

    def __init__(self, step: FrameStep, ledger: Ledger, record: Record) -> None:
        self._step, self._ledger, self._replays = step, ledger, Replays(record)
        like = step.slots.hidden
        self._x = like.new_zeros(BLOCKS[-1] * BLOCK, like.shape[1])
        # of each block its row and start; of each end its row and last place
        self._places = torch.zeros(4, BLOCKS[-1], dtype=torch.long, device=step.device)

    def __call__(self, pieces: Sequence[Piece]) -> None:
        for some in _parts(pieces):
            rows = [piece.row for piece in some if piece.ends]
            self._fill(some, self._ledger.extent(rows).first if rows else CANDIDATES)

    def warm(self, count: int | None) -> None:
        """Record every size, the largest first."""
        nobody = self._step.slots.hidden.new_zeros(1, self._x.shape[1])
        for blocks in reversed(BLOCKS):
            self._fill([Piece(self._step.slots.spare, nobody, 0, True)] * blocks, count)

    def _fill(self, pieces: Sequence[Piece], count: int | None) -> None:
        blocks: list[tuple[int, int]] = []
        ends: list[tuple[int, int]] = []
        for piece in pieces:
            first, length = len(blocks) * BLOCK, len(piece.x)
            self._x[first : first + length] = piece.x
            blocks += [(piece.row, piece.start + at) for at in range(0, length, BLOCK)]
            ends += [(piece.row, first + length - 1)] if piece.ends else []
        size = BLOCKS[bisect_left(BLOCKS, len(blocks))]
        idle = (self._step.slots.spare, 0)
        blocks += [idle] * (size - len(blocks))
        ends += [idle] * (size - len(ends))
        columns = [*zip(*blocks, strict=True), *zip(*ends, strict=True)]
        self._places[:, :size].copy_(to_device(columns, self._step.device))
        reach = reach_of(self._step, max(piece.start + len(piece.x) for piece in pieces))
        self._replays.run((size, reach, count), lambda: self._run(size, reach, count))

    def _run(self, size: int, reach: int, count: int | None) -> None:
        index, starts, rows, last = self._places[:, :size]
        positions = starts[:, None] + torch.arange(BLOCK, device=index.device)
        positions = positions.clamp(max=self._step.slots.positions - 1)
        x = self._x[: size * BLOCK].unflatten(0, (size, BLOCK))
        hidden = self._step.run(x, index, index, positions, reach)
        self._step.begin(rows, hidden.flatten(0, 1)[last], count)


def _parts(pieces: Sequence[Piece]) -> Iterator[list[Piece]]:
    """As many at a time as one recording takes; the last of them may be cut."""
    some: list[Piece] = []
    room = BLOCKS[-1]
    for piece in pieces:
        rest: Piece | None = piece
        while rest:
            now, rest = _cut(rest, room * BLOCK)
            some.append(now)
            room -= -(-len(now.x) // BLOCK)
            if not room:
                yield some
                some, room = [], BLOCKS[-1]
    if some:
        yield some


def _cut(piece: Piece, most: int) -> tuple[Piece, Piece | None]:
    """So many rows of a piece, and those behind."""
    if len(piece.x) <= most:
        return piece, None
    rest = replace(piece, x=piece.x[most:], start=piece.start + most)
    return replace(piece, x=piece.x[:most], ends=False), rest
