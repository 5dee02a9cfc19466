"""One stream after another on a machine that makes them in half of real time or more, on a virtual
clock: the prompt is no hold-up, and the codec gets chunks that cost it less.
"""

from __future__ import annotations

import random

import pytest

from engine import Preset, SpeechRequest
from engine.testing import Costs
from engine.types import FRAME_SECONDS
from tests.support.simulation import Simulation

PROFILE = {
    "max_num_seqs": 4,
    "max_prefill_tokens": 128,
    "chunk_schedule": (1, 2, 4, 8),
    "pipeline_depth": 0,
}
CHUNK, FRAME = 0.012, 0.006  # seconds of the codec: each chunk, and each frame of it
ONE = CHUNK + FRAME


def spoken(row: float, count: int = 12) -> Simulation:
    """Texts of 25 to 90 frames, one after the other; a frame takes `row` seconds and the codec."""
    costs = Costs(row=row, prefill_row=0.008, decoded_chunk=CHUNK, decoded_frame=FRAME)
    theatre, source = Simulation(costs, **PROFILE), random.Random(1)
    known = {rows: rows * row + ONE for rows in (1, 2, 4)}
    theatre.engine.loop.scheduler.step_cost.decode.anchor(known)
    for seed in range(count):
        words = "a" * source.randint(25, 90)
        now = theatre.clock.now()
        theatre.play([(now, SpeechRequest(words, Preset("ryan"), seed=seed))])
    return theatre


@pytest.mark.parametrize("row", [0.02, 0.031, 0.04, 0.05, 0.058])
def test_a_prompt_holds_up_no_listener(row: float) -> None:
    theatre = spoken(row)
    assert not any(each.gaps for each in theatre.listeners)
    for each in theatre.listeners:
        prompt = 0.008 * (len(each.request.text) + 20)
        frames = 2 if row + ONE < 0.75 * FRAME_SECONDS else 4
        assert each.first is not None
        assert each.first - each.arrived < prompt + frames * (row + ONE)
    assert theatre.engine.loop.scheduler.lateness.reserve(theatre.clock.now()) == 0.0


@pytest.mark.parametrize(("row", "least"), [(0.02, 4.5), (0.031, 3.5), (0.04, 3.0), (0.058, 2.0)])
def test_chunks_grow_where_a_frame_takes_most_of_its_time(row: float, least: float) -> None:
    theatre = spoken(row)
    sizes = [[chunk.frames for chunk in each.chunks] for each in theatre.listeners]
    assert sum(map(sum, sizes)) / sum(map(len, sizes)) > least


def test_a_prompt_that_takes_longer_than_others_is_a_hold_up() -> None:
    """Cores that other work has taken, seen before anybody listens."""
    theatre = spoken(0.02, count=6)
    theatre.worker.costs = Costs(row=0.08, prefill_row=0.032, decoded_chunk=CHUNK)
    theatre.ask(SpeechRequest("a" * 40, Preset("ryan")))
    scheduler = theatre.engine.loop.scheduler
    while not scheduler.attempts or not next(iter(scheduler.attempts.values())).planned_frames:
        theatre.turn()
    assert scheduler.lateness.reserve(theatre.clock.now()) > 0.5
