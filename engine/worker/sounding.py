"""Frames of the codec's streams into samples: as it is written, or replayed by size.

A recording decodes some rows by some frames. Rows that are too few are filled up with the
spare one, which belongs to nobody; frames that are no size of their own are decoded in pieces
that are: a stream goes on from piece to piece. Knows rows, no slots and no requests.
"""

from __future__ import annotations

import logging
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Protocol

import torch
from torch import Tensor

from engine.model.codec import CodecDecoder, CodecState
from engine.types import CODEBOOKS
from engine.worker.graphs import Record, Replays, recorder
from engine.worker.prompts import to_device

if TYPE_CHECKING:
    from engine.worker.codec_fused import FusedCodec

ROWS = (1, 2, 4, 8, 16, 32, 64)
FRAMES = (1, 2, 4, 8, 12)  # of a piece
FEW = 4  # rows that are recorded with any frames: at its end a stream has what is left
MOST = 512  # frames at a time, over all rows: more are no quicker, and take memory
PIECE = 64  # frames of a reference that are gone through at a time
FULL_SCALE = 32767

log = logging.getLogger("timbre")


class Step(Protocol):
    """Advances rows [B] of a state by codes [B, frames, 16]."""

    reach: int  # frames back that the convolutions remember

    def __call__(self, codes: Tensor, state: CodecState, rows: Tensor) -> Tensor:
        """int16 samples [B, frames * hop]."""
        ...

    def skip(self, codes: Tensor, state: CodecState, rows: Tensor) -> None:
        """Nobody hears it; the sound is right again `reach` frames later."""
        ...


class Sounding(Protocol):
    def __call__(self, rows: Sequence[int], codes: Tensor) -> Tensor:
        """The next frames of these rows, codes [B, frames, 16] -> int16 [B, frames * hop]."""
        ...

    def listen(self, row: int, codes: Tensor) -> None:
        """Bring a row to where these codes [frames, 16] leave it; nobody hears them.

        Only the last are decoded: of the others no convolution remembers anything.
        """
        ...


def sounding(codec: CodecDecoder, state: CodecState, spare: int) -> Sounding:
    """What suits the device; the spare row is the state's that no stream has."""
    dtype, record = state.pasts.dtype, recorder(state.pasts.device)
    if record is None:
        return PlainSounding(PlainStep(codec, dtype), state)
    step = fused(codec, state, spare) or PlainStep(codec, dtype)
    return ReplayedSounding(step, state, spare, record)


def fused(codec: CodecDecoder, state: CodecState, spare: int) -> Step | None:
    """None where there are no such kernels, or none for these shapes or numbers."""
    dtype = state.pasts.dtype
    if dtype.itemsize != 2:  # in float32 the libraries' own sums are the quicker ones
        return None
    try:
        from engine.worker.codec_fused import FusedCodec, fits

        return _proven(FusedCodec(codec, dtype), state, spare) if fits(codec.shape) else None
    except torch.OutOfMemoryError:
        raise
    except Exception as error:  # no Triton, nothing to compile with, too small a card
        log.warning("The codec's kernels do not run here (%s): it runs slower.", error)
        return None


def _proven(step: FusedCodec, state: CodecState, spare: int) -> Step:
    """The step, compiled, and tried with its largest tiles."""
    rows = torch.full((ROWS[-1],), spare, device=state.pasts.device)
    step.prepare(sizes(spare), state, spare)
    step(rows.new_zeros(len(rows), 1, CODEBOOKS), state, rows)
    return step


def sizes(rows: int) -> list[tuple[int, int]]:
    """Rows and frames of what is recorded for so many streams, the largest first."""
    buckets = [size for size in ROWS if size < 2 * rows]
    pairs = ((b, f) for b in buckets for f in recorded(b) if b * f <= MOST)
    return sorted(pairs, reverse=True)


def recorded(rows: int) -> Sequence[int]:
    """Frames that these rows have recordings for."""
    return range(1, FRAMES[-1] + 1) if rows <= FEW else FRAMES


def pieces(frames: int, rows: int) -> Iterator[int]:
    """Frames as sizes that are recorded, the largest first."""
    for size in reversed(recorded(rows)):
        while frames >= size:
            yield size
            frames -= size


class PlainStep:
    """The decoder's own step."""

    def __init__(self, codec: CodecDecoder, dtype: torch.dtype) -> None:
        self._codec, self.reach = codec.to(dtype), codec.reach
        self._codec.fold()

    def __call__(self, codes: Tensor, state: CodecState, rows: Tensor) -> Tensor:
        return (self.waves(codes, state, rows) * FULL_SCALE).round().to(torch.int16)

    def waves(self, codes: Tensor, state: CodecState, rows: Tensor) -> Tensor:
        """The same before it is rounded: float32 in [-1, 1]."""
        return self._codec.step(codes.transpose(1, 2), state, rows).float()

    def skip(self, codes: Tensor, state: CodecState, rows: Tensor) -> None:
        self._codec.skip(codes.transpose(1, 2), state, rows)


class PlainSounding:
    def __init__(self, step: Step, state: CodecState) -> None:
        self.step, self._state = step, state

    def __call__(self, rows: Sequence[int], codes: Tensor) -> Tensor:
        return self.step(codes, self._state, to_device(rows, codes.device))

    def listen(self, row: int, codes: Tensor) -> None:
        first, index = max(0, len(codes) - self.step.reach), to_device([row], codes.device)
        for piece in codes[:first].split(PIECE) if first else ():
            self.step.skip(piece[None], self._state, index)
        self.step(codes[None, first:], self._state, index)


class ReplayedSounding:
    def __init__(self, step: Step, state: CodecState, spare: int, record: Record) -> None:
        self._step, self._state, self._spare = step, state, spare
        self._replays = Replays(record)
        device = state.pasts.device
        self._rows = torch.full((ROWS[-1],), spare, device=device)
        # by frames: what recordings read
        self._codes = {
            size: self._rows.new_zeros(ROWS[-1], size, CODEBOOKS) for size in recorded(1)
        }

    def __call__(self, rows: Sequence[int], codes: Tensor) -> Tensor:
        sound, start = [], 0
        for size in pieces(codes.shape[1], len(rows)):
            sound.append(self._wide(rows, codes[:, start : start + size]))
            start += size
        return torch.cat(sound, 1) if len(sound) > 1 else sound[0]

    def listen(self, row: int, codes: Tensor) -> None:
        start, first = 0, max(0, len(codes) - self._step.reach)
        for size in pieces(first, ROWS[-1]):
            self._skip(row, codes[start : start + size])
            start += size
        self([row], codes[None, first:])

    def warm(self, rows: int) -> None:
        """Record all sizes up to so many rows, the largest first."""
        for count, frames in sizes(rows):
            codes = self._rows.new_zeros(count, frames, CODEBOOKS)
            self._narrow((self._spare,) * count, codes)
        for frames in FRAMES:
            self._skip(self._spare, self._rows.new_zeros(frames, CODEBOOKS))

    def _skip(self, row: int, codes: Tensor) -> None:
        """[frames, 16]"""
        index, said = self._rows[:1], self._codes[len(codes)][:1]
        index.fill_(row)
        said.copy_(codes)
        self._replays.run(len(codes), lambda: self._step.skip(said, self._state, index))

    def _wide(self, rows: Sequence[int], codes: Tensor) -> Tensor:
        """As many rows at a time as are worth it."""
        most = ROWS[-1]
        while most * codes.shape[1] > MOST:
            most //= 2
        parts = range(0, len(rows), most)
        sound = [self._narrow(rows[at : at + most], codes[at : at + most]) for at in parts]
        return torch.cat(sound) if len(sound) > 1 else sound[0]

    def _narrow(self, rows: Sequence[int], codes: Tensor) -> Tensor:
        count, frames = codes.shape[:2]
        bucket = ROWS[bisect_left(ROWS, count)]
        index, said = self._rows[:bucket], self._codes[frames][:bucket]
        filled = (*rows, *(self._spare,) * (bucket - count))
        index.copy_(to_device(filled, index.device))
        said[:count].copy_(codes)
        made = self._replays.run((bucket, frames), lambda: self._step(said, self._state, index))
        return made[:count].clone()  # the next replay writes over it
