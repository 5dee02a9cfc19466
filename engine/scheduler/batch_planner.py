"""The parts of a plan for sequences that have a slot, each in the order of the policy.

Every function notes on the runs what it has planned. Admission and results belong to the
scheduler; the rules themselves to the policy.
"""

from __future__ import annotations

from collections.abc import Iterable

from engine.config import EngineSettings
from engine.plan import AppendText, Decode, Prefill
from engine.requests.sequence import Run
from engine.scheduler import policy
from engine.scheduler.policy import Ranked
from engine.scheduler.step_cost import StepCost


def feeds(runs: Iterable[Run]) -> tuple[AppendText, ...]:
    """Text the worker does not have yet."""
    told = ((run.slot, run.sequence.text.news()) for run in runs)
    return tuple(AppendText(slot, *news) for slot, news in told if news)


def prefills(
    order: Ranked, most: int, pace: StepCost, settings: EngineSettings
) -> tuple[Prefill, ...]:
    """Prompts as far as one step may go, `most` rows.

    Only the first of them is cut, as a piece costs a pass.
    """
    unfilled = [run for _, run in order if run.prefilled < run.rows]
    left = policy.prefill_rows(order, most, pace, settings) if unfilled else 0
    pieces: list[Prefill] = []
    for run in unfilled:
        stop = min(run.rows, run.prefilled + left)
        if stop < run.rows and pieces:
            break
        pieces.append(Prefill(run.slot, run.prefilled, stop))
        left -= stop - run.prefilled
        run.prefilled = stop
    return tuple(pieces)


def frames(
    order: Ranked,
    prefill: tuple[Prefill, ...],
    pace: StepCost,
    settings: EngineSettings,
    now: float,
) -> tuple[int, ...]:
    """The slots that make a frame: among many not those whose prompt is filled by the same step."""
    filled = {piece.slot: piece.stop - piece.start for piece in prefill}
    ready = [(left, run) for left, run in order if run.ready]
    before = [(left, run) for left, run in ready if run.slot not in filled]
    ready = before if policy.side_by_side(len(before), sum(filled.values()), pace) else ready
    chosen = policy.rows_to_step(ready, pace, settings)
    for _, run in chosen:
        run.stepped += 1
        run.stepped_at = now
    return tuple(run.slot for _, run in chosen)


def step_to_come(rows: int, filled: int, left: int, pace: StepCost) -> float:
    """Seconds that one may take, after one with so many frames that filled so many prompt rows.

    Prompts go on coming as they do, but who is alone has had its own. `left`: known to come.
    """
    coming = max(filled, left) if rows > 1 else left
    return pace.seconds(rows) + pace.prompts.seconds(coming)


def decodes(
    order: Ranked, rows: int, step: float, settings: EngineSettings, now: float
) -> tuple[Decode, ...]:
    """Frames that become sound; a step of `rows` takes `step` seconds.

    Large chunks of many streams would make one step a long one. So no more than twice the
    frames that are made become sound at once.
    """
    room = max(2 * rows, settings.chunk_schedule[-1])
    pieces = []
    for lead, run in order:
        _note_text(run, now)
        wanted = policy.chunk_frames(run, lead, step, settings) if run.undecoded else 0
        count = policy.chunk_of(run, wanted, settings) if wanted else 0
        if 0 < count <= room:
            room -= count
            pieces.append(_send(run, count, settings))
    return tuple(pieces)


def _send(run: Run, count: int, settings: EngineSettings) -> Decode:
    start = run.sent
    run.sent += count
    run.rung = policy.rung(count, settings)
    return Decode(run.slot, start, run.sent)


def _note_text(run: Run, now: float) -> None:
    """Whether the listener's own text is what it waits for."""
    if run.sequence.text.closed:
        return
    if run.waits_for_text:
        run.starved = True
    else:
        run.sequence.touched = now
