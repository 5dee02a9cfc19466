"""A loaded talker and its slots: admission, text, prefill and frames.

Rows count from 0 here; which slot numbers they stand for is the worker's business. The
host's own counts (prompt rows, frames, texts) are kept beside the tensors, so that no step
has to ask the device for a length.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import TypeAlias

import numpy as np
import torch
from torch import Tensor

from engine.checkpoints.checkpoint import SpecialIds
from engine.errors import StepFailed
from engine.model.talker import Talker
from engine.plan import Admit, AppendText, Prefill
from engine.worker.cuda_graphs import recorder
from engine.worker.staging import StagingBuffer
from engine.worker.state.cuda_vmm import DriverError
from engine.worker.state.memory_budget import check_left, grows_on, slots_for
from engine.worker.state.prompts import Embedder, PromptRows, to_device
from engine.worker.state.row_metadata import RowMetadata
from engine.worker.state.sampling import CANDIDATES
from engine.worker.state.slot_state import OPENED, TOLD, Slots, openings, telling
from engine.worker.talker.decode_graphs import PlainSteps, ReplayedSteps, Steps
from engine.worker.talker.decode_step import BatchBounds, FrameStep
from engine.worker.talker.mixed_batch import Together
from engine.worker.talker.prefill import BLOCK, Filling, Piece, ReplayedFilling

OPENINGS = (1, 2, 4, 8, 16, 32, 64)  # admissions in one recording
TELLINGS = (16, 64, 256)  # ids of text tracks in one recording


@dataclass
class RowState:
    """What the host knows of a row in use."""

    prompt: PromptRows
    texts: int  # length of the text track


@dataclass(frozen=True)
class FrameBatch:
    """Frames that are being made."""

    rows: tuple[int, ...]
    made: Tensor  # [R, 17] codes, and whether the speech ends


Half: TypeAlias = Callable[[], FrameBatch]  # what is left of a frame whose codes are there


class ModelRunner:
    def __init__(
        self,
        talker: Talker,
        ids: SpecialIds,
        slots: int,
        positions: int,
        device: torch.device,
        dtype: torch.dtype,
        grows: bool = False,
    ) -> None:
        self.talker, self.embedder = talker, Embedder(talker, ids)
        self.slots = Slots.allocate(talker.config, slots, positions, device, dtype, grows)
        self.step = FrameStep(talker, ids, self.slots, self.embedder.pad)
        self.ledger, record = RowMetadata(slots), recorder(device)
        self.steps: Steps = PlainSteps(self.step)
        self.filling: Filling | ReplayedFilling = Filling(self.step, self.ledger)
        self._together: Together | None = None
        if record:
            self.steps = steps = ReplayedSteps(self.step, record)
            self.filling = filling = ReplayedFilling(self.step, self.ledger, record)
            if self.fused:
                self._together = Together(self.step, steps, filling, record)
        place = self.slots.spare, device, record
        self._open = StagingBuffer(self.slots.open, OPENED, OPENINGS, *place)
        self._tell = StagingBuffer(partial(_append, talker, self.slots), TOLD, TELLINGS, *place)
        self.tenants: dict[int, RowState] = {}
        self.timings: Mapping[int, float] = {}  # seconds of a step by rows
        self._positions = positions

    @property
    def rows(self) -> int:
        return self.slots.spare

    @property
    def fused(self) -> bool:
        """The talker runs on kernels of our own, which read no further than rows go."""
        return self.step.talk is not None

    def warm(self) -> None:
        """Record what comes up most, so that nobody has to wait for it."""
        if isinstance(self.steps, ReplayedSteps):
            usual = BatchBounds(1, CANDIDATES, CANDIDATES)
            self.steps.warm(usual)
            self.timings = self.steps.timings(usual)
            if self._together:
                self._together.warm(usual)
        if isinstance(self.filling, ReplayedFilling):
            self.filling.warm(CANDIDATES)
        self._open.warm()
        self._tell.warm()

    @property
    def bytes(self) -> int:
        return self.slots.bytes + sum(weight.nbytes for weight in self.talker.parameters())

    def admit(self, admits: Sequence[tuple[int, Admit]]) -> None:
        """Give rows to sequences: all of them, or none."""
        for row, admit in admits:
            self._check(row, admit)
        for row, admit in admits:
            self._reach(row, admit, {row for row, _ in admits})
        prompts = self.embedder.layout([admit.prompt for _, admit in admits])
        for prompt in prompts:
            self._check_text(len(prompt.spoken))
        pairs = list(zip(admits, prompts, strict=True))
        self._open(openings(admits, prompts))
        told = [telling(row, 0, prompt.spoken) for (row, _), prompt in pairs if prompt.spoken]
        if told:
            self._tell(np.concatenate(told))
        for (row, admit), prompt in pairs:
            self.tenants[row] = RowState(prompt, len(prompt.spoken))
            self.ledger.open(row, len(prompt), admit.sampling)

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

    def _reach(self, row: int, admit: Admit, given: set[int]) -> None:
        """Memory for all it may need, if need be that of free rows, which those that are `given`
        now are not. A prompt's last block is whole."""
        positions = min(len(admit.prompt) + admit.max_frames + BLOCK, self._positions)
        if positions > self.slots.held(row):
            try:
                self._grow(row, positions)
            except torch.OutOfMemoryError:
                self.slots.shrink([*{*range(self.rows)} - self.tenants.keys() - given])
                self._grow(row, positions)

    def _grow(self, row: int, positions: int) -> None:
        check_left(self.step.device)
        self.slots.reach(row, positions)

    def _check_text(self, texts: int) -> None:
        if texts > self._positions:
            raise StepFailed("More text than a slot can hold. Shorten the text.")

    def release(self, row: int) -> None:
        self.tenants.pop(row, None)
        self.ledger.close(row)

    def clear(self) -> None:
        """Every row is free."""
        for row in tuple(self.tenants):
            self.release(row)

    def feed(self, row: int, feed: AppendText) -> None:
        tenant, ids = self.tenants[row], self.embedder.ended(feed.text_ids, feed.closed)
        self._check_text(tenant.texts + len(ids))
        if ids:
            self._tell(telling(row, tenant.texts, ids))
            tenant.prompt.hear(tenant.texts, ids)
            tenant.texts += len(ids)

    def speak(self, due: Iterable[tuple[int, Prefill]], rows: Sequence[int]) -> Half | None:
        """Run pieces of prompts, then make the codes of a frame of these rows; pieces may also be
        left for the other half."""
        pieces = self._pieces(due)
        if self._beside(pieces, rows):
            return self._frames(rows, partial(self._together, pieces))  # type: ignore[arg-type]
        if pieces:
            self.filling(pieces)
        return self._frames(rows, self.steps) if rows else None

    def prefill(self, due: Iterable[tuple[int, Prefill]]) -> None:
        """Run pieces of prompts."""
        self.filling(self._pieces(due))

    def frames(self, rows: Sequence[int]) -> FrameBatch:
        """A whole frame of these rows."""
        return self._frames(rows, self.steps)()

    def _beside(self, pieces: Sequence[Piece], rows: Sequence[int]) -> bool:
        together = self._together if pieces and rows else None
        return together is not None and together.takes(pieces, rows, self.ledger.extent(rows))

    def _pieces(self, due: Iterable[tuple[int, Prefill]]) -> list[Piece]:
        return [Piece(row, self.tenants[row].prompt, each.start, each.stop) for row, each in due]

    def _frames(self, rows: Sequence[int], steps: Steps) -> Half:
        ordered = tuple(sorted(rows))
        rest = steps(ordered, self.ledger.extent(ordered))
        self.ledger.step(ordered)
        return lambda: FrameBatch(ordered, rest())

    def made(self, rows: Sequence[int], starts: Sequence[int], frames: int) -> Tensor:
        """Codes [B, frames, 16] that have been made, from each row's start on; behind what it has
        there are any."""
        after = np.array(starts)[:, None] + np.arange(frames)
        first = np.array(rows)[:, None] * self._positions  # of the row, where all lie in one
        places = first + np.minimum(after, self._positions - 1)
        return self.slots.made.flatten(0, 1)[to_device(places, self.step.device)]


def _append(talker: Talker, slots: Slots, table: Tensor) -> None:
    """Text of `telling` into its slots."""
    slots.append(table, talker.embed_text(table[:, 3]))


def lane_for(
    talker: Talker,
    ids: SpecialIds,
    wanted: int,
    positions: int,
    device: torch.device,
    dtype: torch.dtype,
    among: int,
) -> ModelRunner:
    """With so many slots, or as many as there is room for; their memory grows where it can."""

    def made(grows: bool) -> ModelRunner:
        slots = slots_for(talker.config, wanted, positions, device, dtype, among, grows)
        return ModelRunner(talker, ids, slots, positions, device, dtype, grows)

    if grows_on(device):
        with suppress(DriverError):
            lane = made(grows=True)
            if lane.fused:
                return lane
            del lane  # its memory, before another is made
    return made(grows=False)
