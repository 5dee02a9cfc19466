"""Times every iteration ("turn") of the engine's loop part by part.

A part's time excludes the named parts that it calls, so that all parts sum to the whole. Timing
adds no waits for the device.
"""

from __future__ import annotations

import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from typing import Any, TypeAlias
from unittest.mock import patch

import numpy as np

from engine import Engine
from engine.plan import StepPlan
from engine.worker.cuda_graphs import GraphRunner
from engine.worker.model_runner import ModelRunner
from engine.worker.step_output import PendingStep, StepTimer

REPLAY = "replay"  # reported with the part that it belongs to
WAIT, ASLEEP, REST = "wait for device", "asleep", "the rest"
OWN = (
    *("calls", "plan", "launch", "admit", "prompts", f"prompts, {REPLAY}", "frames"),
    *(f"frames, {REPLAY}", "codec", f"codec, {REPLAY}", "send for results", WAIT),
    *("read results", "commit", "deliver", REPLAY, REST, ASLEEP),
)  # parts, in a turn's order
KINDS = ("frames alone", "prompts", "codec", "prompts and codec")  # of turns, by their work

FIRST_TURN = 30.0  # seconds that a measurement waits for it

Report: TypeAlias = dict[str, Any]
Note: TypeAlias = Callable[["Turn", Any, Any], None]  # called with arguments and result


@dataclass
class Turn:
    """One iteration of the loop, in seconds by part."""

    begun: float
    ended: float = 0.0
    processor: float = 0.0  # CPU seconds of the thread
    device: float = 0.0  # seconds of the step that was read, by StepTimer
    plan: StepPlan = field(default_factory=lambda: StepPlan(-1))
    parts: defaultdict[str, float] = field(default_factory=lambda: defaultdict(float))
    calls: Counter[str] = field(default_factory=Counter)

    @property
    def kind(self) -> str:
        has = {"prompts": self.plan.prefill, "codec": self.plan.codec_decode}
        return " and ".join(name for name, work in has.items() if work) or KINDS[0]


class Clock:
    """Adds the time of a turn to the innermost running part."""

    def __init__(self) -> None:
        self.turns: list[Turn] = []
        self._open: Turn | None = None
        self._names: list[str] = []
        self._since = 0.0

    def part(self, name: str, work: Callable[..., Any], note: Note | None) -> Callable[..., Any]:
        def run(*args: Any, **named: Any) -> Any:
            turn = self._open
            if turn is None:
                return work(*args, **named)
            inside = f"{self._names[-1]}, {name}"
            self._enter(turn, inside if inside in OWN else name)
            try:
                made = work(*args, **named)
            finally:
                self._book(turn)
                self._names.pop()
            if note:
                note(turn, args, made)
            return made

        return run

    def turn(self, work: Callable[..., bool]) -> Callable[..., bool]:
        def run(*args: Any) -> bool:
            turn, ran = Turn(time.perf_counter()), time.thread_time()
            self._open, self._names, self._since = turn, [REST], turn.begun
            try:
                return work(*args)
            finally:
                self._book(turn)
                self._open, turn.ended = None, self._since
                turn.processor = time.thread_time() - ran
                self.turns.append(turn)

        return run

    def _enter(self, turn: Turn, name: str) -> None:
        self._book(turn)
        self._names.append(name)
        turn.calls[name] += 1

    def _book(self, turn: Turn) -> None:
        now = time.perf_counter()
        turn.parts[self._names[-1]] += now - self._since
        self._since = now


@contextmanager
def timed_parts(engine: Engine) -> Iterator[Clock]:
    """Patch the engine to time every turn and its named parts."""
    clock, loop = Clock(), engine.loop
    worker, scheduler = loop._worker, loop.scheduler
    patched: list[tuple[Any, str, str, Note | None]] = [
        (scheduler, "plan", "plan", None),
        (worker, "launch", "launch", _note_plan),
        (worker, "_admit", "admit", None),
        (ModelRunner, "prefill", "prompts", None),
        (ModelRunner, "_decode", "frames", None),
        (worker, "_codec_decode", "codec", None),
        (GraphRunner, "run", REPLAY, None),
        (PendingStep, "__init__", "send for results", None),
        (PendingStep, "wait_codes", WAIT, None),
        (StepTimer, "wait", WAIT, _note_device),
        (PendingStep, "result", "read results", None),
        (PendingStep, "audio", "read results", None),
        (scheduler, "commit", "commit", None),
        (scheduler, "commit_audio", "commit", None),
        (loop, "deliver", "deliver", None),
    ]
    with ExitStack() as stack:
        for place, name, called, note in patched:
            work = clock.part(called, getattr(place, name), note)
            stack.enter_context(patch.object(place, name, work))
        stack.enter_context(
            patch.object(loop, "_run_commands", _time_commands(clock, loop._run_commands))
        )
        stack.enter_context(patch.object(loop, "run_once", clock.turn(loop.run_once)))
        yield clock


def _note_plan(turn: Turn, args: Any, made: Any) -> None:
    turn.plan = args[0]


def _note_device(turn: Turn, args: Any, made: Any) -> None:
    turn.device += made


def _time_commands(clock: Clock, work: Callable[[bool], None]) -> Callable[[bool], None]:
    asleep, awake = clock.part(ASLEEP, work, None), clock.part("calls", work, None)
    return lambda wait: asleep(wait) if wait else awake(wait)


def wait_for(seen: Callable[[], bool], seconds: float) -> None:
    """Wait for `seconds`; a busy machine is waited for longer, until there is something to see."""
    begun = time.perf_counter()
    time.sleep(seconds)
    while not seen() and time.perf_counter() - begun < FIRST_TURN:
        time.sleep(0.01)


def host(engine: Engine, seconds: float) -> Report:
    """The work and the times of the turns during `seconds`."""
    heard, others, begun = (
        engine.loop.counters.audio_seconds,
        time.process_time(),
        time.perf_counter(),
    )
    with timed_parts(engine) as clock:
        wait_for(lambda: any(turn.plan.decode for turn in list(clock.turns)), seconds)
    wall, others = time.perf_counter() - begun, time.process_time() - others
    every = list(clock.turns)  # a copy, since a running turn may still be added
    turns = [turn for turn in every if turn.plan]
    ran = sum(turn.processor for turn in every)
    return {
        "audio_per_second": round((engine.loop.counters.audio_seconds - heard) / wall, 1),
        "cores": {"engine": round(ran / wall, 2), "others": round((others - ran) / wall, 2)},
        "turns": len(turns),
        "turn_ms": percentiles(turn.ended - turn.begun for turn in turns),
        "step_ms": percentiles(turn.device for turn in turns),
        "work": work_figures([turn.plan for turn in turns]),
        "parts": dict(part_times(turns, every)),
        "kinds": dict(kind_times(turns)),
    }


def percentiles(seconds: Iterable[float]) -> Report:
    """Milliseconds."""
    found = [1e3 * each for each in seconds] or [0.0]
    middle, late = np.percentile(found, (50, 95))
    return {"p50": round(middle, 3), "p95": round(late, 3), "mean": round(np.mean(found), 3)}


def work_figures(plans: Sequence[StepPlan]) -> Report:
    """The average work of a turn; for rows also percentiles."""
    rows = [len(plan.decode) for plan in plans] or [0]
    found = {
        "admissions": sum(len(plan.admit) for plan in plans),
        "prompts": sum(len(plan.prefill) for plan in plans),
        "prompt_rows": sum(each.stop - each.start for plan in plans for each in plan.prefill),
        "chunks": sum(len(plan.codec_decode) for plan in plans),
        "first_chunks": sum(not each.start for plan in plans for each in plan.codec_decode),
        "chunk_frames": sum(each.stop - each.start for plan in plans for each in plan.codec_decode),
    }
    figures = {name: round(count / max(1, len(plans)), 2) for name, count in found.items()}
    low, usual, high = (int(each) for each in np.percentile(rows, (5, 50, 95)))
    return {
        "rows": {"p5": low, "p50": usual, "p95": high, "mean": np.mean(rows).round(1)}
    } | figures


def part_times(turns: Sequence[Turn], every: Sequence[Turn]) -> Iterator[tuple[str, Report]]:
    """Parts in order, with shares of the whole time, which sum to 1."""
    wall = sum(sum(turn.parts.values()) for turn in every)
    for name in (name for name in OWN if any(name in turn.parts for turn in every)):
        spent = sum(turn.parts.get(name, 0.0) for turn in every)
        calls = sum(turn.calls[name] for turn in turns) / max(1, len(turns))
        times = percentiles(turn.parts.get(name, 0.0) for turn in turns)
        yield name, times | {"share": round(spent / wall, 4), "calls": round(calls, 2)}


def kind_times(turns: Sequence[Turn]) -> Iterator[tuple[str, Report]]:
    """Turns by kind: with prompts, codec work, both or neither."""
    for kind in KINDS:
        same = [turn for turn in turns if turn.kind == kind]
        rows = np.mean([len(turn.plan.decode) for turn in same] or [0]).round(1)
        lasted = percentiles(turn.ended - turn.begun for turn in same)
        yield kind, {"turns": len(same), "rows": rows, **lasted}


def host_lines(report: Report) -> Iterator[tuple[str, str]]:
    """The report as labels and texts, empty for parts that never ran."""
    cores, work = report["cores"], report["work"]
    each = f"{work['prompts']} prompts, {work['chunks']} chunks"
    yield "audio s/s, cores", f"{report['audio_per_second']}, {cores['engine']} + {cores['others']}"
    yield "rows, and a turn", "{p5}/{p50}/{p95}, ".format(**work["rows"]) + each
    yield "turn, ms p50 p95", _ms(report["turn_ms"])
    yield "step on device", _ms(report["step_ms"])
    for name in OWN:
        part = report["parts"].get(name)
        yield f"  {name}", f"{_ms(part)} {part['share']:7.1%}" if part else ""
    for kind, same in report["kinds"].items():
        yield kind, f"{_ms(same)} {same['turns']:5} x {same['rows']} rows"


def _ms(found: Report) -> str:
    return f"{found['p50']:7.2f} {found['p95']:7.2f}"
