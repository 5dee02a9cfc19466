"""Decides what each step does: integers and queues, no threads, no tensors, no clock.

`plan` returns the next step, `commit` takes its codes, `commit_audio` its audio; both return the
deliveries. Plans may run ahead of results: a result is matched to the attempts that held the slots
when its step was planned, so results for a replaced attempt are dropped.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TypeAlias

from engine.config import EngineSettings
from engine.errors import InvalidText, OutOfMemory
from engine.messages import Message
from engine.plan import (
    Admit,
    AppendText,
    CodecDecode,
    FirstAudio,
    Prefill,
    StepPlan,
    StepResult,
)
from engine.requests.sequence import Attempt, Sequence, TextPiece
from engine.scheduler import batch_planner, pauses, policy
from engine.scheduler.admission import Admission
from engine.scheduler.lateness import Lateness
from engine.scheduler.slot_allocator import SlotAllocator
from engine.scheduler.step_cost import StepCost
from engine.scheduler.wait_estimate import WaitEstimate
from engine.scheduler.waiting_queue import WaitingQueue
from engine.thresholds import TEXT_PAUSE
from engine.types import FRAME_SECONDS, Chunk, EarlyStart, End, Pcm, Reason

_TEXT_TIMEOUT = Message("No more text came for too long. Close the text when it is complete.")

Delivery: TypeAlias = tuple[Sequence, "Chunk | End"]


def _holds_room(sequence: Sequence, now: float, audio_follows: bool) -> bool:
    """Whether it must be generated in real time: not if all of it is generated, nor if its text has
    paused for long, so that others need not wait until that goes on. Beside the steps its last
    audio takes as long as any.
    """
    attempt = sequence.attempt
    if attempt and attempt.flushing and not attempt.waits_for_text:
        return len(sequence.groups) > 1 or (audio_follows and attempt.undecoded_frames > 0)
    return not sequence.needs_text or now < sequence.text_changed + TEXT_PAUSE


@dataclass
class InFlightStep:
    """A planned step whose audio was not received yet."""

    plan: StepPlan
    attempts: dict[int, Attempt]  # by slot, when the step was planned


class Scheduler:
    """All waiting and running sequences."""

    def __init__(self, settings: EngineSettings) -> None:
        self.settings = settings
        self.slots = SlotAllocator()
        self.waiting = WaitingQueue()
        self.step_cost = StepCost()
        self.lateness = Lateness()
        self.wait_estimate = WaitEstimate()
        self.active: dict[int, Sequence] = {}  # by id: waiting, running, or with audio due
        self.attempts: dict[int, Attempt] = {}  # by slot
        self.latest_turn = math.inf  # later requests wait while a talker needs memory
        self.retries = 0
        self._out_of_memory = False  # admit nothing until a slot is released
        self._queue_changed = False  # since those who wait were told their places
        self._audio_follows = False  # of the last step: audio is made beside the next one
        self._in_flight: dict[int, InFlightStep] = {}
        self._number = 0

    # Requests.

    def add(self, sequence: Sequence) -> None:
        self.active[sequence.id] = sequence
        self.waiting.add(sequence)
        self._queue_changed = True

    def append(self, sequence: Sequence, piece: TextPiece, now: float) -> list[Delivery]:
        """Add text. Open text that is closed empty ends with an error."""
        sequence.append(piece, now)
        if not sequence.text.closed or len(sequence.text):
            return []
        if sequence.delivered:  # it ended with the previous group
            return [self.drop(sequence, sequence.reason)]
        return [self.drop(sequence, "error", InvalidText("There is no text. Type some."))]

    def drop(self, sequence: Sequence, reason: Reason, error: Exception | None = None) -> Delivery:
        """End a sequence now; its slot is free from the next plan on."""
        if sequence.attempt is None:
            self.waiting.remove(sequence)
            self._queue_changed = True
        else:
            self._release(sequence.attempt)
        return self._end(sequence, reason, error)

    def fail_running(self, error: Exception) -> list[Delivery]:
        """End every running sequence, after the device has cleared all slots."""
        self._in_flight.clear()
        lost = [sequence for sequence in self.active.values() if sequence.attempt]
        ends = [self.drop(sequence, "error", error) for sequence in lost]
        self.slots.drain_released()
        return ends

    def fail_waiting(self, talker: str, error: Exception) -> list[Delivery]:
        """End every sequence that waits for this talker."""
        lost = [sequence for sequence in self.waiting if sequence.talker == talker]
        return [self.drop(sequence, "error", error) for sequence in lost]

    def drop_stale_texts(self, now: float) -> list[Delivery]:
        """End sequences whose open text got no more text for too long."""
        latest = now - self.settings.text_timeout
        stale = [each for each in self._without_text() if each.text_changed <= latest]
        return [self.drop(sequence, "error", InvalidText(_TEXT_TIMEOUT)) for sequence in stale]

    def next_deadline(self, now: float) -> float | None:
        """When `drop_stale_texts` is due, or the room of a paused text is free."""
        changed = [sequence.text_changed for sequence in self._without_text()]
        paused = [at + TEXT_PAUSE for at in changed if at + TEXT_PAUSE > now]
        return min(paused + [at + self.settings.text_timeout for at in changed], default=None)

    @property
    def capacity(self) -> int:
        """Streams that can run in real time at the same time, as measured."""
        return policy.realtime_capacity(self.step_cost, self.settings, self.slots.total)

    @property
    def speed(self) -> float | None:
        """Seconds of audio a second for a stream that runs alone, if anything was timed."""
        seconds = self.step_cost.alone
        return FRAME_SECONDS / seconds if seconds else None

    @property
    def admission(self) -> Admission:
        """Any thread may ask."""
        learnt, places = self.wait_estimate, self.slots.total
        slots, step = self.step_cost.expected(self._affordable_seconds, places)
        return Admission(places, slots, step, learnt.token_frames, learnt.overhead)

    def _update_waiting(self) -> None:
        """Once a step, not for each of many who come at once."""
        if not self._queue_changed:
            return
        self._queue_changed = False
        running = [attempt.sequence for attempt in self.attempts.values()]
        self.waiting.update(self.admission.starts(running, self.waiting))

    @property
    def _affordable_seconds(self) -> float:
        return FRAME_SECONDS * self.settings.realtime_utilization

    # One step.

    def plan(self, now: float) -> StepPlan:
        """The next step; its parts are applied one by one, each before the next is planned."""
        released = self.slots.drain_released()
        most = self._max_prefill_rows()
        admitted = self._admit(now, most)
        self._update_waiting()
        order = policy.by_urgency(self.attempts.values(), self.settings, now)
        texts = self._append_texts()
        prefill = self._plan_prefill(order, most)
        decode = self._plan_decode(order, prefill, now)
        codec_decode = self._plan_codec_decode(order, prefill, decode, most, now)
        plan = StepPlan(self._number, released, admitted, texts, prefill, decode, codec_decode)
        if plan:
            self._number += 1
            self._in_flight[plan.number] = InFlightStep(plan, dict(self.attempts))
            self._release_finished()
        return plan

    def _max_prefill_rows(self) -> int:
        """Prompt rows of this step, at most; 0 if none wait."""
        prompts = self.waiting or self._unfilled_rows()
        return policy.max_prefill_rows(self.step_cost, self.settings) if prompts else 0

    def _append_texts(self) -> tuple[AppendText, ...]:
        texts = batch_planner.append_texts(self.attempts.values())
        for attempt in self.attempts.values():
            attempt.sequence.text.mark_sent()
        return texts

    def _plan_prefill(self, order: policy.Ranked, most: int) -> tuple[Prefill, ...]:
        pieces = batch_planner.plan_prefill(
            order, most, self.step_cost, self.settings, self._audio_follows
        )
        for piece in pieces:
            self.attempts[piece.slot].prefilled = piece.stop
        return pieces

    def _plan_decode(
        self, order: policy.Ranked, prefill: tuple[Prefill, ...], now: float
    ) -> tuple[int, ...]:
        slots = batch_planner.plan_decode(order, prefill, self.step_cost, self.settings)
        for slot in slots:
            attempt = self.attempts[slot]
            attempt.planned_frames += 1
            attempt.planned_at = now
        for attempt in self.attempts.values():
            if attempt.waits_for_text:
                attempt.text_starved = True
            elif attempt.sequence.text_is_open:
                attempt.sequence.text_changed = now
        return slots

    def _plan_codec_decode(
        self,
        order: policy.Ranked,
        prefill: tuple[Prefill, ...],
        decode: tuple[int, ...],
        most: int,
        now: float,
    ) -> tuple[CodecDecode, ...]:
        rows, filled = len(decode), sum(piece.stop - piece.start for piece in prefill)
        left = min(self._unfilled_rows(), most)
        seconds = batch_planner.next_step_seconds(rows, filled, left, self.step_cost)
        lag = seconds if self._audio_follows else 0.0
        frame = self.step_cost.codec_frame
        alone, latest = self.step_cost.alone, self.step_cost.latest
        pace = policy.Pace(seconds, alone, latest, lag, frame, max(1, rows))
        pieces = batch_planner.plan_codec_decode(
            order, rows, pace, self._reserve(now), self.settings
        )
        for piece in pieces:
            attempt = self.attempts[piece.slot]
            attempt.planned_codec_frames = piece.stop
            attempt.schedule_index = policy.schedule_index(piece.stop - piece.start, self.settings)
        return pieces

    def _reserve(self, now: float) -> float:
        """Seconds that a listener should have buffered before anything else."""
        return self.lateness.reserve(now, self.settings.lead_factor)

    def commit(self, result: StepResult, now: float) -> list[Delivery]:
        """Process the codes of a step."""
        step, self._audio_follows = self._in_flight[result.number], result.audio_follows
        prompt_rows = sum(piece.stop - piece.start for piece in step.plan.prefill)
        self._observe_lateness(step, prompt_rows, result.seconds, now)
        self.step_cost.observe(len(step.plan.decode), prompt_rows, result.seconds)
        deliveries = self._failed_admissions(step, result)
        for slot, frame in result.frames.items():
            attempt = step.attempts[slot]
            attempt.framed = attempt.framed or now
            attempt.add_frame(frame.codes, frame.ended)
        self._release_finished()
        return deliveries

    def _observe_lateness(
        self, step: InFlightStep, prompt_rows: int, seconds: float, now: float
    ) -> None:
        """Before any stream plays, a prompt delays no audio: then only what it takes longer than
        others did is a sign of hold-ups."""
        live = [each for each in step.attempts.values() if each.sequence.live]
        if prompt_rows and not any(each.plays for each in live):
            seconds -= self.step_cost.prefill.seconds(prompt_rows) or seconds
        if live:
            self.lateness.observe(seconds, now)
        else:
            self.lateness.reset()

    def commit_first(self, first: FirstAudio, now: float) -> list[Delivery]:
        """Deliver first chunks of a step before its codes are committed: a talker takes as long
        for the next frame as all that a listener still waits for."""
        step, deliveries = self._in_flight[first.number], list[Delivery]()
        for piece in step.plan.codec_decode:
            attempt, slot = step.attempts[piece.slot], piece.slot
            is_next = slot in first.codes and piece.stop == len(attempt.codes) + 1
            begins = piece.start == 0 and attempt.before_first_chunk  # nothing of it is due earlier
            if begins and is_next and slot in first.audio:
                chunk = attempt.add_audio(piece.start, first.audio[slot], first.codes[slot])
                deliveries += self._deliver_or_hold(attempt, chunk, now)
        return deliveries

    def commit_audio(
        self, number: int, audio: Mapping[int, Pcm], now: float, seconds: float = 0.0
    ) -> list[Delivery]:
        """Process the audio of a committed step, which took some seconds beside the steps."""
        step, deliveries = self._in_flight.pop(number), list[Delivery]()
        frames = sum(piece.stop - piece.start for piece in step.plan.codec_decode)
        self.step_cost.observe_codec(len(step.plan.decode), frames, seconds)
        for piece in step.plan.codec_decode:
            if piece.slot in audio:
                attempt = step.attempts[piece.slot]
                chunk = attempt.add_audio(piece.start, audio[piece.slot])
                deliveries += self._deliver_or_hold(attempt, chunk, now)
        self._release_finished()
        for attempt in step.attempts.values():
            if attempt.complete and not attempt.replaced:
                deliveries += self._finish(attempt, now)
        return deliveries

    # Slots.

    def _admit(self, now: float, most: int) -> tuple[Admit, ...]:
        """Admit waiting requests that have a slot and text, as long as streams stay in real time:
        none while steps are behind.

        At most what one step can prefill, `most` rows: laying out a prompt takes host time too.
        """
        admitted = []
        room = self._room(now) if self.slots.free and not self._out_of_memory else {}
        late = self.lateness.late and any(
            each.sequence.live and not each.waits_for_text for each in self.attempts.values()
        )
        unfilled = self._unfilled_rows()
        for sequence in self.waiting if room else ():
            if unfilled >= most:
                break
            # The next group of a text has the room of the one before, whatever was measured since.
            fits = room[sequence.live] > 0 and not late
            if (fits or sequence.continues) and self._may_start(sequence):
                room[sequence.live] -= 1
                self.waiting.remove(sequence)
                self._queue_changed = True
                admitted.append(self._start(sequence, now))
                unfilled += self.attempts[admitted[-1].slot].prompt_rows
        return tuple(admitted)

    def _unfilled_rows(self) -> int:
        """Prompt rows that are not prefilled."""
        return sum(each.prompt_rows - each.prefilled for each in self.attempts.values())

    def _room(self, now: float) -> dict[bool, int]:
        """How many more live streams (True) and files (False) may start."""
        running = [attempt.sequence for attempt in self.attempts.values()]
        begun = [each for each in running if each.live]
        loaded = self.slots.talkers  # who waits for another one must not keep these from going on
        begun += [each for each in self.waiting if each.continues and each.talker in loaded]
        live = sum(_holds_room(each, now, self._audio_follows) for each in begun)
        files = sum(not each.live for each in running)
        for_files = max(1, int(self.slots.total * self.settings.file_share))
        return {True: self.capacity - live, False: for_files - files}

    def _may_start(self, sequence: Sequence) -> bool:
        has_slot = self.slots.free_of(sequence.talker) > 0
        return has_slot and sequence.turn <= self.latest_turn and sequence.text.covers(0)

    def _start(self, sequence: Sequence, now: float) -> Admit:
        slot = self.slots.take(sequence.talker)
        prompt = sequence.text.complete()
        sequence.attempt = self.attempts[slot] = Attempt(sequence, slot, prompt, now)
        return Admit(
            slot,
            sequence.talker,
            prompt,
            sequence.sampling,
            sequence.seed,
            max_frames=sequence.frame_limit,
            ignore_end=sequence.ignore_end,
        )

    def _release_finished(self) -> None:
        """Release slots that have no work left to plan.

        A slot is kept for the sequence's next group until the audio was received.
        """
        for attempt in tuple(self.attempts.values()):
            total, last = attempt.total_frames, len(attempt.sequence.groups) == 1
            if total is not None and attempt.planned_codec_frames >= total and last:
                self._release(attempt)

    def _release(self, attempt: Attempt) -> None:
        if self.attempts.get(attempt.slot) is attempt:
            del self.attempts[attempt.slot]
            self.slots.release(attempt.slot)
            self._out_of_memory = False

    def _failed_admissions(self, step: InFlightStep, result: StepResult) -> list[Delivery]:
        """Out of memory: wait again while others run. Any other error ends the request."""
        deliveries = []
        for slot, error in result.failed.items():
            attempt = step.attempts[slot]
            if attempt.replaced:
                continue
            self._release(attempt)
            if isinstance(error, OutOfMemory) and self.attempts:
                self._requeue(attempt.sequence)
                self._out_of_memory = True
            else:
                deliveries.append(self.drop(attempt.sequence, "error", error))
        return deliveries

    def _requeue(self, sequence: Sequence) -> None:
        sequence.attempt = None
        self.add(sequence)

    # Deliveries.

    def _deliver_or_hold(self, attempt: Attempt, chunk: Chunk | None, now: float) -> list[Delivery]:
        """A file's chunks are held until its end, since it may be generated again; a stream's until
        they are the lead that its listener needs here."""
        if chunk is None or attempt.replaced:
            return []
        attempt.held_chunks.append(chunk)
        if not attempt.sequence.live:
            return []
        if self._early_start(attempt) == "pauses" and not attempt.flushing:
            return self._deliver_piece(attempt, now)
        at_once = attempt.sequence.early_start == "pieces"
        begun = at_once or attempt.begun or attempt.flushing
        if not begun and attempt.held_seconds < self._needed(attempt, now):
            return []
        return self._deliver_held(attempt, now)

    def _needed(self, attempt: Attempt, now: float) -> float:
        """Seconds that a group's listener must have when its first chunk is delivered."""
        reserve = self._reserve(now) if attempt.before_first_chunk else 0.0
        if self.step_cost.alone < FRAME_SECONDS:
            return reserve
        frames = self.wait_estimate.token_frames * len(attempt.sequence.text)
        lead = attempt.sequence.playback.lead(now)
        return max(reserve, policy.slow_lead(attempt, frames, now, self.settings) - lead)

    def _early_start(self, attempt: Attempt) -> EarlyStart:
        """Whether its listener hears pieces, with silence between them, and which."""
        slow = self.step_cost.alone >= FRAME_SECONDS
        return attempt.sequence.early_start if slow else "off"

    def _deliver_piece(self, attempt: Attempt, now: float) -> list[Delivery]:
        piece, attempt.held_chunks, attempt.loudest = pauses.split(
            attempt.held_chunks, attempt.loudest
        )
        if piece is None:
            return []
        return [self._deliver(attempt, piece, now)]

    def _deliver_held(self, attempt: Attempt, now: float) -> list[Delivery]:
        held, attempt.held_chunks = attempt.held_chunks, []
        attempt.begun = attempt.begun or bool(held)
        last = held[-1] if held and attempt.complete else None
        return [self._deliver(attempt, chunk, now, chunk is last) for chunk in held]

    def _deliver(self, attempt: Attempt, chunk: Chunk, now: float, last: bool = False) -> Delivery:
        excused = attempt.text_starved or self._early_start(attempt) != "off"
        delivered = attempt.sequence.deliver(chunk, now, excused, last)
        attempt.text_starved = False
        return attempt.sequence, delivered

    def _finish(self, attempt: Attempt, now: float) -> list[Delivery]:
        tokens, frames = len(attempt.sequence.text), len(attempt.codes)
        step = self.step_cost.seconds(len(self.attempts) or 1)
        self.wait_estimate.record(tokens, frames, now - attempt.admitted, step)
        self._release(attempt)
        if self._should_retry(attempt):
            self.retries += 1
            attempt.sequence.reseed()
            self._requeue(attempt.sequence)
            return []
        deliveries = self._deliver_held(attempt, now)
        sequence = attempt.sequence
        if sequence.end_group("incomplete" if attempt.early else attempt.reason):
            self.add(sequence)
            return deliveries
        return [*deliveries, self._end(sequence, sequence.reason)]

    def _end(self, sequence: Sequence, reason: Reason, error: Exception | None = None) -> Delivery:
        sequence.attempt = None
        del self.active[sequence.id]
        return sequence, End(reason, sequence.delivered, sequence.seed, error)

    def _should_retry(self, attempt: Attempt) -> bool:
        """Whether a file degenerated, was not retried and would differ with another seed."""
        sequence = attempt.sequence
        if sequence.live or sequence.retried:
            return False
        if not sequence.stop_degeneration or sequence.sampling.greedy:
            return False
        return attempt.reason == "runaway" or attempt.early

    def _without_text(self) -> list[Sequence]:
        """Sequences that wait for more text."""
        open_texts = (each for each in self.active.values() if not each.text.closed)
        return [sequence for sequence in open_texts if sequence.needs_text]
