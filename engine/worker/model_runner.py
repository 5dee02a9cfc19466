"""A loaded talker and its slots: admission, text, prefill and frames.

Rows count from 0; the worker maps slot numbers to them. Prompt rows, frames and texts are also
counted on the host, so that no step has to read a length from the device.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import torch
from torch import Tensor

from engine.checkpoints.checkpoint import SpecialIds
from engine.errors import StepFailed
from engine.model.talker import Talker
from engine.plan import Admit, AppendText, Prefill
from engine.worker.core_shares import CoreShares
from engine.worker.cuda_graphs import graph_capture
from engine.worker.staging import StagingBuffer
from engine.worker.state.cuda_vmm import DriverError
from engine.worker.state.memory_budget import can_grow, check_reserve, slots_for
from engine.worker.state.prompts import Embedder, PromptRows, to_device
from engine.worker.state.row_metadata import BatchBounds, RowMetadata
from engine.worker.state.sampling import CANDIDATES
from engine.worker.state.slot_state import SLOT_COLUMNS, TEXT_COLUMNS, Slots, slot_table, text_table
from engine.worker.talker.cpu_kernels import use_cpu_kernels
from engine.worker.talker.decode_graphs import Decoder, DecodeStep, EagerDecoder, GraphDecoder
from engine.worker.talker.decode_step import FrameStep
from engine.worker.talker.mixed_batch import MixedBatch
from engine.worker.talker.prefill import BLOCK, GraphPrefiller, Prefiller, PromptPiece

if TYPE_CHECKING:
    from engine.worker.kernels.cpu.threads import ThreadTeam
    from engine.worker.loading.start_cache import KernelProof

ADMIT_SIZES = (1, 2, 4, 8, 16, 32, 64)  # admissions per graph
TEXT_SIZES = (16, 64, 256)  # text ids per graph


@dataclass
class RowState:
    """Host state of a row in use."""

    prompt: PromptRows
    texts: int  # length of the text track


@dataclass(frozen=True)
class FrameBatch:
    """A frame of some rows."""

    rows: tuple[int, ...]
    codes: Tensor  # [R, 17] codes, and whether the speech ends


class RunnerStep(NamedTuple):
    """A decode step of some rows whose codes were launched."""

    rows: tuple[int, ...]
    step: DecodeStep

    def codes(self) -> FrameBatch:
        """The frame, before it is known whether the speech ends."""
        return FrameBatch(self.rows, self.step.codes())

    def advance(self) -> FrameBatch:
        """Run the talker for the next frame."""
        return FrameBatch(self.rows, self.step.advance())


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
        self.row_metadata, capture = RowMetadata(slots), graph_capture(device)
        self.decoder: Decoder = EagerDecoder(self.step)
        self.prefiller: Prefiller | GraphPrefiller = Prefiller(self.step, self.row_metadata)
        self._mixed: MixedBatch | None = None
        if capture:
            self.decoder = decoder = GraphDecoder(self.step, capture)
            self.prefiller = prefiller = GraphPrefiller(self.step, self.row_metadata, capture)
            if self.fused:
                self._mixed = MixedBatch(self.step, decoder, prefiller, capture)
        place = self.slots.padding_row, device, capture
        self._open = StagingBuffer(self.slots.open, SLOT_COLUMNS, ADMIT_SIZES, *place)
        self._append = StagingBuffer(
            partial(_append, talker, self.slots), TEXT_COLUMNS, TEXT_SIZES, *place
        )
        self.row_states: dict[int, RowState] = {}
        self.timings: Mapping[int, float] = {}  # seconds of a step by rows
        self.shares: CoreShares | None = None  # of a CPU's cores
        self._positions = positions
        self._threads: ThreadTeam | None = None  # of kernels on a CPU

    @property
    def rows(self) -> int:
        return self.slots.padding_row

    @property
    def fused(self) -> bool:
        """Whether the talker runs on custom kernels, which never read past a row's length."""
        return self.step.talk is not None

    def use_cpu_kernels(self, threads: int, proof: KernelProof | None = None) -> bool:
        """Take frames with numba's kernels, on up to so many threads, if they run here."""
        self._threads = use_cpu_kernels(self.step, threads, proof)
        return self._threads is not None

    @property
    def on_cpu_kernels(self) -> bool:
        return self._threads is not None

    def close(self) -> None:
        """End the kernels' threads."""
        if self._threads is not None:
            self._threads.close()

    @property
    def threads(self) -> int:
        """Of its kernels, at most; 0: it has none."""
        return self._threads.size if self._threads else 0

    def codec_threads(self, rows: int, first: bool = False) -> int:
        """Threads of the codec beside a step of so many rows; see CoreShares."""
        return self.shares.codec(rows, first) if self.shares else 0

    def leave_cores(self, threads: int) -> None:
        """Use so many threads at most from now on: others have the cores."""
        if self._threads is not None:
            self._threads.most = max(1, threads)

    def share(self, shares: CoreShares) -> None:
        """Share the cores with the codec."""
        self.shares = shares
        self.timings = {0: 0.0, **{rows: shares.seconds(rows) for rows in shares.times.steps}}

    def step_seconds(self) -> float:
        """Seconds of a step of one row without graphs."""
        assert isinstance(self.decoder, EagerDecoder)
        return self.decoder.seconds(BatchBounds(1, CANDIDATES, CANDIDATES))

    def run_step(self, rows: int, threads: int) -> None:
        """A step of so many rows that nobody hears, on at most so many threads."""
        assert isinstance(self.decoder, EagerDecoder)
        self.leave_cores(threads)
        self.decoder.run(rows, BatchBounds(1, CANDIDATES, CANDIDATES))

    def warm(self) -> None:
        """Capture the graphs that most requests need."""
        if isinstance(self.decoder, GraphDecoder):
            usual = BatchBounds(1, CANDIDATES, CANDIDATES)
            self.decoder.warm(usual)
            self.timings = self.decoder.timings(usual)
            if self._mixed:
                self._mixed.warm(usual)
        if isinstance(self.prefiller, GraphPrefiller):
            self.prefiller.warm(CANDIDATES)
        self._open.warm()
        self._append.warm()

    @property
    def bytes(self) -> int:
        return self.slots.bytes + sum(weight.nbytes for weight in self.talker.parameters())

    @property
    def weights(self) -> int:
        """Bytes of its networks."""
        networks = *self.talker.parameters(), *self.talker.buffers()
        return sum(tensor.nbytes for tensor in networks)

    def admit(self, admits: Sequence[tuple[int, Admit]]) -> None:
        """Assign rows to sequences: all of them, or none."""
        for row, admit in admits:
            self._check(row, admit)
        for row, admit in admits:
            self._reach(row, admit, {row for row, _ in admits})
        prompts = self.embedder.layout([admit.prompt for _, admit in admits])
        for prompt in prompts:
            self._check_text(len(prompt.track_ids))
        pairs = list(zip(admits, prompts, strict=True))
        self._open(slot_table(admits, prompts))
        texts = [
            text_table(row, 0, prompt.track_ids) for (row, _), prompt in pairs if prompt.track_ids
        ]
        if texts:
            self._append(np.concatenate(texts))
        for (row, admit), prompt in pairs:
            self.row_states[row] = RowState(prompt, len(prompt.track_ids))
            self.row_metadata.open(row, len(prompt), admit.sampling)

    def _check(self, row: int, admit: Admit) -> None:
        if row in self.row_states:
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
        """Map memory for all positions that a sequence may need, including padding of the prompt's
        last block. If memory is short, free rows, without those in `given`, release theirs."""
        positions = min(len(admit.prompt) + admit.max_frames + BLOCK, self._positions)
        if positions > self.slots.held(row):
            try:
                self._grow(row, positions)
            except torch.OutOfMemoryError:
                self.slots.shrink([*{*range(self.rows)} - self.row_states.keys() - given])
                self._grow(row, positions)

    def _grow(self, row: int, positions: int) -> None:
        check_reserve(self.step.device)
        self.slots.grow(row, positions)

    def _check_text(self, texts: int) -> None:
        if texts > self._positions:
            raise StepFailed("More text than a slot can hold. Shorten the text.")

    def release(self, row: int) -> None:
        self.row_states.pop(row, None)
        self.row_metadata.close(row)

    def clear(self) -> None:
        """Release all rows."""
        for row in tuple(self.row_states):
            self.release(row)

    def append_text(self, row: int, added: AppendText) -> None:
        row_state, ids = self.row_states[row], self.embedder.ended(added.text_ids, added.closed)
        self._check_text(row_state.texts + len(ids))
        if ids:
            self._append(text_table(row, row_state.texts, ids))
            row_state.prompt.add_text(row_state.texts, ids)
            row_state.texts += len(ids)

    def start_step(
        self, due: Iterable[tuple[int, Prefill]], rows: Sequence[int]
    ) -> RunnerStep | None:
        """Prefill prompt pieces, then launch the codes of a frame of these rows.

        In a mixed batch the pieces are prefilled by the step's second half.
        """
        pieces = self._pieces(due)
        bounds = self.row_metadata.bounds(rows) if self._mixed and pieces and rows else None
        if self._mixed and bounds and self._mixed.takes(pieces, rows, bounds):
            return self._decode(rows, partial(self._mixed, pieces))
        if pieces:
            self.prefiller(pieces)
        return self._decode(rows, self.decoder) if rows else None

    def prefill(self, due: Iterable[tuple[int, Prefill]]) -> None:
        """Prefill prompt pieces."""
        self.prefiller(self._pieces(due))

    def frames(self, rows: Sequence[int]) -> FrameBatch:
        """A complete decode step of these rows."""
        return self._decode(rows, self.decoder).advance()

    def _pieces(self, due: Iterable[tuple[int, Prefill]]) -> list[PromptPiece]:
        return [
            PromptPiece(row, self.row_states[row].prompt, each.start, each.stop)
            for row, each in due
        ]

    def _decode(self, rows: Sequence[int], decoder: Decoder) -> RunnerStep:
        ordered = tuple(sorted(rows))
        step = decoder(ordered, self.row_metadata.bounds(ordered))
        self.row_metadata.step(ordered)
        return RunnerStep(ordered, step)

    def codes_from(self, rows: Sequence[int], starts: Sequence[int], frames: int) -> Tensor:
        """Codes [B, frames, 16] from each row's start on; undefined past a row's last frame."""
        after = np.array(starts)[:, None] + np.arange(frames)
        first = np.array(rows)[:, None] * self._positions  # of the row, in the flattened tensor
        places = first + np.minimum(after, self._positions - 1)
        return self.slots.codes.flatten(0, 1)[to_device(places, self.step.device)]


def _append(talker: Talker, slots: Slots, table: Tensor) -> None:
    """Append the text of `text_table` to its slots."""
    slots.append(table, talker.embed_text(table[:, 3]))


def make_model_runner(
    talker: Talker,
    ids: SpecialIds,
    wanted: int,
    positions: int,
    device: torch.device,
    dtype: torch.dtype,
    talkers: int,
) -> ModelRunner:
    """A runner with `wanted` slots, or as many as fit; their memory grows if possible."""

    def make(grows: bool) -> ModelRunner:
        slots = slots_for(talker.config, wanted, positions, device, dtype, talkers, grows)
        return ModelRunner(talker, ids, slots, positions, device, dtype, grows)

    if can_grow(device):
        with suppress(DriverError):
            runner = make(grows=True)
            if runner.fused:
                return runner
            del runner  # frees its memory first
    return make(grows=False)
