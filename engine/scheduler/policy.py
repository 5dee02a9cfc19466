"""The rules of scheduling: which attempt goes first, and how much of it one step does.

Pure functions over attempts, step costs and settings. Running work is ranked by slack: the seconds
before its listener would notice a delay. An attempt without a first chunk has none; a live stream
has its buffered audio, of which what is held back counts little; a file ranks after every stream
that is short of audio, and moves up while it is paused. The numbers are in engine/thresholds.py; a
profile changes some of them, never the rules.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple, TypeAlias

from engine.config import EngineSettings
from engine.requests.sequence import Attempt
from engine.scheduler.step_cost import StepCost
from engine.thresholds import (
    BASE_PREFILL_ROWS,
    EARLY_FRAMES,
    FAST_PREFILL_SECONDS,
    MAX_SIZE_STEPS,
    MIXED_STEP_SECONDS,
    TIGHT,
)
from engine.types import FRAME_SECONDS

Ranked: TypeAlias = list[tuple[float, Attempt]]  # (slack, attempt), most urgent first

SHORT_STEPS = 3  # whose time a stream has to hear at least, that others' first chunks may go before
NOT_STARTED = -1.0  # slack before the first chunk


def slack(attempt: Attempt, settings: EngineSettings, now: float) -> float:
    """Seconds before the attempt needs its next frame."""
    sequence = attempt.sequence
    if not sequence.live:
        paused = now - attempt.planned_at
        return settings.ample_lead + max(0.0, settings.file_pause - paused)
    if attempt.before_first_chunk and not attempt.planned_codec_frames:
        return NOT_STARTED
    ready = attempt.held_seconds + attempt.seconds_in_codec
    if not attempt.begun:  # what is held is not heard: the listener waits for the rest of it
        ready = min(ready, settings.ample_lead / 2)
    return sequence.playback.lead(now) + ready


def by_urgency(attempts: Iterable[Attempt], settings: EngineSettings, now: float) -> Ranked:
    """Attempts with their slack, the most urgent first; the older request breaks ties."""
    pairs = [(slack(attempt, settings, now), attempt) for attempt in attempts]
    return sorted(pairs, key=lambda pair: (pair[0], pair[1].sequence.turn, pair[1].sequence.id))


def select_decodes(ready: Ranked, step_cost: StepCost, settings: EngineSettings) -> Ranked:
    """All attempts, unless so many rows would cause gaps: then those with ample lead wait.

    One that has waited long enough is included even so.
    """
    fitting = realtime_capacity(step_cost, settings, len(ready))
    short = sum(left < settings.ample_lead for left, _ in ready)
    if len(ready) <= fitting or not short:
        return ready
    overdue = short < len(ready) and ready[short][0] <= settings.ample_lead
    return ready[: max(fitting, short + overdue)]


def use_mixed_batch(
    rows: int, prompt_rows: int, step_cost: StepCost, settings: EngineSettings
) -> bool:
    """Whether the prompts and frames of this step share one pass over the talker.

    That reads the weights once, but a prompt's first frame follows one step later, which is too
    late if steps are long.
    """
    many = rows > settings.prefill_first_streams and prompt_rows <= settings.mixed_prefill_tokens
    return many and step_cost.seconds(rows) <= MIXED_STEP_SECONDS


def realtime_capacity(step_cost: StepCost, settings: EngineSettings, most: int) -> int:
    """Rows whose step takes less time than its frames play; at least one."""
    return step_cost.rows_within(FRAME_SECONDS * settings.realtime_utilization, most)


def max_prefill_rows(step_cost: StepCost, settings: EngineSettings) -> int:
    """Prompt rows of one step; more than BASE_PREFILL_ROWS only if they are fast."""
    most, cost = settings.max_prefill_tokens, step_cost.prefill
    fast = cost.within(FAST_PREFILL_SECONDS, most) if cost.measured else 0
    return min(most, max(BASE_PREFILL_ROWS, fast))


def affordable_prefill_rows(
    order: Ranked, most: int, step_cost: StepCost, settings: EngineSettings, audio_follows: bool
) -> int:
    """Prompt rows that this step can take without a gap in a running stream; audio that is made
    beside it is delivered after it."""
    leads = [
        left - (attempt.seconds_in_codec if audio_follows else 0.0)
        for left, attempt in order
        if attempt.sequence.live and attempt.planned_codec_frames and not attempt.flushing
    ]
    if not leads or not step_cost.prefill:
        return most
    steps = 1 + (settings.pipeline_depth or 0)  # steps in flight run first
    spare = min(leads) / settings.lead_factor - steps * step_cost.seconds(len(leads))
    return min(most, max(settings.min_prefill_tokens, step_cost.prefill.within(spare, most)))


class Pace(NamedTuple):
    """Seconds of a step."""

    step: float  # the next one, as expected
    alone: float = 0.0  # with one stream; 0: unknown
    latest: float = 0.0  # the last one; 0: it had prompts
    lag: float = 0.0  # from a step's frames to their audio, which is made beside the next one
    frame: float = 0.0  # of a frame in the codec beside the steps; 0: unknown, or part of them
    rows: int = 1  # of the step

    @property
    def can_wait(self) -> bool:
        """Whether steps that wait for audio that is made beside them are faster than it plays."""
        return self.step + self.rows * self.frame <= FRAME_SECONDS

    @property
    def tight(self) -> bool:
        """Whether even a stream that runs alone is hardly made faster than it plays."""
        return self.alone > TIGHT * FRAME_SECONDS

    @property
    def slow(self) -> bool:
        """Whether even a stream that runs alone is made slower than it plays."""
        return self.alone >= FRAME_SECONDS


def next_chunk_size(
    attempt: Attempt, lead: float, reserve: float, pace: Pace, settings: EngineSettings
) -> int:
    """Frames of the next chunk, from the chunk schedule.

    The first chunk is the smallest whose audio lasts until the second. Later ones, also those of a
    text's next group, grow as long as the buffered audio beyond the reserve covers the time to make
    them. Files use the largest, which is the cheapest. On a slow machine, pieces that
    end at pauses are cut (`pauses`) from small ones, and pieces as they are made grow, whatever the
    lead.
    """
    sizes = settings.chunk_schedule
    if not attempt.sequence.live:
        return sizes[-1]
    early = attempt.sequence.early_start if pace.slow else "off"
    if early == "pauses":
        return max(sizes[0], min(EARLY_FRAMES, sizes[-1]))
    if early == "pieces":
        return sizes[min(attempt.schedule_index + 1, len(sizes) - 1)]
    if attempt.before_first_chunk and not attempt.planned_codec_frames:
        at_once = attempt.sequence.early_start == "pieces"
        return sizes[0] if at_once else _first_chunk_size(pace, settings)
    allowed = sizes[: 1 + attempt.schedule_index + min(MAX_SIZE_STEPS, attempt.schedule_index + 1)]
    if pace.tight:
        return _tight_chunk_size(attempt, lead, pace, allowed, settings)
    needed = pace.step * settings.lead_factor + pace.frame
    spare = lead - reserve - pace.lag
    return next((size for size in reversed(allowed) if size * needed <= spare), sizes[0])


def _first_chunk_size(pace: Pace, settings: EngineSettings) -> int:
    """Near real time it lasts until the third chunk: the lead for chunks that cost less."""
    if pace.slow:
        return settings.chunk_schedule[-1]
    steps = 2 if pace.step > TIGHT * FRAME_SECONDS else 1
    needed = steps * pace.step * settings.lead_factor + pace.lag
    if pace.lag and pace.frame and pace.can_wait:  # then the second one is waited for
        needed = min(needed, steps * (pace.step + pace.frame) * settings.lead_factor)
    lasting = (size for size in settings.chunk_schedule if size * FRAME_SECONDS >= needed)
    return next(lasting, settings.chunk_schedule[-1])


def _tight_chunk_size(
    attempt: Attempt, lead: float, pace: Pace, allowed: tuple[int, ...], settings: EngineSettings
) -> int:
    """Near real time a chunk grows as long as all of the lead covers the frames that are missing of
    it: with small chunks the lead would not come back after a hold-up, whatever was in reserve.
    How long they take is judged by the last step too, which is the first to be held up.

    On a machine that is slower than real time no size keeps the lead, so before the first chunk is
    heard and when the lead is used up, chunks are as large as can be: the fewest gaps.
    """
    needed, ready = max(pace.step, pace.latest) * settings.lead_factor, attempt.undecoded_frames
    if pace.slow and (attempt.before_first_chunk or lead <= needed):
        return settings.chunk_schedule[-1]
    lasting = (
        size
        for size in reversed(allowed)
        if max(1, size - ready) * needed + size * pace.frame <= lead
    )
    return next(lasting, settings.chunk_schedule[0])


def slow_lead(attempt: Attempt, frames: float, now: float, settings: EngineSettings) -> float:
    """Seconds that a listener must have so that a group that is made slower than it plays, and is
    expected to have so many frames, then plays without a pause.

    The last chunk must be there before the others have been played. The prompt, which comes once,
    is no part of a frame's time.
    """
    limit, done = attempt.sequence.frame_limit, attempt.decoded_frames
    left = max(0.0, (limit if attempt.sequence.ignore_end else min(limit, frames)) - done)
    since, made = (attempt.framed, done - 1) if done > 1 else (attempt.admitted, 1)
    late = max(0.0, (now - since) / made - FRAME_SECONDS)
    last = min(left, settings.chunk_schedule[-1]) * FRAME_SECONDS
    return settings.lead_factor * late * left + last


def schedule_index(frames: int, settings: EngineSettings) -> int:
    """The index of this chunk size in the chunk schedule."""
    return sum(size <= frames for size in settings.chunk_schedule) - 1


def codec_order(order: Ranked, pace: Pace) -> Ranked:
    """Who goes first where the codec has little room beside the steps: first chunks would take all
    of it while a stream that is short of audio waits."""
    if not pace.lag:
        return order
    soon = SHORT_STEPS * pace.step
    return sorted(order, key=lambda pair: not 0 <= pair[0] < soon)


def is_awaited(start: int, lead: float, frames: int, pace: Pace) -> bool:
    """Whether a step that decodes so many frames waits for a chunk at its end: it is a first one,
    or would come too late if it were delivered after the next step. Not where that would make steps
    longer than their frames play."""
    if not pace.lag:
        return start == 0
    if not pace.can_wait:
        return start == 0 and pace.rows == 1
    return start == 0 or lead < 2 * pace.step + frames * pace.frame


def most_frames(pace: Pace, settings: EngineSettings) -> int:
    """Of a chunk. A first chunk waits until what the codec has beside the steps is done, so that
    should not take longer than a frame plays; where nobody else would, one that lasts until the
    second may."""
    sizes = settings.chunk_schedule
    quick = (size for size in reversed(sizes) if size * pace.frame <= FRAME_SECONDS)
    return max(next(quick, sizes[0]), _first_chunk_size(pace, settings) if pace.rows == 1 else 0)


def frames_to_decode(attempt: Attempt, wanted: int, most: int, settings: EngineSettings) -> int:
    """Frames for the codec now: none, a size of the schedule, or at the end the rest."""
    ready = attempt.undecoded_frames
    if attempt.flushing:
        return min(ready, most)
    if ready < wanted:
        return 0
    return next(size for size in reversed(settings.chunk_schedule) if size <= min(ready, most))
