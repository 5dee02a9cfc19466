"""Frames into sound: the codec's streams, one for each slot, and what a reference leaves in them.

Streams that are due for the same number of frames are decoded together, wherever each of
them is. A reference is decoded once; later the state that it leaves is put in place.
"""

from __future__ import annotations

from collections.abc import Mapping

import torch
from torch import Tensor

from engine.model.codec import CodecDecoder, CodecState
from engine.plan import ReferencePrompt
from engine.worker.prompts import to_device
from engine.worker.references import Shelf

PIECE = 64  # frames of a reference decoded at a time
FULL_SCALE = 32767


class Decoding:
    """The codec and a stream for each slot."""

    def __init__(
        self, codec: CodecDecoder, slots: int, shelf: Shelf[str, CodecState], dtype: torch.dtype
    ) -> None:
        self._codec, self._shelf = codec, shelf
        self._device = next(codec.parameters()).device
        # the spare row is where references are decoded
        self._state = CodecState.allocate(codec.shape, slots + 1, self._device, dtype)
        self._spare = slots

    @property
    def bytes(self) -> int:
        weights = sum(weight.nbytes for weight in self._codec.parameters())
        return weights + _size(self._state) + self._shelf.bytes

    def open(self, slot: int, reference: ReferencePrompt | None) -> None:
        """Start a slot's stream: from silence, or from where its reference ends."""
        row = to_device([slot], self._device)
        if reference is None:
            self._state.reset(row)
        else:
            self._state.put(row, self._after(reference))

    def decode(self, work: Mapping[int, Tensor]) -> dict[int, Tensor]:
        """Codes [frames, 16] by slot, each the next of its stream -> int16 samples by slot."""
        groups: dict[int, list[int]] = {}
        for slot, codes in work.items():
            groups.setdefault(len(codes), []).append(slot)
        sound: dict[int, Tensor] = {}
        for slots in groups.values():
            waves = self.waves(slots, torch.stack([work[slot] for slot in slots]))
            sound |= zip(slots, (waves * FULL_SCALE).round().to(torch.int16), strict=True)
        return sound

    def waves(self, slots: list[int], codes: Tensor) -> Tensor:
        """Codes [B, frames, 16] of these slots -> samples [B, frames * hop] in [-1, 1]."""
        last = self._codec.shape.codebook_size - 1  # past the end of speech there is no sense
        codes = codes.long().clamp(max=last).transpose(1, 2)
        return self._codec.step(codes, self._state, to_device(slots, self._device)).float()

    def _after(self, reference: ReferencePrompt) -> CodecState:
        return self._shelf.get(reference.key, lambda: self._listen(reference), _size)

    def _listen(self, reference: ReferencePrompt) -> CodecState:
        """The state that a reference leaves."""
        row = to_device([self._spare], self._device)
        self._state.reset(row)
        codes = to_device(reference.codes, self._device)
        for piece in codes.split(PIECE):
            self.waves([self._spare], piece[None])
        return self._state.take(row)


def _size(state: CodecState) -> int:
    return sum(tensor.nbytes for tensor in state.tensors)
