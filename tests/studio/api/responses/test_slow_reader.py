"""A client that reads 1 kB per second for a minute does not affect others."""

from __future__ import annotations

import asyncio
import json
import os
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import takewhile
from urllib.parse import urlsplit

import pytest

from bench.http_lines import Server
from bench.load_generator import closed_loop
from bench.over_http import OverHttp
from bench.report import figures
from bench.workload import Work
from engine import EngineSettings, Library
from engine.testing import Costs, FakeEngine
from studio.api import create_api
from tests.studio.api.conftest import Serve

LINGER = {
    "input": "x" * 1500,
    "response_format": "pcm",
    "stream": True,
    "max_new_tokens": 1500,  # two minutes: 5.5 MB
    "ignore_eos": True,
}
RATE = 1024  # bytes a second
LISTENERS = 4


@contextmanager
def reading_slowly(url: str, readers: int) -> Iterator[list[int]]:
    """Connections that take `RATE` bytes a second each; what each has taken so far."""
    taken, over = [0] * readers, threading.Event()
    threads = [
        threading.Thread(target=_read, args=(url, taken, index, over)) for index in range(readers)
    ]
    for thread in threads:
        thread.start()
    yield taken
    over.set()
    for thread in threads:
        thread.join()


def _read(url: str, taken: list[int], index: int, over: threading.Event) -> None:
    place, body = urlsplit(url), json.dumps(LINGER).encode()
    with socket.socket() as wire:
        wire.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        wire.connect((place.hostname, place.port))
        head = "POST /v1/audio/speech HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n"
        wire.sendall(f"{head}Content-Length: {len(body)}\r\n\r\n".encode() + body)
        while not over.wait(1):
            taken[index] += len(wire.recv(RATE))


def others(url: str, seconds: float) -> dict[str, float]:
    """The figures of four clients that request `seconds` of speech."""

    async def listen() -> dict[str, float]:
        asking = OverHttp(Server(url), "ryan", {})
        until = time.monotonic() + seconds
        jobs = takewhile(lambda job: time.monotonic() < until, Work().stream())
        run = await closed_loop(asking.listen, jobs, LISTENERS)
        await asking.finish()
        return figures(run)

    return asyncio.run(listen())


def resident() -> int:
    """Bytes of this process in memory."""
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


@pytest.mark.slow
@pytest.mark.skipif(not os.path.exists("/proc/self/statm"), reason="memory is read from /proc")
def test_a_minute_of_slow_reading_costs_nobody_else_anything(
    library: Library, serve: Serve
) -> None:
    settings = EngineSettings(max_num_seqs=LISTENERS + 3)
    with FakeEngine(costs=Costs(step=0.005), settings=settings) as engine:
        url = serve(create_api(engine, library))
        others(url, 2)  # warm
        alone, before = others(url, 15), resident()
        with reading_slowly(url, 3) as taken:
            beside = others(url, 60)
            grown = resident() - before
    print(
        "\nalone ",
        as_line(alone),
        "\nbeside",
        as_line(beside),
        f"\nmemory +{grown / 2**20:.0f} MiB",
    )
    print("taken", taken)
    assert all(30 * RATE < size <= 61 * RATE for size in taken)
    assert (beside["failed"], beside["underrun_rate"]) == (0, 0)
    assert beside["first_p50_ms"] < 1.5 * alone["first_p50_ms"] + 2
    assert beside["total_p50_ms"] < 1.3 * alone["total_p50_ms"]
    assert grown < 3 * 40 * 2**20  # audio that was not read yet is kept: 11 MB each, as codes too


def as_line(row: dict[str, float]) -> str:
    names = ("ok", "first_p50_ms", "first_p99_ms", "total_p50_ms", "audio_per_second")
    return " ".join(f"{name} {row[name]:.1f}" for name in names)
