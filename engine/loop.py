"""The engine's loop: run commands, plan, launch, commit the codes of the step `pipeline_depth`
behind, deliver audio as it becomes ready.

One thread runs it and never waits for a reader. A step that raises ends the running requests and
the loop continues; several failures in a row, or a worker that cannot be reset, end it.
"""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace

from engine.config import EngineSettings
from engine.errors import EngineError, StepFailed
from engine.model_manager import ModelManager
from engine.plan import StepHandle, StepResult, Worker
from engine.requests.command_queue import CommandQueue
from engine.requests.registry import RequestRegistry
from engine.requests.sequence import Sequence, TextPiece
from engine.scheduler.scheduler import Delivery, Scheduler
from engine.stats import Counters, Stats

AUDIO_POLL = 5e-5  # seconds between two checks for audio while waiting for codes

log = logging.getLogger("timbre")


class Loop:
    """State and methods of the engine's thread."""

    def __init__(
        self,
        worker: Worker,
        settings: EngineSettings,
        clock: Callable[[], float],
        registry: RequestRegistry,
    ) -> None:
        self.commands = CommandQueue()
        self.scheduler = Scheduler(settings)
        self.counters = Counters()
        self.models = ModelManager(worker, self.scheduler, self.commands, self.deliver)
        self.stopping = False
        self.abandoned = False  # another loop has replaced this one
        self.ticks = 0  # odd while a step runs, which the watchdog times
        self._worker = worker
        self._clock = clock
        self._registry = registry
        self._depth = settings.pipeline_depth or 0
        self._failures = 0  # in a row
        self._launched: deque[StepHandle] = deque()  # steps whose codes are due, oldest first
        self._decoding: deque[tuple[int, StepHandle]] = deque()  # (step, handle) whose audio is due
        self._idle = False
        self._committed_at: float | None = None  # None: the device was idle

    def run_once(self, wait: bool = True) -> bool:
        """One iteration; False if there was nothing to do. `wait`: sleep until there is."""
        self._run_commands(wait and self._idle)
        self.models.load_next()
        self.deliver(self.scheduler.drop_stale_texts(self._clock()))
        committed, due = 0, bool(self._decoding)
        self.ticks += 1
        try:
            launched = self._launch()
            committed = self._commit(launched)
        except Exception as error:
            launched = True
            self._recover(error)
        finally:
            self.ticks += 1
        busy = bool(launched or committed)
        self._committed_at = self._committed_at if busy else None
        self._idle = not busy and not due  # audio that was due may let the next group begin
        return not self._idle

    # Commands.

    def begin(self, sequence: Sequence) -> None:
        if self._registry.holds(sequence):  # it may have ended with the loop before this one
            self.scheduler.add(sequence)
            self.models.request(sequence.talker)

    def add_text(self, sequence: Sequence, piece: TextPiece) -> None:
        if sequence.id in self.scheduler.active:
            self.deliver(self.scheduler.append(sequence, piece, self._clock()))

    def cancel(self, sequence: Sequence) -> None:
        if sequence.id in self.scheduler.active:
            self.deliver([self.scheduler.drop(sequence, "cancelled")])

    def note_lag(self, seconds: float) -> None:
        self.scheduler.lateness.observe_delivery(seconds, self._clock())

    def stop(self) -> None:
        self.stopping = True

    def deliver(self, deliveries: list[Delivery]) -> None:
        for sequence, item in deliveries:
            self.counters.record(sequence, item)
            self._registry.deliver(sequence, item)

    def stats(self, memory: int, refused: int) -> Stats:
        """May be called from any thread."""
        now, scheduler, counters = self._clock(), self.scheduler, self.counters
        attempts = tuple(scheduler.attempts.values())
        playing = [
            attempt.sequence.playback
            for attempt in attempts
            if attempt.sequence.live and not attempt.before_first_chunk
        ]
        return Stats(
            running=len(attempts),
            waiting=len(scheduler.waiting),
            slots=scheduler.slots.total,
            talkers=self.models.loaded,
            realtime_capacity=scheduler.capacity,
            step_seconds=scheduler.step_cost.seconds(len(attempts)),
            steps=counters.steps,
            failed_steps=counters.failed_steps,
            refused=refused,
            retried=scheduler.retries,
            ended=dict(counters.ended),
            audio_seconds=counters.audio_seconds,
            gaps=counters.gaps,
            first_audio=counters.first_audio(),
            lowest_lead=min((each.lead(now) for each in playing), default=None),
            memory=memory,
            speed=scheduler.speed,
            admission=scheduler.admission,
        )

    # Parts of an iteration.

    def _run_commands(self, wait: bool) -> None:
        for command in self.commands.drain(wait, self._timeout() if wait else None):
            command()

    def _timeout(self) -> float | None:
        """Seconds until the next deadline."""
        now = self._clock()
        deadline = self.scheduler.next_deadline(now)
        return None if deadline is None else max(0.0, deadline - now)

    def _launch(self) -> bool:
        plan = self.scheduler.plan(self._clock())
        if plan:
            self._launched.append(self._worker.launch(plan))
        return bool(plan)

    def _commit(self, launched: bool) -> int:
        """Commit codes until `pipeline_depth` steps are in flight, or none if nothing was launched;
        audio may lag by one more step, or until it is ready if the worker lets it follow."""
        behind = self._depth if launched else 0
        committed, most = 0, behind + 1 if behind else 0
        while len(self._launched) > behind:
            self._wait_codes(self._launched[0])
            handle = self._launched.popleft()
            result = handle.result()
            self.deliver(self.scheduler.commit(self._timed(result), self._clock()))
            self._decoding.append((result.number, handle))
            committed += 1
            self.counters.steps += 1
            if launched and result.audio_follows:
                most = len(self._decoding)
        self._commit_audio(most)
        return committed

    def _wait_codes(self, handle: StepHandle) -> None:
        """Wait for a step's codes; deliver audio that becomes ready meanwhile."""
        while (self._decoding or handle.audio_first) and not (
            self.abandoned or handle.wait_codes(AUDIO_POLL)
        ):
            self._commit_audio(len(self._decoding))
            if first := handle.first_audio():
                self.deliver(self.scheduler.commit_first(first, self._clock()))

    def _commit_audio(self, most: int) -> None:
        """Deliver ready audio in order; wait until at most `most` steps have audio due."""
        while self._decoding and (len(self._decoding) > most or self._decoding[0][1].audio_ready()):
            number, handle = self._decoding.popleft()
            audio, now = handle.audio(), self._clock()
            self.deliver(self.scheduler.commit_audio(number, audio, now, handle.audio_seconds()))
            self._failures = 0

    def _timed(self, result: StepResult) -> StepResult:
        """Set the seconds to those since the last result, since steps overlap with each other."""
        now, before = self._clock(), self._committed_at
        self._committed_at = now
        return result if before is None else replace(result, seconds=now - before)

    def _recover(self, error: Exception) -> None:
        """End the running requests and clear the device."""
        log.error("A step failed.", exc_info=error)
        self._launched.clear()
        with suppress(Exception):  # audio of earlier steps is still delivered
            self._commit_audio(len(self._decoding) if self.abandoned else 0)
        self._decoding.clear()
        reason = error if isinstance(error, EngineError) else _step_failed(error)
        self.deliver(self.scheduler.fail_running(reason))
        self._worker.reset()
        self._failures += 1
        self.counters.failed_steps += 1
        if self._failures >= self.scheduler.settings.max_failed_steps:
            raise EngineError(
                "{count} steps in a row failed, the last one with: {error}",
                count=self._failures,
                error=error,
            )


def _step_failed(error: Exception) -> StepFailed:
    return StepFailed("The engine failed while it was speaking ({error}). Try again.", error=error)
