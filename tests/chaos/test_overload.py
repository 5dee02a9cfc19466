"""Ten times the load that can be served: the first are served, the rest get a time to retry."""

from __future__ import annotations

import asyncio
import random
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from engine import Engine, EngineSettings, Library, Preset, SpeechRequest
from engine.testing import Costs, FakeEngine
from studio.api import create_api
from tests.support.serving import OwnTime, serving
from tests.support.simulation import FAST, Simulation, poisson

BEARABLE = 25.0  # requests a second on the simulated card
NOTICED = 0.01  # seconds of silence that a careful ear notices


def storm(seconds: float, seed: int) -> Simulation:
    """A simulation of ten times as many requests as the card can bear."""
    simulation = Simulation(FAST, max_waiting=100)
    rate = 10 * BEARABLE
    simulation.play(poisson(int(rate * seconds), rate, random.Random(seed)))
    return simulation


@pytest.mark.parametrize(
    ("seconds", "seed"), [(8, 1), (8, 2), pytest.param(120, 3, marks=pytest.mark.slow)]
)
def test_the_first_in_are_served_without_a_gap_and_it_recovers(seconds: float, seed: int) -> None:
    simulation = storm(seconds, seed)
    served, refused = simulation.listeners, simulation.refused
    print(f"\n{seconds} s: {len(served)} served, {len(refused)} refused")
    assert len(refused) > 0.7 * (len(served) + len(refused))
    assert all(each.stream.end and each.stream.end.reason == "finished" for each in served)
    assert all(each.frames == len(each.request.text) for each in served)
    assert max((gap for each in served for gap in each.gaps), default=0.0) < NOTICED
    assert all(1 <= busy.retry_after < 60 for busy in refused)
    simulation.clock.sleep(1.0)
    again = simulation.ask(SpeechRequest("Hello again, all of you.", Preset("ryan")))
    assert again is not None
    simulation.finish()
    assert again.first is not None
    assert again.first - again.arrived < 0.1


# Over HTTP, on the clock on the wall.

SLOTS, WAITING, FRAMES = 8, 8, 25
CROWD, SECONDS = 160, 3.0  # about five a second can be served


@pytest.fixture
def engine() -> Iterator[Engine]:
    costs = Costs(step=0.02, row=0.005)  # eight rows in 60 of 80 ms
    with FakeEngine(
        settings=EngineSettings(max_num_seqs=SLOTS, max_waiting=WAITING), costs=costs
    ) as it:
        yield it


async def ask(http: httpx.AsyncClient, url: str, after: float) -> tuple[int, int, str]:
    """The answer's status, its bytes, and its Retry-After."""
    await asyncio.sleep(after)
    body = {"input": "x" * FRAMES, "response_format": "pcm"}
    limits = {"max_new_tokens": FRAMES, "ignore_eos": True}
    answer = await http.post(f"{url}/v1/audio/speech", json={**body, **limits})
    return answer.status_code, len(answer.content), answer.headers.get("retry-after", "")


async def crowd(url: str, engine: Engine) -> list[tuple[int, int, str]]:
    """Send as many requests as there is room for and, once they run, all others."""
    async with httpx.AsyncClient(timeout=60, limits=httpx.Limits(max_connections=None)) as http:
        first = [asyncio.create_task(ask(http, url, 0)) for _ in range(SLOTS)]
        while (stats := engine.stats()).running + sum(stats.ended.values()) < SLOTS:
            await asyncio.sleep(0.01)
        arrivals = (SECONDS * number / CROWD for number in range(CROWD - SLOTS))
        rest = (ask(http, url, after) for after in arrivals)
        return await asyncio.gather(*first, *rest)


def test_every_answer_is_whole_or_a_plain_refusal(engine: Engine, tmp_path: Path) -> None:
    with serving(create_api(engine, Library(tmp_path / "voices"))) as url:
        answers = asyncio.run(crowd(url, engine))
        statuses = Counter(status for status, _, _ in answers)
        print(f"\n{dict(statuses)}, gaps {engine.stats().gaps}")
        assert set(statuses) == {200, 429}
        assert all(status == 200 for status, _, _ in answers[:SLOTS])  # the first in
        assert statuses[200] >= SLOTS + WAITING
        assert statuses[429] > CROWD / 2
        for status, size, later in answers:
            assert size == FRAMES * 1920 * 2 or status == 429
            assert later == "" or 1 <= int(later) < 60
        assert all(later for status, _, later in answers if status == 429)
        with OwnTime() as took:
            assert asyncio.run(one(url)) == 200
        assert took.seconds < 15  # 0.8 on a machine at rest
    assert engine.stats().running == engine.stats().waiting == 0


async def one(url: str) -> int:
    async with httpx.AsyncClient(timeout=60) as http:
        return (await ask(http, url, 0))[0]
