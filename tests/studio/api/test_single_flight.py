"""A flood of questions about the engine takes one thread, and everybody is answered."""

from __future__ import annotations

import asyncio
import threading
import time
from pathlib import Path

import anyio.to_thread
import httpx
import pytest

from engine import Library
from engine.testing import FakeEngine
from studio.api import create_api
from studio.api.single_flight import SingleFlight
from tests.support.serving import OwnTime


@pytest.mark.parametrize("path", ["/ready", "/metrics"])
def test_a_flood_takes_one_thread(
    path: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with FakeEngine() as engine:
        stats, calls, go = engine.stats, list[int](), threading.Event()

        def slow_stats():  # type: ignore[no-untyped-def]
            calls.append(threading.get_ident())
            go.wait(20)
            return stats()

        api = create_api(engine, Library(tmp_path))
        monkeypatch.setattr(engine, "stats", slow_stats)

        async def flood() -> None:
            calls.clear()
            transport = httpx.ASGITransport(api)
            async with httpx.AsyncClient(transport=transport, base_url="http://here") as client:
                tasks = [asyncio.ensure_future(client.get(path)) for _ in range(200)]
                await asyncio.sleep(0.1)
                tasks.pop().cancel()  # who leaves takes the answer from nobody
                with OwnTime() as took:
                    await anyio.to_thread.run_sync(lambda: None)  # there is a thread for others
                assert took.seconds < 10
                go.set()
                assert {each.status_code for each in await asyncio.gather(*tasks)} == {200}
                assert len(calls) == 1
                assert (await client.get(path)).status_code == 200
            assert len(calls) == 2

        asyncio.run(flood())


def test_an_error_is_told_to_all_and_not_kept() -> None:
    answers = iter([ValueError("no"), None])

    def work() -> str:
        time.sleep(0.05)
        if error := next(answers):
            raise error
        return "yes"

    async def ask() -> None:
        flight = SingleFlight[str]()
        results = await asyncio.gather(flight(work), flight(work), return_exceptions=True)
        assert [type(each) for each in results] == [ValueError, ValueError]
        assert await flight(work) == "yes"

    asyncio.run(ask())
