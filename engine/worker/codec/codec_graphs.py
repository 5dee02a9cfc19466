"""Decodes frames of the codec's streams into samples, eagerly or by CUDA graphs.

A graph decodes a bucket of rows by a bucket of frames. Missing rows are filled with the padding
row. A ragged step lets each row advance by its own number of frames; with other steps the rows of a
replay advance equally. More frames than a graph has are decoded in pieces. Knows rows of the codec
state, no slots and no requests.
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
from engine.worker.device import LARGE_WEIGHTS, multiplies_bfloat16, widens_float16
from engine.worker.staging import place
from engine.worker.state.prompts import to_device
from engine.worker.step_output import to_host

if TYPE_CHECKING:
    from engine.worker.codec.cpu_decoder import CpuDecoder
    from engine.worker.codec.fused_decoder import FusedDecoder

CODEC_TOLERANCE = 0.4  # relative RMS: float16 has 0.004 to 0.06, bfloat16 0.04 to 0.24
FLOAT_TOLERANCE = 1e-2  # of float32: trained weights have 2e-6, random ones 2e-4
PRIME_FRAMES = 64  # frames of a reference that `skip` processes at a time
FULL_SCALE = 32767

# rows, frames of each, and int16 [R, samples] for the host; samples past a row's own are undefined
Batch = tuple[Sequence[int], Sequence[int], Tensor]


class Step(Protocol):
    """Advances rows [B] of a state by codes [B, frames, 16].

    Codes after the end of speech are arbitrary and may be out of range.
    """

    receptive_frames: int  # frames that the convolutions look back
    ragged: bool  # rows may advance by different numbers of frames

    def __call__(
        self, codes: Tensor, state: CodecState, rows: Tensor, counts: Tensor | None = None
    ) -> Tensor:
        """int16 samples [B, frames * hop]. With counts [B] a ragged step advances each row by its
        first frames only; later samples are undefined."""
        ...

    def skip(self, codes: Tensor, state: CodecState, rows: Tensor) -> None:
        """Advance without audio; audio is exact again after `receptive_frames`."""
        ...


class CodecStepper(Protocol):
    def __call__(
        self, rows: Sequence[int], codes: Tensor, counts: Sequence[int]
    ) -> Sequence[Batch]:
        """Advance rows by `counts` of their codes [B, frames, 16], the longest first."""
        ...

    def prime(self, row: int, codes: Tensor) -> None:
        """Advance a row by codes [frames, 16] without audio.

        Only the last frames are decoded; the others are skipped.
        """
        ...

    def reset(self, rows: Sequence[int]) -> None:
        """Set rows to the start of a stream."""
        ...


def select_codec(
    codec: CodecDecoder | CpuStep, state: CodecState, padding_row: int
) -> CodecStepper:
    """Graphs where the device has them, else eager. `padding_row`: the state's unused row."""
    if isinstance(codec, CpuStep):
        return EagerCodec(codec, state)
    dtype, capture = state.pasts.dtype, graph_capture(state.pasts.device)
    if capture is None:
        return EagerCodec(PlainStep(codec, dtype), state)
    step = select_step(codec, state, padding_row) or PlainStep(codec, dtype)
    return GraphCodec(step, state, padding_row, capture)


def select_cpu_step(codec: CodecDecoder, threads: int) -> CpuStep | None:
    """The decoder on numba's kernel if it runs here and agrees with the codec. Its states are
    float32."""
    kind = kept_kind(codec)

    def build() -> CpuStep | None:
        from engine.worker.codec.cpu_decoder import CpuDecoder, PackedCodec, supports  # need numba

        if not supports(codec.config):
            return None
        return CpuStep(CpuDecoder(PackedCodec(codec, kind), threads))

    candidate = Candidate(
        "the codec's kernel for CPUs", build, lambda step: step.decoder.difference(codec)
    )
    tolerance = FLOAT_TOLERANCE if kind == "float32" else CODEC_TOLERANCE
    step = select_backend([candidate], None, tolerance)
    if step is not None:
        step.decoder.choose_threads()
    return step


def select_step(codec: CodecDecoder, state: CodecState, padding_row: int) -> Step | None:
    """The fused decoder if it runs here and agrees with the codec; None: use the plain one."""
    dtype = state.pasts.dtype
    if dtype.itemsize != 2:  # in float32 the libraries' kernels are faster
        return None

    def build() -> FusedDecoder | None:
        from engine.worker.codec.fused_decoder import FusedDecoder, supports  # needs Triton

        if not supports(codec.config):
            return None
        step = FusedDecoder(codec, dtype)
        step.prepare(bucket_sizes(padding_row), state, padding_row)
        rows = torch.full((ROWS[-1],), padding_row, device=state.pasts.device)
        step(rows.new_zeros(len(rows), 1, CODEBOOKS), state, rows)  # compiles the largest tiles
        return step

    candidate = Candidate("the codec's kernels", build, lambda step: step.difference(codec))
    return select_backend([candidate], None, CODEC_TOLERANCE)


class PlainStep:
    """The decoder's own step; all rows advance by all frames."""

    ragged = False

    def __init__(self, codec: CodecDecoder, dtype: torch.dtype) -> None:
        self._codec, self.receptive_frames = codec.to(dtype), codec.receptive_frames
        self._codec.fold()

    def __call__(
        self, codes: Tensor, state: CodecState, rows: Tensor, counts: Tensor | None = None
    ) -> Tensor:
        return (self.waves(codes, state, rows) * FULL_SCALE).round().to(torch.int16)

    def waves(self, codes: Tensor, state: CodecState, rows: Tensor) -> Tensor:
        """The same before rounding: float32 in [-1, 1]."""
        return self._codec.step(self._prepared(codes), state, rows).float()

    def skip(self, codes: Tensor, state: CodecState, rows: Tensor) -> None:
        self._codec.skip(self._prepared(codes), state, rows)

    def _prepared(self, codes: Tensor) -> Tensor:
        """Codes as the decoder takes them, in range: [B, 16, frames]."""
        last = self._codec.config.codebook_size - 1
        return codes.long().clamp(max=last).transpose(1, 2)


class CpuStep:
    """The decoder on numba's kernel; all rows advance by all frames."""

    ragged = False

    device = torch.device("cpu")

    def __init__(self, decoder: CpuDecoder) -> None:
        self.decoder, self.receptive_frames = decoder, decoder.receptive_frames
        self.config, self.bytes, self.pasts = decoder.config, decoder.bytes, decoder.packed.pasts

    def __call__(
        self, codes: Tensor, state: CodecState, rows: Tensor, counts: Tensor | None = None
    ) -> Tensor:
        wave = self.decoder.step(codes.transpose(1, 2), state, rows)
        return (wave * FULL_SCALE).round().to(torch.int16)

    def skip(self, codes: Tensor, state: CodecState, rows: Tensor) -> None:
        self.decoder.skip(codes, state, rows)

    def close(self) -> None:
        """End the kernel's threads."""
        self.decoder.team.close()


class EagerCodec:
    def __init__(self, step: Step, state: CodecState) -> None:
        self.step, self._state = step, state

    def __call__(self, rows: Sequence[int], codes: Tensor, counts: Sequence[int]) -> list[Batch]:
        same = plan_replays(counts, ragged=False)
        return [(rows[p], counts[p], self._decode(rows[p], codes[p], counts[p])) for p in same]

    def _decode(self, rows: Sequence[int], codes: Tensor, counts: Sequence[int]) -> Tensor:
        index = to_device(rows, codes.device)
        return to_host(self.step(codes[:, : counts[0]], self._state, index))

    def prime(self, row: int, codes: Tensor) -> None:
        first = max(0, len(codes) - self.step.receptive_frames)
        index = to_device([row], codes.device)
        for piece in codes[:first].split(PRIME_FRAMES) if first else ():
            self.step.skip(piece[None], self._state, index)
        self.step(codes[None, first:], self._state, index)

    def reset(self, rows: Sequence[int]) -> None:
        self._state.reset(to_device(rows, self._state.pasts.device))


class GraphCodec:
    def __init__(self, step: Step, state: CodecState, padding_row: int, capture: Capture) -> None:
        self._step, self._state, self._padding_row = step, state, padding_row
        self._graphs = GraphRunner(capture)
        # static inputs of the graphs: rows and counts; codes by frame bucket
        self._places = torch.zeros(2, ROWS[-1], dtype=torch.long, device=state.pasts.device)
        self._codes = {size: self._zeros(ROWS[-1], size) for size in FRAMES}

    def __call__(self, rows: Sequence[int], codes: Tensor, counts: Sequence[int]) -> list[Batch]:
        return [
            (rows[p], counts[p], _copied(self._decode(rows[p], codes[p], counts[p])))
            for p in plan_replays(counts, self._step.ragged)
        ]

    def prime(self, row: int, codes: Tensor) -> None:
        first = max(0, len(codes) - self._step.receptive_frames)
        for piece in codes[:first].split(list(split_frames(first))) if first else ():
            self._skip(row, piece)
        self._decode([row], codes[None, first:], [len(codes) - first])

    def reset(self, rows: Sequence[int]) -> None:
        for start in range(0, len(rows), ROWS[-1]):
            self._reset(rows[start : start + ROWS[-1]])

    def warm(self, rows: int) -> None:
        """Capture all buckets up to `rows` rows, the largest first."""
        for count, frames in bucket_sizes(rows):
            padding = (self._padding_row,) * count
            self._replay(padding, self._zeros(count, frames), (frames,) * count)
            self.reset(padding)
        for frames in FRAMES:
            self._skip(self._padding_row, self._zeros(1, frames)[0])

    def _zeros(self, rows: int, frames: int) -> Tensor:
        device = self._places.device
        return torch.zeros(rows, frames, CODEBOOKS, dtype=torch.int16, device=device)

    def _skip(self, row: int, codes: Tensor) -> None:
        """Codes [frames, 16] of a length in FRAMES."""
        index, static = self._places[0, :1], self._codes[len(codes)][:1]
        index.fill_(row)
        static.copy_(codes)
        self._graphs.run(len(codes), lambda: self._step.skip(static, self._state, index))

    def _reset(self, rows: Sequence[int]) -> None:
        index, _ = self._place(rows, ())
        self._graphs.run(("reset", len(index)), lambda: self._state.reset(index))

    def _decode(self, rows: Sequence[int], codes: Tensor, counts: Sequence[int]) -> Tensor:
        """Decode rows of one batch, the longest first; the next replay overwrites the result."""
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
        """One replay: codes [B, frames, 16] -> int16 [B, samples] in the graph's memory."""
        count, frames = codes.shape[:2]
        index, advance = self._place(rows, counts)
        static = self._codes[frame_bucket(frames)][: len(index)]
        static[:count, :frames].copy_(codes)
        made = self._graphs.run(
            static.shape[:2], lambda: self._step(static, self._state, index, advance)
        )
        return made[:count]

    def _place(self, rows: Sequence[int], counts: Sequence[int]) -> tuple[Tensor, Tensor]:
        """Copy rows and counts to the graphs' static inputs in one transfer."""
        wide, free = row_bucket(len(rows)), ROWS[-1] - len(rows)
        filled = (*rows, *(self._padding_row,) * free), (*counts, *(0,) * (ROWS[-1] - len(counts)))
        place(self._places, np.array(filled))
        return self._places[0, :wide], self._places[1, :wide]


def _copied(made: Tensor) -> Tensor:
    """A copy for the host, made before the next replay."""
    return to_host(made) if made.is_cuda else made.clone()


def kept_kind(codec: CodecDecoder) -> str:
    """What the kernel for CPUs keeps a decoder's weights in; see PackedCodec."""
    if codec.bytes < LARGE_WEIGHTS:
        return "float32"
    return "bfloat16" if multiplies_bfloat16() else "float16" if widens_float16() else "float32"
