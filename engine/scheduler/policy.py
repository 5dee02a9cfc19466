"""Who goes first, and how much at once: the pure rules of the scheduler.

One number ranks running work: its slack, the seconds before somebody would notice. A listener
who has heard nothing yet has none at all; a stream has its lead; a file, which nobody listens
to, comes behind every stream that is short of lead, and nearer the longer it is passed over.
A profile changes the numbers in the settings, never the rules.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TypeAlias

from engine.config import EngineSettings
from engine.requests.sequence import Run
from engine.scheduler.step_cost import StepCost
from engine.types import FRAME_SECONDS

Ranked: TypeAlias = list[tuple[float, Run]]  # slack and run

RUNGS = 2  # of the ramp, that a chunk is larger than the one before at most; the second one less
ALONE = 16  # streams up to which a prompt and its first frame are made by one step
BESIDE = 256  # rows of prompts that are filled beside the frames of more streams
SURE, QUICK = 512, 0.01  # rows of prompts in a step: so many, or more that take no more seconds
SHORT = 0.3 * FRAME_SECONDS  # a step that is no hardship to wait for
UNHEARD = -1.0  # slack of a listener who has heard nothing


def slack(run: Run, settings: EngineSettings, now: float) -> float:
    """Seconds before the run needs its next frame."""
    sequence = run.sequence
    if not sequence.live:
        waited = now - run.stepped_at
        return settings.ample_lead + max(0.0, settings.file_pause - waited)
    if run.unheard and not run.sent:
        return UNHEARD
    return sequence.playback.lead(now) + run.on_the_way


def ranked(runs: Iterable[Run], settings: EngineSettings, now: float) -> Ranked:
    """The most urgent first, each with its slack; among equals whoever came first."""
    pairs = [(slack(run, settings, now), run) for run in runs]
    return sorted(pairs, key=lambda pair: (pair[0], pair[1].sequence.turn, pair[1].sequence.id))


def rows_to_step(ready: Ranked, pace: StepCost, settings: EngineSettings) -> Ranked:
    """Everybody, unless that would let somebody run dry: then the comfortable ones wait.

    One of those who wait is taken along all the same once it has waited long enough.
    """
    fitting = real_time_rows(pace, settings, len(ready))
    short = sum(left < settings.ample_lead for left, _ in ready)
    if len(ready) <= fitting or not short:
        return ready
    overdue = short < len(ready) and ready[short][0] <= settings.ample_lead
    return ready[: max(fitting, short + overdue)]


def side_by_side(rows: int, filled: int, pace: StepCost) -> bool:
    """Whether prompts of so many rows and the frames of so many streams are one pass.

    The talker's weights are read once for both then, but a prompt's own first frame comes a step
    later: where steps are long, that is too late.
    """
    return rows > ALONE and filled <= BESIDE and pace.seconds(rows) <= SHORT


def real_time_rows(pace: StepCost, settings: EngineSettings, most: int) -> int:
    """Rows whose step is done before its frames are played; at least one."""
    return pace.rows_within(FRAME_SECONDS * settings.realtime_utilization, most)


def most_prompts(pace: StepCost, settings: EngineSettings) -> int:
    """Rows of prompts in one step at most: many only where they are quick."""
    quick = pace.prompts.within(QUICK, settings.max_prefill_tokens) if pace.prompts.settled else 0
    return min(settings.max_prefill_tokens, max(SURE, quick))


def prefill_rows(order: Ranked, most: int, pace: StepCost, settings: EngineSettings) -> int:
    """Rows of prompts that one step may take without a running stream running dry."""
    leads = [left for left, run in order if run.sequence.live and run.sent and not run.flushing]
    if not leads or not pace.prompts:
        return most
    steps = 1 + (settings.pipeline_depth or 0)  # those under way come first
    spare = leads[0] / settings.lead_factor - steps * pace.seconds(len(leads))
    affordable = pace.prompts.within(spare, most)
    return min(most, max(settings.min_prefill_tokens, affordable))


def chunk_frames(run: Run, lead: float, step: float, settings: EngineSettings) -> int:
    """Frames of the next chunk: one rung up at first, two later, no more than the lead covers.

    The lead of a first chunk is so short that prompts in the next steps could eat it, and it has
    to last until the second: where steps are slow it is a larger one. Files have no lead: they
    take the largest chunk, which is the cheapest.
    """
    sizes = settings.chunk_schedule
    if not run.sequence.live:
        return sizes[-1]
    if not run.sent:
        lasting = (size for size in sizes if size * FRAME_SECONDS >= step * settings.lead_factor)
        return next(lasting, sizes[-1])
    highest = run.rung + min(RUNGS, run.rung + 1)
    for size in reversed(sizes[: highest + 1]):
        if size * step * settings.lead_factor <= lead:
            return size
    return sizes[0]


def rung(frames: int, settings: EngineSettings) -> int:
    """Where a chunk of this size stands on the ramp."""
    return sum(size <= frames for size in settings.chunk_schedule) - 1


def chunk_of(run: Run, wanted: int, settings: EngineSettings) -> int:
    """Frames to decode now: none yet, a size of the ramp, or at the end whatever is left."""
    ready = run.undecoded
    if run.flushing:
        return min(ready, settings.chunk_schedule[-1])
    if ready < wanted:
        return 0
    return next(size for size in reversed(settings.chunk_schedule) if size <= ready)
