"""The codec beside the steps of a CPU with many cores: nobody is late who was not before."""

from __future__ import annotations

import random
from dataclasses import dataclass
from typing import NamedTuple

import pytest

from engine.plan import StepPlan
from engine.testing import Costs
from engine.worker.core_shares import CoreShares, FrameTimes
from tests.engine.worker.test_core_shares import CODEC, COUNTS, EIGHT_BITS, FOUR_BITS, times
from tests.support.simulation import Listener, Simulation, ask, text

ENDED = 30  # listeners of a crowd
PROMPT_ROW = 0.0007
CHUNK = 0.004  # seconds of a chunk, whatever its frames
HEARD = 0.01  # seconds of silence


@dataclass(frozen=True)
class SharedCosts(Costs):
    """Of steps and the codec on their shares of the cores; in turn: on all of them."""

    shares: CoreShares | None = None
    beside: bool = True

    def frames(self, plan: StepPlan) -> float:
        rows, shares = len(plan.decode), self._shares
        return shares.step_seconds(rows, shares.cores - self._threads(plan)) if rows else 0.0

    def audio(self, plan: StepPlan) -> float:
        frames = sum(piece.stop - piece.start for piece in plan.codec_decode)
        threads = self._threads(plan) or self._shares.cores
        return frames and CHUNK + self._shares.codec_seconds(frames, threads)

    @property
    def _shares(self) -> CoreShares:
        assert self.shares is not None
        return self.shares

    def _threads(self, plan: StepPlan) -> int:
        if not self.beside or not plan.decode:
            return 0
        return self._shares.codec(len(plan.decode), plan.awaits_audio)


class Heard(NamedTuple):
    late: int  # listeners with a gap
    first: float  # median seconds to the first sound
    speed: float  # seconds of sound a second


def crowd(known: FrameTimes, streams: int, beside: bool, seed: int) -> Heard:
    """So many listeners at a time; as one ends another one comes."""
    shares = CoreShares(max(COUNTS), known)
    costs = SharedCosts(prefill_row=PROMPT_ROW, shares=shares, beside=beside)
    simulation = Simulation(costs, max_num_seqs=8, max_wait=100.0, pipeline_depth=0)
    simulation.worker.codec_beside = beside
    in_turn = {
        rows: shares.step_seconds(rows, shares.cores) + shares.codec_seconds(rows, shares.cores)
        for rows in known.steps
    }
    expected = {rows: shares.seconds(rows) for rows in known.steps} if beside else in_turn
    simulation.engine.loop.scheduler.step_cost.decode.anchor({0: 0.0, **expected})
    source = random.Random(seed)

    def new() -> Listener:
        words = text(source.randint(25, 90), source)
        return ask(simulation, words, seed=source.randrange(1000))

    there = [new() for _ in range(streams)]
    while sum(each.ended is not None for each in simulation.listeners) < ENDED:
        simulation.turn()
        there = [each if each.ended is None else new() for each in there]
    simulation.finish()
    listeners = simulation.listeners
    late = sum(any(gap > HEARD for gap in each.gaps) for each in listeners)
    waits = sorted(each.first - each.arrived for each in listeners if each.first is not None)
    seconds = 0.08 * sum(each.frames for each in listeners)
    return Heard(late, waits[len(waits) // 2], seconds / simulation.clock.now())


@pytest.mark.parametrize("faster", [1, 4])
@pytest.mark.parametrize("step", [FOUR_BITS, EIGHT_BITS], ids=["4", "8"])
@pytest.mark.parametrize("streams", [1, 2, 4])
def test_nobody_is_later_than_where_steps_wait_for_the_codec(
    step: tuple[float, ...], faster: int, streams: int
) -> None:
    known = times(step, tuple(each / faster for each in CODEC))
    for seed in range(2):
        beside, before = (crowd(known, streams, each, seed) for each in (True, False))
        assert beside.late <= before.late


@pytest.mark.parametrize(("step", "frame"), [(0.05, 0.045), (0.062, 0.045), (0.076, 0.022)])
def test_one_after_the_other_hears_no_gap_however_slow_the_codec_is_beside_steps(
    step: float, frame: float
) -> None:
    """A frame takes less than it plays. A first chunk lasts until the second one, and a chunk is
    only as large as there is time to decode it."""
    simulation = Simulation(Costs(step, decoded_frame=frame), max_num_seqs=8, pipeline_depth=0)
    simulation.worker.codec_beside = True
    simulation.engine.loop.scheduler.step_cost.decode.anchor({0: 0.0, 1: step})
    source = random.Random(1)
    for _ in range(6):
        ask(simulation, text(source.randint(25, 90), source), seed=source.randrange(1000))
        simulation.finish()
    _, *others = simulation.listeners  # from the first one times are known
    assert [gap for each in others for gap in each.gaps if gap > HEARD] == []
