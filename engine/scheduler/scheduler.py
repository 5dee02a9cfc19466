"""Decides what each step does: integers and queues, no threads, no tensors, no clock.

`plan` says what the next step is to do, `commit` takes the frames that a step made, `hear` its
sound, and both tell what is to be delivered. Plans may run ahead of results: a result is matched
to the runs the slots had when its step was planned, so what arrives for a run that is over is
dropped.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TypeAlias

from engine.config import EngineSettings
from engine.errors import InvalidText, OutOfMemory
from engine.messages import Message
from engine.plan import Admit, StepPlan, StepResult
from engine.requests.degeneration import ended_early
from engine.requests.sequence import Run, Sequence
from engine.scheduler import batch_planner, policy
from engine.scheduler.slot_allocator import Slots
from engine.scheduler.step_cost import StepCost
from engine.scheduler.waiting_queue import Waiting
from engine.types import Chunk, End, Pcm, Reason

_NO_MORE = Message("No more text came for too long. Close the text when it is complete.")

Delivery: TypeAlias = tuple[Sequence, "Chunk | End"]


@dataclass
class Flight:
    """A planned step whose sound is not here yet."""

    plan: StepPlan
    runs: dict[int, Run]  # by slot, as they were when the step was planned


class Scheduler:
    """All sequences, waiting and running."""

    def __init__(self, settings: EngineSettings) -> None:
        self.settings = settings
        self.slots = Slots()
        self.waiting = Waiting()
        self.pace = StepCost()
        self.active: dict[int, Sequence] = {}  # by id: waiting, running, or its last sound due
        self.runs: dict[int, Run] = {}  # by slot
        self.horizon = math.inf  # who comes after it waits: a talker needs room
        self.retries = 0
        self._crowded = False  # the device had no room: wait until somebody leaves
        self._flights: dict[int, Flight] = {}
        self._number = 0

    # Requests come and go.

    def add(self, sequence: Sequence) -> None:
        self.active[sequence.id] = sequence
        self.waiting.add(sequence)
        self.waiting.tell(self.places)

    def append(
        self, sequence: Sequence, ids: tuple[int, ...], closed: bool, now: float
    ) -> list[Delivery]:
        """More text. An open text that is closed empty was no request."""
        sequence.append(ids, closed, now)
        if sequence.text.closed and not len(sequence.text):
            return [self.drop(sequence, "error", InvalidText("There is no text. Type some."))]
        return []

    def drop(self, sequence: Sequence, reason: Reason, error: Exception | None = None) -> Delivery:
        """End a sequence now, wherever it is; its slot is free from the next step on."""
        if sequence.run is None:
            self.waiting.remove(sequence)
        else:
            self._vacate(sequence.run)
        return self._end(sequence, reason, error)

    def fail_running(self, error: Exception) -> list[Delivery]:
        """Every running sequence ends: the device has forgotten all slots."""
        self._flights.clear()
        lost = [sequence for sequence in self.active.values() if sequence.run]
        ends = [self.drop(sequence, "error", error) for sequence in lost]
        self.slots.take_released()
        return ends

    def fail_waiting(self, talker: str, error: Exception) -> list[Delivery]:
        """Nobody can be served by this talker."""
        lost = [sequence for sequence in self.waiting if sequence.talker == talker]
        return [self.drop(sequence, "error", error) for sequence in lost]

    def drop_stale_texts(self, now: float) -> list[Delivery]:
        """Open texts that have run out, and nobody has added to for too long."""
        latest = now - self.settings.text_timeout
        stale = [sequence for sequence in self._hungry() if sequence.touched <= latest]
        return [self.drop(sequence, "error", InvalidText(_NO_MORE)) for sequence in stale]

    def next_deadline(self) -> float | None:
        """When `drop_stale_texts` has something to do."""
        touched = [sequence.touched for sequence in self._hungry()]
        return min(touched) + self.settings.text_timeout if touched else None

    @property
    def places(self) -> int:
        """How many are served at once."""
        return policy.real_time_rows(self.pace, self.settings, self.slots.total)

    # One step.

    def plan(self, now: float) -> StepPlan:
        released = self.slots.take_released()
        pace, settings = self.pace, self.settings
        prompts = self.waiting or self._unfilled()
        most = policy.most_prompts(pace, settings) if prompts else 0
        admitted = self._admit(now, most)
        order = policy.ranked(self.runs.values(), settings, now)
        feed = batch_planner.feeds(self.runs.values())
        prefill = batch_planner.prefills(order, most, pace, settings)
        frames = batch_planner.frames(order, prefill, pace, settings, now)
        rows, filled = len(frames), sum(piece.stop - piece.start for piece in prefill)
        left = min(self._unfilled(), most)
        step = batch_planner.step_to_come(rows, filled, left, pace)
        decode = batch_planner.decodes(order, rows, step, settings, now)
        plan = StepPlan(self._number, released, admitted, feed, prefill, frames, decode)
        if plan:
            self._number += 1
            self._flights[plan.number] = Flight(plan, dict(self.runs))
            self._let_go()
        return plan

    def commit(self, result: StepResult, now: float) -> list[Delivery]:
        """Its frames."""
        flight = self._flights[result.number]
        self._observe(flight.plan, result.seconds)
        deliveries = self._refused(flight, result)
        for slot, frame in result.frames.items():
            flight.runs[slot].add_frame(frame.codes, frame.ended)
        self._let_go()
        return deliveries

    def hear(self, number: int, audio: Mapping[int, Pcm], now: float) -> list[Delivery]:
        """Its sound, once it is committed."""
        flight, deliveries = self._flights.pop(number), list[Delivery]()
        for piece in flight.plan.decode:
            if piece.slot in audio:
                chunk = flight.runs[piece.slot].add_sound(piece.start, audio[piece.slot])
                deliveries += self._hand_out(flight.runs[piece.slot], chunk, now)
        self._let_go()
        for run in flight.runs.values():
            deliveries += self._finish(run, now) if run.complete and not run.over else []
        return deliveries

    # Into a slot, and out of it.

    def _admit(self, now: float, most: int) -> tuple[Admit, ...]:
        """Whoever has a slot and text to begin with, while nobody who listens goes short.

        No more than one step can fill in, `most` rows: laying out a prompt takes the host its
        time as well.
        """
        chosen = []
        room = self._room() if self.slots.free and not self._crowded else {}
        unfilled = self._unfilled()
        for sequence in self.waiting if room else ():
            if unfilled >= most:
                break
            if room[sequence.live] > 0 and self._may_start(sequence):
                room[sequence.live] -= 1
                self.waiting.remove(sequence)
                chosen.append(self._start(sequence, now))
                unfilled += self.runs[chosen[-1].slot].rows
        if chosen:
            self.waiting.tell(self.places)
        return tuple(chosen)

    def _unfilled(self) -> int:
        """Rows of prompts that steps to come are to fill."""
        return sum(run.rows - run.prefilled for run in self.runs.values())

    def _room(self) -> dict[bool, int]:
        """How many more streams (True) and files (False) may run."""
        speaking = sum(run.sequence.live and not run.flushing for run in self.runs.values())
        files = sum(not run.sequence.live for run in self.runs.values())
        for_files = max(1, int(self.slots.total * self.settings.file_share))
        return {True: self.places - speaking, False: for_files - files}

    def _may_start(self, sequence: Sequence) -> bool:
        has_slot = self.slots.free_of(sequence.talker) > 0
        return has_slot and sequence.turn <= self.horizon and sequence.text.covers(0)

    def _start(self, sequence: Sequence, now: float) -> Admit:
        slot = self.slots.take(sequence.talker)
        run = Run(sequence, slot, sequence.text.into(sequence.prompt), now)
        sequence.run = self.runs[slot] = run
        return Admit(
            slot, sequence.talker, run.prompt, sequence.draw, sequence.seed,
            max_frames=sequence.limit, ignore_end=sequence.ignore_end,
        )  # fmt: skip

    def _let_go(self) -> None:
        """Slots for which nothing is left to plan can go to somebody else."""
        for run in tuple(self.runs.values()):
            if run.total is not None and run.sent >= run.total:
                self._vacate(run)

    def _vacate(self, run: Run) -> None:
        if self.runs.get(run.slot) is run:
            del self.runs[run.slot]
            self.slots.vacate(run.slot)
            self._crowded = False

    def _refused(self, flight: Flight, result: StepResult) -> list[Delivery]:
        """Admissions that failed. Out of memory waits for room while others have it."""
        deliveries = []
        for slot, error in result.failed.items():
            run = flight.runs[slot]
            if run.over:
                continue
            self._vacate(run)
            if isinstance(error, OutOfMemory) and self.runs:
                self._requeue(run.sequence)
                self._crowded = True
            else:
                deliveries.append(self.drop(run.sequence, "error", error))
        return deliveries

    def _requeue(self, sequence: Sequence) -> None:
        sequence.run = None
        self.add(sequence)

    # Sound, and the end.

    def _hand_out(self, run: Run, chunk: Chunk | None, now: float) -> list[Delivery]:
        """To the listener, or on a file's pile: it may yet have to be made again."""
        if chunk is None or run.over:
            return []
        if not run.sequence.live:
            run.held.append(chunk)
            return []
        return [self._deliver(run, chunk, now)]

    def _deliver(self, run: Run, chunk: Chunk, now: float) -> Delivery:
        run.sequence.deliver(chunk, now, excused=run.starved)
        run.starved = False
        return run.sequence, chunk

    def _finish(self, run: Run, now: float) -> list[Delivery]:
        self.waiting.served(now - run.admitted)
        if self._worth_another(run):
            self.retries += 1
            run.sequence.reseed()
            self._requeue(run.sequence)
            return []
        deliveries = [self._deliver(run, chunk, now) for chunk in run.held]
        return [*deliveries, self._end(run.sequence, run.reason)]

    def _end(self, sequence: Sequence, reason: Reason, error: Exception | None = None) -> Delivery:
        sequence.run = None
        del self.active[sequence.id]
        return sequence, End(reason, sequence.delivered, sequence.seed, error)

    def _worth_another(self, run: Run) -> bool:
        """A file that went wrong, was not tried twice and would come out differently."""
        sequence = run.sequence
        if sequence.live or sequence.retried or not sequence.guarded or sequence.draw.greedy:
            return False
        hasty = run.reason == "finished" and ended_early(len(run.codes), len(sequence.text))
        return hasty or run.reason == "runaway"

    def _observe(self, plan: StepPlan, seconds: float) -> None:
        rows = sum(piece.stop - piece.start for piece in plan.prefill)
        self.pace.observe(len(plan.frames), rows, seconds)

    def _hungry(self) -> list[Sequence]:
        """Sequences that can do nothing before more text comes."""
        growing = (each for each in self.active.values() if not each.text.closed)
        return [sequence for sequence in growing if sequence.hungry]
