"""A loaded talker and its slots: admission, text, prefill and frames.

Rows count from 0 here; which slot numbers they stand for is the worker's business. The
host's own counts (prompt rows, frames, texts) are kept beside the tensors, so that no step
has to ask the device for a length.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from engine.checkpoint import SpecialIds
from engine.errors import StepFailed
from engine.model.talker import Talker
from engine.plan import Admit, Draw, Feed, Prefill
from engine.worker.cache import Rows
from engine.worker.frames import Extent, FrameStep
from engine.worker.prompts import Embedder, PromptRows, to_device
from engine.worker.sampling import candidates, uniforms
from engine.worker.slots import Slots

ROUND = 64  # attention reads up to a multiple of this many positions


@dataclass
class Tenant:
    """What the host knows of a row in use."""

    prompt: PromptRows
    draw: Draw
    texts: int  # length of the text track
    frames: int = 0


@dataclass(frozen=True)
class FrameBatch:
    """Frames that are being made."""

    rows: tuple[int, ...]
    codes: Tensor  # [R, 16]
    ended: Tensor  # [R]


class Lane:
    def __init__(
        self,
        talker: Talker,
        ids: SpecialIds,
        slots: int,
        positions: int,
        device: torch.device,
        dtype: torch.dtype,
    ) -> None:
        self.talker, self.embedder = talker, Embedder(talker, ids)
        self.slots = Slots.allocate(talker.shape, slots, positions, device, dtype)
        self.step = FrameStep(talker, ids, self.slots, self.embedder.pad)
        self.tenants: dict[int, Tenant] = {}
        self._device, self._positions = device, positions

    @property
    def bytes(self) -> int:
        return self.slots.bytes + sum(weight.nbytes for weight in self.talker.parameters())

    def admit(self, row: int, admit: Admit) -> None:
        if row in self.tenants:
            raise StepFailed(f"Slot {admit.slot} is taken. This is a fault of the engine.")
        if len(admit.prompt) + admit.max_frames > self._positions:
            raise StepFailed(
                f"The prompt has {len(admit.prompt)} rows and up to {admit.max_frames} frames "
                f"follow: more than the {self._positions} positions of a slot. Shorten the text."
            )
        prompt = self.embedder.layout(admit.prompt)
        self.slots.open(row, admit, prompt)
        self.tenants[row] = Tenant(prompt, admit.draw, len(prompt.track))

    def release(self, row: int) -> None:
        self.tenants.pop(row, None)

    def feed(self, row: int, feed: Feed) -> None:
        tenant = self.tenants[row]
        track = self.embedder.track(feed.text_ids, feed.closed)
        if tenant.texts + len(track) > self._positions:
            raise StepFailed("More text than a slot can hold. Shorten the text.")
        self.slots.append(row, tenant.texts, track)
        tenant.texts += len(track)

    def prefill(self, pieces: Iterable[tuple[int, Prefill]]) -> None:
        """Run pieces of prompts, those of like length together."""
        groups: dict[int, list[tuple[int, Prefill]]] = {}
        for row, piece in pieces:
            groups.setdefault((piece.stop - piece.start - 1).bit_length(), []).append((row, piece))
        for group in groups.values():
            self._prefill(group)

    def frames(self, rows: Sequence[int]) -> FrameBatch:
        ordered = tuple(sorted(rows))
        tenants = [self.tenants[row] for row in ordered]
        place, index = self._place(ordered)
        extent = Extent(
            self._extent(len(tenant.prompt) + tenant.frames + 1 for tenant in tenants),
            candidates((tenant.draw.greedy, tenant.draw.top_k) for tenant in tenants),
            candidates(
                (tenant.draw.predictor_greedy, tenant.draw.predictor_top_k) for tenant in tenants
            ),
        )
        codes, ended = self.step(place, index, extent)
        for tenant in tenants:
            tenant.frames += 1
        return FrameBatch(ordered, codes, ended)

    def made(self, row: int, start: int, stop: int) -> Tensor:
        """Codes of frames that have been made: [stop - start, 16]."""
        return self.slots.made[row, start:stop]

    def _prefill(self, group: Sequence[tuple[int, Prefill]]) -> None:
        rows = tuple(row for row, _ in group)
        index = to_device(rows, self._device)
        x = self._inputs(group)  # [R, T, width]
        starts = to_device([piece.start for _, piece in group], self._device)
        positions = starts[:, None] + torch.arange(x.shape[1], device=self._device)
        # Rows shorter than the longest run on into positions that are written again later.
        positions = positions.clamp(max=self._positions - 1)
        extent = self._extent(piece.start + x.shape[1] for _, piece in group)
        hidden = self.step.run(x, index, index, positions, extent)
        self._begin(
            [
                (row, hidden[at, piece.stop - piece.start - 1])
                for at, (row, piece) in enumerate(group)
                if piece.stop == len(self.tenants[row].prompt)
            ]
        )

    def _inputs(self, group: Sequence[tuple[int, Prefill]]) -> Tensor:
        """The pieces' rows of their prompts, side by side: [R, T, width]."""
        pieces = [self._piece(row, piece) for row, piece in group]
        return torch.nn.utils.rnn.pad_sequence(pieces, batch_first=True)

    def _piece(self, row: int, piece: Prefill) -> Tensor:
        """Rows [start, stop) of a prompt, with the text that a streamed body has by now."""
        prompt, texts = self.tenants[row].prompt, self.tenants[row].texts
        body = max(piece.start, prompt.body)
        if body >= piece.stop:
            return prompt.rows[piece.start : piece.stop]
        first, last = body - prompt.body, piece.stop - prompt.body
        text = self.slots.text[row, first : min(last, texts)]
        padding = self.embedder.pad.expand(last - first - len(text), -1)
        fixed = prompt.rows[piece.start : body]
        return torch.cat((fixed, prompt.rows[body : piece.stop] + torch.cat((text, padding))))

    def _begin(self, finished: Sequence[tuple[int, Tensor]]) -> None:
        """Draw codebook 0 of the first frame for rows whose prompts are done."""
        if not finished:
            return
        index = to_device([row for row, _ in finished], self._device)
        hidden = torch.stack([last for _, last in finished])  # [R, width]
        before = torch.full_like(index, -1)
        lots = uniforms(self.slots.keys[index], before, self.talker.shape.codebooks)[:, -1:]
        draws = (self.tenants[row].draw for row, _ in finished)
        count = candidates((draw.greedy, draw.top_k) for draw in draws)
        self.step.choose(index, index, hidden, before + 1, lots, count)

    def _place(self, rows: Sequence[int]) -> tuple[Rows, Tensor]:
        """Sorted rows for reading (a slice where they are neighbours) and for writing."""
        index = to_device(rows, self._device)
        if rows[-1] - rows[0] + 1 == len(rows):
            return slice(rows[0], rows[-1] + 1), index
        return index, index

    def _extent(self, positions: Iterable[int]) -> int:
        return min(-(-max(positions) // ROUND) * ROUND, self._positions)
