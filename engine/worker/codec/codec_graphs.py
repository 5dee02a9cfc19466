"""Frames of the codec's streams into samples: as it is written, or replayed by size.

A recording decodes some rows by some frames. Rows that are too few are filled up with the
spare one, which belongs to nobody; a row with fewer frames than others goes on by its own,
where the step can do that. More frames than a recording has, or than fill one where the step
cannot, are decoded in pieces: a stream goes on from piece to piece. Knows rows, no slots and
no requests.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Protocol

import numpy as np
import torch
from torch import Tensor

from engine.model.codec import CodecDecoder, CodecState
from engine.types import CODEBOOKS
from engine.worker.backends import Candidate, select_backend
from engine.worker.codec.codec_batching import (
    FRAMES,
    ROWS,
    bucket_sizes,
    frame_bucket,
    plan_replays,
    row_bucket,
    split_frames,
)
from engine.worker.cuda_graphs import Capture, GraphRunner, graph_capture
from engine.worker.staging import place
from engine.worker.state.prompts import to_device
from engine.worker.step_output import to_host

if TYPE_CHECKING:
    from engine.worker.codec.fused_decoder import FusedDecoder

CODEC_TOLERANCE = 0.4  # relative RMS: float16 has 0.004 to 0.06, bfloat16 0.04 to 0.24
PIECE = 64  # frames of a reference that are gone through at a time
FULL_SCALE = 32767

# rows, frames of each, and int16 [R, samples] for the host, with whatever behind a row's own
Batch = tuple[Sequence[int], Sequence[int], Tensor]


class Step(Protocol):
    """Advances rows [B] of a state by codes [B, frames, 16].

    Past the end of speech codes make no sense, and may be larger than any that it knows.
    """

    receptive_frames: int  # frames back that the convolutions remember
    ragged: bool  # rows can go on by fewer frames than the others, or by none

    def __call__(
        self, codes: Tensor, state: CodecState, rows: Tensor, counts: Tensor | None = None
    ) -> Tensor:
        """int16 samples [B, frames * hop]. With counts [B] a row goes on by its first frames
        only, if the step is ragged; samples behind these have no meaning."""
        ...

    def skip(self, codes: Tensor, state: CodecState, rows: Tensor) -> None:
        """Nobody hears it; the sound is right again `receptive_frames` later."""
        ...


class CodecStepper(Protocol):
    def __call__(
        self, rows: Sequence[int], codes: Tensor, counts: Sequence[int]
    ) -> Sequence[Batch]:
        """Rows go on by as many of their codes [B, frames, 16] each, the longest first."""
        ...

    def listen(self, row: int, codes: Tensor) -> None:
        """Bring a row to where these codes [frames, 16] leave it; nobody hears them.

        Only the last are decoded: of the others no convolution remembers anything.
        """
        ...

    def reset(self, rows: Sequence[int]) -> None:
        """Back to silence."""
        ...


def select_codec(codec: CodecDecoder, state: CodecState, padding_row: int) -> CodecStepper:
    """What suits the device; the spare row is the state's that no stream has."""
    dtype, record = state.pasts.dtype, graph_capture(state.pasts.device)
    if record is None:
        return EagerCodec(PlainStep(codec, dtype), state)
    step = select_step(codec, state, padding_row) or PlainStep(codec, dtype)
    return GraphCodec(step, state, padding_row, record)


def select_step(codec: CodecDecoder, state: CodecState, padding_row: int) -> Step | None:
    """The fused decoder where it runs and agrees with the codec; None: only the plain one."""
    dtype = state.pasts.dtype
    if dtype.itemsize != 2:  # in float32 the libraries' kernels are faster
        return None

    def build() -> FusedDecoder | None:
        from engine.worker.codec.fused_decoder import FusedDecoder, supports  # they need Triton

        if not supports(codec.config):
            return None
        step = FusedDecoder(codec, dtype)
        step.prepare(bucket_sizes(padding_row), state, padding_row)
        rows = torch.full((ROWS[-1],), padding_row, device=state.pasts.device)
        step(rows.new_zeros(len(rows), 1, CODEBOOKS), state, rows)  # with its largest tiles
        return step

    candidate = Candidate("the codec's kernels", build, lambda step: step.difference(codec))
    return select_backend([candidate], None, CODEC_TOLERANCE)


class PlainStep:
    """The decoder's own step: all rows by all frames."""

    ragged = False

    def __init__(self, codec: CodecDecoder, dtype: torch.dtype) -> None:
        self._codec, self.receptive_frames = codec.to(dtype), codec.receptive_frames
        self._codec.fold()

    def __call__(
        self, codes: Tensor, state: CodecState, rows: Tensor, counts: Tensor | None = None
    ) -> Tensor:
        return (self.waves(codes, state, rows) * FULL_SCALE).round().to(torch.int16)

    def waves(self, codes: Tensor, state: CodecState, rows: Tensor) -> Tensor:
        """The same before it is rounded: float32 in [-1, 1]."""
        return self._codec.step(self._known(codes), state, rows).float()

    def skip(self, codes: Tensor, state: CodecState, rows: Tensor) -> None:
        self._codec.skip(self._known(codes), state, rows)

    def _known(self, codes: Tensor) -> Tensor:
        """As the decoder takes them: [B, 16, frames]."""
        last = self._codec.config.codebook_size - 1
        return codes.long().clamp(max=last).transpose(1, 2)


class EagerCodec:
    def __init__(self, step: Step, state: CodecState) -> None:
        self.step, self._state = step, state

    def __call__(self, rows: Sequence[int], codes: Tensor, counts: Sequence[int]) -> list[Batch]:
        same = plan_replays(counts, ragged=False)
        return [(rows[p], counts[p], self._sound(rows[p], codes[p], counts[p])) for p in same]

    def _sound(self, rows: Sequence[int], codes: Tensor, counts: Sequence[int]) -> Tensor:
        index = to_device(rows, codes.device)
        return to_host(self.step(codes[:, : counts[0]], self._state, index))

    def listen(self, row: int, codes: Tensor) -> None:
        first, index = (
            max(0, len(codes) - self.step.receptive_frames),
            to_device([row], codes.device),
        )
        for piece in codes[:first].split(PIECE) if first else ():
            self.step.skip(piece[None], self._state, index)
        self.step(codes[None, first:], self._state, index)

    def reset(self, rows: Sequence[int]) -> None:
        self._state.reset(to_device(rows, self._state.pasts.device))


class GraphCodec:
    def __init__(self, step: Step, state: CodecState, padding_row: int, record: Capture) -> None:
        self._step, self._state, self._padding_row = step, state, padding_row
        self._graphs = GraphRunner(record)
        # what recordings read: rows and how far each goes on; codes by frames
        self._places = torch.zeros(2, ROWS[-1], dtype=torch.long, device=state.pasts.device)
        self._codes = {size: self._none(ROWS[-1], size) for size in FRAMES}

    def __call__(self, rows: Sequence[int], codes: Tensor, counts: Sequence[int]) -> list[Batch]:
        return [
            (rows[p], counts[p], _taken(self._sound(rows[p], codes[p], counts[p])))
            for p in plan_replays(counts, self._step.ragged)
        ]

    def listen(self, row: int, codes: Tensor) -> None:
        first = max(0, len(codes) - self._step.receptive_frames)
        for piece in codes[:first].split(list(split_frames(first))) if first else ():
            self._skip(row, piece)
        self._sound([row], codes[None, first:], [len(codes) - first])

    def reset(self, rows: Sequence[int]) -> None:
        for start in range(0, len(rows), ROWS[-1]):
            self._reset(rows[start : start + ROWS[-1]])

    def warm(self, rows: int) -> None:
        """Capture all sizes up to so many rows, the largest first."""
        for count, frames in bucket_sizes(rows):
            spares = (self._padding_row,) * count
            self._replay(spares, self._none(count, frames), (frames,) * count)
            self.reset(spares)
        for frames in FRAMES:
            self._skip(self._padding_row, self._none(1, frames)[0])

    def _none(self, rows: int, frames: int) -> Tensor:
        device = self._places.device
        return torch.zeros(rows, frames, CODEBOOKS, dtype=torch.int16, device=device)

    def _skip(self, row: int, codes: Tensor) -> None:
        """Codes [frames, 16] of a length that is recorded."""
        index, said = self._places[0, :1], self._codes[len(codes)][:1]
        index.fill_(row)
        said.copy_(codes)
        self._graphs.run(len(codes), lambda: self._step.skip(said, self._state, index))

    def _reset(self, rows: Sequence[int]) -> None:
        index, _ = self._place(rows, ())
        self._graphs.run(("reset", len(index)), lambda: self._state.reset(index))

    def _sound(self, rows: Sequence[int], codes: Tensor, counts: Sequence[int]) -> Tensor:
        """One part, the longest first; the next replay may write over what it gives."""
        frames = counts[0]
        codes = codes[:, :frames]
        if frames in FRAMES or (self._step.ragged and frames < FRAMES[-1]):
            return self._replay(rows, codes, counts)
        made = [
            self._replay(rows, piece, (piece.shape[1],) * len(rows)).clone()
            for piece in codes.split(list(split_frames(frames)), 1)
        ]
        return torch.cat(made, 1)

    def _replay(self, rows: Sequence[int], codes: Tensor, counts: Sequence[int]) -> Tensor:
        """Codes [B, frames, 16] of no more than a recording; int16 [B, samples] of its own."""
        count, frames = codes.shape[:2]
        index, going = self._place(rows, counts)
        said = self._codes[frame_bucket(frames)][: len(index)]
        said[:count, :frames].copy_(codes)
        made = self._graphs.run(said.shape[:2], lambda: self._step(said, self._state, index, going))
        return made[:count]

    def _place(self, rows: Sequence[int], counts: Sequence[int]) -> tuple[Tensor, Tensor]:
        """Rows and counts where a recording for so many reads them, in one copy."""
        wide, free = row_bucket(len(rows)), ROWS[-1] - len(rows)
        filled = (*rows, *(self._padding_row,) * free), (*counts, *(0,) * (ROWS[-1] - len(counts)))
        place(self._places, np.array(filled))
        return self._places[0, :wide], self._places[1, :wide]


def _taken(made: Tensor) -> Tensor:
    """A copy for the host, before the next replay."""
    return to_host(made) if made.is_cuda else made.clone()
