"""Plans text, prefill, decode and codec decode for attempts that have a slot, by urgency.

Functions return a part of the plan and change nothing: the scheduler applies each part before the
next one is planned. Admission is in the scheduler, the rules are in the policy.
"""

from __future__ import annotations

from collections.abc import Iterable

from engine.config import EngineSettings
from engine.plan import AppendText, CodecDecode, Prefill
from engine.requests.sequence import Attempt
from engine.scheduler import policy
from engine.scheduler.policy import Pace, Ranked
from engine.scheduler.step_cost import StepCost


def append_texts(attempts: Iterable[Attempt]) -> tuple[AppendText, ...]:
    """Text that the worker does not have."""
    pending = ((attempt.slot, attempt.sequence.text.unsent()) for attempt in attempts)
    return tuple(AppendText(slot, *unsent) for slot, unsent in pending if unsent)


def plan_prefill(
    order: Ranked,
    most: int,
    step_cost: StepCost,
    settings: EngineSettings,
    audio_follows: bool = False,
) -> tuple[Prefill, ...]:
    """Prompts, at most `most` rows in all. Only the first is cut: each piece costs a pass."""
    waiting = [attempt for _, attempt in order if attempt.prefilled < attempt.prompt_rows]
    left = 0
    if waiting:
        left = policy.affordable_prefill_rows(order, most, step_cost, settings, audio_follows)
    pieces: list[Prefill] = []
    for attempt in waiting:
        stop = min(attempt.prompt_rows, attempt.prefilled + left)
        if stop < attempt.prompt_rows and pieces:
            break
        pieces.append(Prefill(attempt.slot, attempt.prefilled, stop))
        left -= stop - attempt.prefilled
    return tuple(pieces)


def plan_decode(
    order: Ranked, prefill: tuple[Prefill, ...], step_cost: StepCost, settings: EngineSettings
) -> tuple[int, ...]:
    """Slots that generate a frame; in a mixed batch, without those that prefill in this step."""
    filled = {piece.slot: piece.stop - piece.start for piece in prefill}
    ready = [(left, attempt) for left, attempt in order if attempt.can_decode]
    running = [(left, attempt) for left, attempt in ready if attempt.slot not in filled]
    if policy.use_mixed_batch(len(running), sum(filled.values()), step_cost, settings):
        ready = running
    return tuple(attempt.slot for _, attempt in policy.select_decodes(ready, step_cost, settings))


def plan_codec_decode(
    order: Ranked,
    rows: int,
    pace: Pace,
    reserve: float,
    settings: EngineSettings,
) -> tuple[CodecDecode, ...]:
    """Frames for the codec, in a step of `rows`.

    `reserve`: seconds of buffered audio that are kept for when steps are held up.

    A step decodes at most twice the frames that it generates, or one chunk of the largest size:
    large chunks of many streams at once would make one long step. Where the next step waits for
    this one's audio, it decodes no more than it generates, so that they take equally long.
    """
    most = policy.most_frames(pace, settings)
    room = max(rows if pace.lag else 2 * rows, most)
    pieces: list[CodecDecode] = []
    decoded = 0
    for lead, attempt in policy.codec_order(order, pace):
        if not attempt.undecoded_frames:
            continue
        wanted = min(most, policy.next_chunk_size(attempt, lead, reserve, pace, settings))
        count = policy.frames_to_decode(attempt, wanted, most, settings)
        if 0 < count <= room:
            start = attempt.planned_codec_frames
            awaited = policy.is_awaited(start, lead, decoded + count, pace)
            if pace.lag and pace.can_wait and pieces and pieces[-1].awaited and not awaited:
                break
            room, decoded = room - count, decoded + count
            pieces.append(CodecDecode(attempt.slot, start, start + count, awaited))
    return tuple(pieces)


def next_step_seconds(rows: int, filled: int, left: int, step_cost: StepCost) -> float:
    """The expected time of the next step, after one of `rows` frames and `filled` prompt rows.

    Prompts are assumed to keep arriving at the present rate, except for a stream that runs alone.
    `left`: prompt rows that are waiting.
    """
    coming = max(filled, left) if rows > 1 else left
    return step_cost.seconds(rows) + step_cost.prefill.seconds(coming)
