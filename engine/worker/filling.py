"""Prompts into slots: rows of embeddings through the talker, and codebook 0 of the first frame.

Pieces run as they are written; short ones that end a prompt are replayed by rows and length
where recordings can be made. How a prompt's rows are laid out is not known here.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product

import torch
from torch import Tensor

from engine.worker.frames import FrameStep
from engine.worker.graphs import Record, Replays
from engine.worker.ledger import Ledger
from engine.worker.prompts import to_device
from engine.worker.steps import ROUND

ROWS = (1, 2, 4, 8)
LENGTHS = (16, 32, 48, 64, 96, 128, 192, 256)


@dataclass(frozen=True, eq=False)
class Piece:
    """Some rows of a prompt."""

    row: int  # of the slots
    x: Tensor  # [T, width]
    start: int
    ends: bool  # nothing follows


class Filling:
    """Pieces of any length, from anywhere, side by side."""

    def __init__(self, step: FrameStep, ledger: Ledger) -> None:
        self._step, self._ledger = step, ledger

    def __call__(self, pieces: Sequence[Piece]) -> None:
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
    """Short ends of prompts by recordings, everything else as it is written."""

    def __init__(self, step: FrameStep, ledger: Ledger, record: Record) -> None:
        self._step, self._ledger, self._replays = step, ledger, Replays(record)
        self._plain = Filling(step, ledger)
        self._lengths = [length for length in LENGTHS if length <= step.slots.positions]
        longest = self._lengths[-1] if self._lengths else 0
        like = step.slots.hidden
        self._x = like.new_zeros(ROWS[-1], longest, like.shape[1])
        self._places = torch.zeros(3, ROWS[-1], dtype=torch.long, device=step.device)

    def __call__(self, pieces: Sequence[Piece]) -> None:
        ends = [piece for piece in pieces if self._common(piece)]
        rest = [piece for piece in pieces if piece not in ends]
        for first in range(0, len(ends), ROWS[-1]):
            some = ends[first : first + ROWS[-1]]
            self._fill(some, self._ledger.extent([piece.row for piece in some]).first)
        if rest:
            self._plain(rest)

    def warm(self, count: int | None) -> None:
        """Record every size, the largest first."""
        nobody = self._step.slots.hidden.new_zeros(1, self._x.shape[2])
        for rows, length in product(reversed(ROWS), reversed(self._lengths)):
            pieces = [Piece(self._step.slots.spare, nobody, 0, True)] * rows
            self._fill(pieces, count, length)

    def _common(self, piece: Piece) -> bool:
        """Plain attention of a recording would not reach behind the piece itself."""
        alone = not piece.start or self._step.talk is not None
        return piece.ends and alone and len(piece.x) <= self._x.shape[1]

    def _fill(self, pieces: Sequence[Piece], count: int | None, least: int = 0) -> None:
        rows = ROWS[bisect_left(ROWS, len(pieces))]
        longest = max(least, *(len(piece.x) for piece in pieces))
        length = self._lengths[bisect_left(self._lengths, longest)]
        idle = [(self._step.slots.spare, 0, 0)] * (rows - len(pieces))
        places = [*((piece.row, len(piece.x) - 1, piece.start) for piece in pieces), *idle]
        self._places[:, :rows].copy_(to_device(places, self._step.device).t())
        for at, piece in enumerate(pieces):
            self._x[at, : len(piece.x)] = piece.x
        self._replays.run((rows, length, count), lambda: self._run(rows, length, count))

    def _run(self, rows: int, length: int, count: int | None) -> None:
        index, last, starts = self._places[:, :rows]
        positions = starts[:, None] + torch.arange(length, device=index.device)
        positions = positions.clamp(max=self._step.slots.positions - 1)
        hidden = self._step.run(self._x[:rows, :length], index, index, positions, length)
        self._step.begin(index, hidden[torch.arange(rows, device=index.device), last], count)
