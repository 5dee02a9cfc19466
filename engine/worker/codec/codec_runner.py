"""Frames into sound: the codec's streams, one for each slot, and what a reference leaves in them.

Streams that are due are decoded together, wherever they are and however far they go on. A
reference is listened to once; later the state that it leaves is put in place. On a GPU all of
it has a stream of its own beside the talker's.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import torch
import torch.nn.functional as F
from torch import Tensor

from engine.model.codec import CodecDecoder, CodecState
from engine.plan import ReferencePrompt
from engine.worker.codec.codec_graphs import GraphCodec, select_codec
from engine.worker.reference.reference_encoder import LRUCache
from engine.worker.state.prompts import to_device
from engine.worker.step_output import StepAudio

# slots, codes [B, frames, 16] that are the next of their streams, how many of them each goes on by
Due = tuple[Sequence[int], Tensor, Sequence[int]]


class CodecRunner:
    """The codec and a stream for each slot."""

    def __init__(
        self, codec: CodecDecoder, slots: int, cache: LRUCache[str, CodecState], dtype: torch.dtype
    ) -> None:
        self._device, self._cache = next(codec.parameters()).device, cache
        # the spare row is where references are decoded, and where nobody's frames go
        self._state = CodecState.allocate(codec.config, slots + 1, self._device, dtype)
        self._padding_row, self._hop = slots, codec.config.hop
        self._weights = sum(weight.nbytes for weight in codec.parameters())
        self._stepper = select_codec(codec, self._state, slots)
        self._stream = torch.cuda.Stream(self._device) if self._device.type == "cuda" else None

    @property
    def bytes(self) -> int:
        return self._weights + _size(self._state) + self._cache.bytes

    def warm(self) -> None:
        """Capture what comes up most, so that nobody has to wait for it."""
        if isinstance(self._stepper, GraphCodec):
            with self._beside():
                self._stepper.warm(self._padding_row)

    def open(self, admitted: Sequence[tuple[int, ReferencePrompt | None]]) -> None:
        """Start streams of slots: from silence, or from where their references end."""
        silent = [slot for slot, reference in admitted if reference is None]
        with self._beside():
            if silent:
                self._stepper.reset(silent)
            for slot, reference in admitted:
                if reference is not None:
                    self._state.restore(to_device([slot], self._device), self._after(reference))

    def decode(self, work: Sequence[Due]) -> StepAudio:
        for _, codes, _ in work:
            if self._stream is not None:
                codes.record_stream(self._stream)
        with self._beside():
            batches = [
                (slots, [self._hop * frames for frames in counts], sound)
                for slots, counts, sound in self._stepper(*_merged(work))
            ]
            return StepAudio(batches, self._mark())

    @contextmanager
    def _beside(self) -> Iterator[None]:
        """After what has been launched so far, and beside what comes next."""
        if self._stream is None:
            yield
            return
        self._stream.wait_stream(torch.cuda.current_stream(self._device))
        with torch.cuda.stream(self._stream):
            yield

    def _mark(self) -> torch.cuda.Event | None:
        if self._stream is None:
            return None
        event = torch.cuda.Event()
        event.record(self._stream)
        return event

    def _after(self, reference: ReferencePrompt) -> CodecState:
        return self._cache.get(reference.key, lambda: self._load_encoders(reference), _size)

    def _load_encoders(self, reference: ReferencePrompt) -> CodecState:
        """The state that a reference leaves."""
        row = to_device([self._padding_row], self._device)
        self._state.reset(row)
        self._stepper.listen(self._padding_row, to_device(reference.codes, self._device))
        return self._state.snapshot(row)


def _merged(work: Sequence[Due]) -> Due:
    """One batch, the longest first."""
    slots = [slot for own, _, _ in work for slot in own]
    counts = [frames for _, _, own in work for frames in own]
    codes = _joined([codes for _, codes, _ in work], max(counts))
    order = sorted(range(len(slots)), key=lambda at: -counts[at])
    if order == list(range(len(slots))):
        return slots, codes, counts
    codes = codes[to_device(order, codes.device)]
    return [slots[at] for at in order], codes, [counts[at] for at in order]


def _joined(codes: Sequence[Tensor], longest: int) -> Tensor:
    """Each [B, frames, 16], filled up to the longest: what is put there means nothing."""
    if len(codes) == 1:
        return codes[0]
    return torch.cat([F.pad(each, (0, 0, 0, longest - each.shape[1])) for each in codes])


def _size(state: CodecState) -> int:
    return sum(tensor.nbytes for tensor in state.tensors)
