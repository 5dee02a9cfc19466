"""Frames into sound: the codec's streams, one for each slot, and what a reference leaves in them.

Streams that are due for the same number of frames are decoded together, wherever each of
them is. A reference is listened to once; later the state that it leaves is put in place. On
a GPU all of it has a stream of its own beside the talker's.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import torch
from torch import Tensor

from engine.model.codec import CodecDecoder, CodecState
from engine.plan import ReferencePrompt
from engine.worker.pending import Sound, to_host
from engine.worker.prompts import to_device
from engine.worker.references import Shelf
from engine.worker.sounding import ReplayedSounding, sounding

Due = tuple[list[int], Tensor]  # slots, and codes [B, frames, 16], each the next of its stream


class Decoding:
    """The codec and a stream for each slot."""

    def __init__(
        self, codec: CodecDecoder, slots: int, shelf: Shelf[str, CodecState], dtype: torch.dtype
    ) -> None:
        self._device, self._shelf = next(codec.parameters()).device, shelf
        # the spare row is where references are decoded, and where nobody's frames go
        self._state = CodecState.allocate(codec.shape, slots + 1, self._device, dtype)
        self._spare, self._last = slots, codec.shape.codebook_size - 1
        self._weights = sum(weight.nbytes for weight in codec.parameters())
        self._sounding = sounding(codec, self._state, slots)
        self._stream = torch.cuda.Stream(self._device) if self._device.type == "cuda" else None

    @property
    def bytes(self) -> int:
        return self._weights + _size(self._state) + self._shelf.bytes

    def warm(self) -> None:
        """Record what comes up most, so that nobody has to wait for it."""
        if isinstance(self._sounding, ReplayedSounding):
            with self._beside():
                self._sounding.warm(self._spare)

    def open(self, admitted: Sequence[tuple[int, ReferencePrompt | None]]) -> None:
        """Start streams of slots: from silence, or from where their references end."""
        silent = [slot for slot, reference in admitted if reference is None]
        with self._beside():
            if silent:
                self._state.reset(to_device(silent, self._device))
            for slot, reference in admitted:
                if reference is not None:
                    self._state.put(to_device([slot], self._device), self._after(reference))

    def decode(self, work: Sequence[Due]) -> Sound:
        for _, codes in work:
            if self._stream is not None:
                codes.record_stream(self._stream)
        with self._beside():
            batches = [
                (slots, to_host(self._samples(slots, codes))) for slots, codes in _merged(work)
            ]
            return Sound(batches, self._mark())

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
        event = torch.cuda.Event(enable_timing=True)
        event.record(self._stream)
        return event

    def _samples(self, slots: Sequence[int], codes: Tensor) -> Tensor:
        return self._sounding(slots, self._codes(codes))

    def _codes(self, codes: Tensor) -> Tensor:
        """Past the end of speech there is no sense in them."""
        return codes.long().clamp(max=self._last)

    def _after(self, reference: ReferencePrompt) -> CodecState:
        return self._shelf.get(reference.key, lambda: self._listen(reference), _size)

    def _listen(self, reference: ReferencePrompt) -> CodecState:
        """The state that a reference leaves."""
        row = to_device([self._spare], self._device)
        self._state.reset(row)
        self._sounding.listen(self._spare, self._codes(to_device(reference.codes, self._device)))
        return self._state.take(row)


def _merged(work: Sequence[Due]) -> Iterator[Due]:
    """One batch for each number of frames."""
    for frames in {codes.shape[1]: None for _, codes in work}:
        same = [due for due in work if due[1].shape[1] == frames]
        slots = [slot for slots, _ in same for slot in slots]
        yield slots, torch.cat([codes for _, codes in same]) if len(same) > 1 else same[0][1]


def _size(state: CodecState) -> int:
    return sum(tensor.nbytes for tensor in state.tensors)
