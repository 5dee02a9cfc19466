"""The engine's loop: take calls, plan, launch, commit the frames of the step `lag` behind, deliver
sound as it comes.

One thread turns it. Nothing in here waits for a listener. A step that raises ends whoever was
running and the loop goes on; several in a row, or a worker that cannot be reset, end it.
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
from engine.requests.sequence import Sequence
from engine.scheduler.scheduler import Delivery, Scheduler
from engine.stats import Meter, Stats

GLANCE = 5e-5  # seconds between two looks for sound

log = logging.getLogger("timbre")


class Loop:
    """Everything that belongs to the engine's thread."""

    def __init__(
        self,
        worker: Worker,
        settings: EngineSettings,
        clock: Callable[[], float],
        roster: RequestRegistry,
    ) -> None:
        self.inbox = CommandQueue()
        self.scheduler = Scheduler(settings)
        self.meter = Meter()
        self.talkers = ModelManager(worker, self.scheduler, self.inbox, self.deliver)
        self.stopping = False
        self.abandoned = False  # another loop has taken over
        self.beats = 0  # odd: a step is being made, which the watchdog times
        self._worker = worker
        self._clock = clock
        self._roster = roster
        self._lag = settings.pipeline_depth or 0
        self._failures = 0
        self._flying: deque[StepHandle] = deque()  # frames are to come, the oldest first
        self._sounding: deque[tuple[int, StepHandle]] = deque()  # sound is to come, by step
        self._idle = False
        self._landed_at: float | None = None  # None: nothing was going on before

    def turn(self, wait: bool = True) -> bool:
        """Once around. `wait`: sleep while there is nothing to do. False: there was nothing."""
        self._take_calls(wait and self._idle)
        self.talkers.advance()
        self.deliver(self.scheduler.drop_stale_texts(self._clock()))
        landed = 0
        self.beats += 1
        try:
            launched = self._launch()
            landed = self._land(self._lag if launched else 0)
        except Exception as error:
            launched = True
            self._recover(error)
        finally:
            self.beats += 1
        self._idle = not launched and not landed
        self._landed_at = None if self._idle else self._landed_at
        return not self._idle

    # Calls from the inbox.

    def begin(self, sequence: Sequence) -> None:
        self.scheduler.add(sequence)
        self.talkers.use(sequence.talker)

    def add_text(self, sequence: Sequence, ids: tuple[int, ...], closed: bool) -> None:
        if sequence.id in self.scheduler.active:
            self.deliver(self.scheduler.append(sequence, ids, closed, self._clock()))

    def cancel(self, sequence: Sequence) -> None:
        if sequence.id in self.scheduler.active:
            self.deliver([self.scheduler.drop(sequence, "cancelled")])

    def stop(self) -> None:
        self.stopping = True

    def deliver(self, deliveries: list[Delivery]) -> None:
        for sequence, item in deliveries:
            self.meter.note(sequence, item)
            self._roster.put(sequence, item)

    def stats(self, memory: int, refused: int) -> Stats:
        """Read from any thread."""
        now, scheduler, meter = self._clock(), self.scheduler, self.meter
        runs = tuple(scheduler.runs.values())
        heard = [run.sequence.playback for run in runs if run.sequence.live and not run.unheard]
        return Stats(
            running=len(runs),
            waiting=len(scheduler.waiting),
            slots=scheduler.slots.total,
            talkers=self.talkers.loaded,
            rows_in_real_time=scheduler.places,
            step_seconds=scheduler.pace.seconds(len(runs)),
            steps=meter.steps,
            failed_steps=meter.failed_steps,
            refused=refused,
            retried=scheduler.retries,
            ended=dict(meter.ended),
            audio_seconds=meter.audio_seconds,
            gaps=meter.gaps,
            first_sound=meter.first_sound(),
            shortest_lead=min((each.lead(now) for each in heard), default=None),
            memory=memory,
        )

    # The parts of a turn.

    def _take_calls(self, wait: bool) -> None:
        for call in self.inbox.take(wait, self._patience() if wait else None):
            call()

    def _patience(self) -> float | None:
        """Seconds until something is to be done without a call."""
        deadline = self.scheduler.next_deadline()
        return None if deadline is None else max(0.0, deadline - self._clock())

    def _launch(self) -> bool:
        plan = self.scheduler.plan(self._clock())
        if plan:
            self._flying.append(self._worker.launch(plan))
        return bool(plan)

    def _land(self, behind: int) -> int:
        """Commit steps until only `behind` are under way; sound may be one step later still."""
        landed = 0
        while len(self._flying) > behind:
            self._await(self._flying[0])
            pending = self._flying.popleft()
            result = pending.read()
            self.deliver(self.scheduler.commit(self._paced(result), self._clock()))
            self._sounding.append((result.number, pending))
            landed += 1
            self.meter.steps += 1
        self._hear(behind + 1 if behind else 0)
        return landed

    def _await(self, pending: StepHandle) -> None:
        """Until its frames are there. Sound that is there first does not wait for them."""
        while self._sounding and not (self.abandoned or pending.made(GLANCE)):
            self._hear(len(self._sounding))

    def _hear(self, most: int) -> None:
        """Deliver sound in order: all that is there, and until no more than `most` is to come."""
        while self._sounding and (len(self._sounding) > most or self._sounding[0][1].sounded()):
            number, pending = self._sounding.popleft()
            self.deliver(self.scheduler.hear(number, pending.hear(), self._clock()))
            self._failures = 0

    def _paced(self, result: StepResult) -> StepResult:
        """With the seconds since the last result: steps overlap, and the host takes time too."""
        now, before = self._clock(), self._landed_at
        self._landed_at = now
        return result if before is None else replace(result, seconds=now - before)

    def _recover(self, error: Exception) -> None:
        """Whoever was running is told; the device forgets them, and the loop goes on."""
        log.error("A step failed.", exc_info=error)
        self._flying.clear()
        with suppress(Exception):  # what was made before it is not lost
            self._hear(len(self._sounding) if self.abandoned else 0)
        self._sounding.clear()
        told = error if isinstance(error, EngineError) else _failed(error)
        self.deliver(self.scheduler.fail_running(told))
        self._worker.reset()
        self._failures += 1
        self.meter.failed_steps += 1
        if self._failures >= self.scheduler.settings.max_failed_steps:
            raise EngineError(
                "{count} steps in a row failed, the last one with: {error}",
                count=self._failures,
                error=error,
            )


def _failed(error: Exception) -> StepFailed:
    return StepFailed("The engine failed while it was speaking ({error}). Try again.", error=error)
