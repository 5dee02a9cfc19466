"""A loaded talker and its slots: admission, text, prefill and frames.

Rows count from 0 here; which slot numbers they stand for is the worker's business. The
host's own counts (prompt rows, frames, texts) are kept beside the tensors, so that no step
has to ask the device for a length.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from engine.checkpoint import SpecialIds
from engine.errors import StepFailed
from engine.model.talker import Talker
from engine.plan import Admit, Feed, Prefill
from engine.worker.filling import Filling, Piece, ReplayedFilling
from engine.worker.frames import Extent, FrameStep
from engine.worker.graphs import recorder
from engine.worker.ledger import Ledger
from engine.worker.prompts import Embedder, PromptRows, to_device
from engine.worker.sampling import CANDIDATES
from engine.worker.slots import Slots
from engine.worker.steps import PlainSteps, ReplayedSteps, Steps


@dataclass
class Tenant:
    """What the host knows of a row in use."""

    prompt: PromptRows
    texts: int  # length of the text track


@dataclass(frozen=True)
class FrameBatch:
    """Frames that are being made."""

    rows: tuple[int, ...]
    made: Tensor  # [R, 17] codes, and whether the speech ends


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
        self.ledger, record = Ledger(slots), recorder(device)
        self.steps: Steps = PlainSteps(self.step)
        self.filling: Filling | ReplayedFilling = Filling(self.step, self.ledger)
        if record:
            self.steps = ReplayedSteps(self.step, record)
            self.filling = ReplayedFilling(self.step, self.ledger, record)
        self.tenants: dict[int, Tenant] = {}
        self.timings: Mapping[int, float] = {}  # seconds of a step by rows
        self._positions = positions

    @property
    def rows(self) -> int:
        return self.slots.spare

    def warm(self) -> None:
        """Record what comes up most, so that nobody has to wait for it."""
        if isinstance(self.steps, ReplayedSteps):
            usual = Extent(1, CANDIDATES, CANDIDATES)
            self.steps.warm(usual)
            self.timings = self.steps.timings(usual)
        if isinstance(self.filling, ReplayedFilling):
            self.filling.warm(CANDIDATES)

    @property
    def bytes(self) -> int:
        return self.slots.bytes + sum(weight.nbytes for weight in self.talker.parameters())

    def admit(self, admits: Sequence[tuple[int, Admit]]) -> None:
        """Give rows to sequences: all of them, or none."""
        for row, admit in admits:
            self._check(row, admit)
        prompts = self.embedder.layout([admit.prompt for _, admit in admits])
        self.slots.open(admits, prompts)
        for (row, admit), prompt in zip(admits, prompts, strict=True):
            self.tenants[row] = Tenant(prompt, len(prompt.track))
            self.ledger.open(row, len(prompt), admit.draw)

    def _check(self, row: int, admit: Admit) -> None:
        if row in self.tenants:
            raise StepFailed(
                "Slot {slot} is taken. This is a fault of the engine.", slot=admit.slot
            )
        if len(admit.prompt) + admit.max_frames > self._positions:
            raise StepFailed(
                "The prompt has {count} rows and up to {frames} frames "
                "follow: more than the {positions} positions of a slot. Shorten the text.",
                count=len(admit.prompt),
                frames=admit.max_frames,
                positions=self._positions,
            )

    def release(self, row: int) -> None:
        self.tenants.pop(row, None)
        self.ledger.close(row)

    def clear(self) -> None:
        """Every row is free."""
        for row in tuple(self.tenants):
            self.release(row)

    def feed(self, row: int, feed: Feed) -> None:
        tenant = self.tenants[row]
        track = self.embedder.track(feed.text_ids, feed.closed)
        if tenant.texts + len(track) > self._positions:
            raise StepFailed("More text than a slot can hold. Shorten the text.")
        self.slots.append(row, tenant.texts, track)
        tenant.texts += len(track)

    def prefill(self, pieces: Iterable[tuple[int, Prefill]]) -> None:
        """Run pieces of prompts."""
        self.filling([self._cut(row, due) for row, due in pieces])

    def _cut(self, row: int, due: Prefill) -> Piece:
        ends = due.stop == len(self.tenants[row].prompt)
        return Piece(row, self._piece(row, due), due.start, ends)

    def frames(self, rows: Sequence[int]) -> FrameBatch:
        ordered = tuple(sorted(rows))
        made = self.steps(ordered, self.ledger.extent(ordered))
        self.ledger.step(ordered)
        return FrameBatch(ordered, made)

    def made(self, rows: Sequence[int], starts: Sequence[int], frames: int) -> Tensor:
        """Codes of frames that have been made, from each row's start on: [B, frames, 16]."""
        places = to_device([rows, starts], self.step.device)[..., None]  # [2, B, 1]
        after = torch.arange(frames, device=self.step.device)
        return self.slots.made[places[0], places[1] + after]

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
