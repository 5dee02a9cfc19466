"""Clients that take 1 kB at a time of two minutes of speech do not affect others."""

from __future__ import annotations

import asyncio
import json
import os
import socket
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from http.client import HTTPConnection, HTTPResponse
from urllib.parse import urlsplit

import pytest

from bench.http_lines import Server
from bench.load_generator import closed_loop
from bench.over_http import OverHttp
from bench.workload import Work
from engine import FRAME_SAMPLES, FRAME_SECONDS, EngineSettings, Library
from engine.testing import FakeEngine
from studio.api import ApiSettings, create_api
from tests.studio.api.conftest import Serve
from tests.support.serving import wait_until

FRAMES = 1500  # two minutes: 5.8 MB
LINGER = {
    "input": "x" * FRAMES,
    "response_format": "pcm",
    "stream": True,
    "max_new_tokens": FRAMES,
    "ignore_eos": True,
}
READERS, LISTENERS, JOBS = 3, 4, 8
TURNS, PIECE = 8, 1024  # each reader takes a piece in each turn, however long that lasts
PATIENT = ApiSettings(stall_timeout=3600)


@contextmanager
def reader(url: str) -> Iterator[HTTPResponse]:
    """An answer on a connection that holds little of what was not read yet."""
    place = urlsplit(url)
    with socket.socket() as wire:
        wire.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        wire.connect((place.hostname, place.port))
        connection = HTTPConnection(place.netloc)
        connection.sock = wire
        body = json.dumps(LINGER)
        connection.request("POST", "/v1/audio/speech", body, {"Content-Type": "application/json"})
        with connection.getresponse() as answer:
            yield answer


def others(url: str) -> float:
    """The seconds that cores worked while four clients were spoken to, each of them whole."""
    jobs = Work().jobs(JOBS)

    async def listen() -> list[float]:
        asking = OverHttp(Server(url), "ryan", {})
        run = await closed_loop(asking.listen, jobs, LISTENERS)
        await asking.finish()
        assert [stream.error for stream in run.streams if stream.error] == []
        return [stream.audio for stream in run.streams]

    before = time.process_time()
    heard = asyncio.run(listen())
    assert sum(heard) == pytest.approx(sum(job.frames for job in jobs) * FRAME_SECONDS)
    return time.process_time() - before


def resident() -> int:
    """Bytes of this process in memory."""
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


@pytest.mark.skipif(not os.path.exists("/proc/self/statm"), reason="memory is read from /proc")
def test_slow_reading_costs_nobody_else_anything(library: Library, serve: Serve) -> None:
    with FakeEngine(settings=EngineSettings(max_num_seqs=READERS)) as engine, ExitStack() as open:
        url = serve(create_api(engine, library, PATIENT))
        others(url)  # warm
        alone, memory = least(url), resident()
        answers = [open.enter_context(reader(url)) for _ in range(READERS)]
        wait_until(lambda: engine.stats().running == 0)  # what nobody has read holds no place
        beside = []
        for _ in range(TURNS):
            beside.append(others(url))
            assert [len(answer.read(PIECE)) for answer in answers] == [PIECE] * READERS
        grown = resident() - memory
        rest = FRAMES * FRAME_SAMPLES * 2 - TURNS * PIECE
        assert [len(answer.read()) for answer in answers] == [rest] * READERS
        alone = max(alone, least(url))  # cores that others use are slower
    print(f"\nalone {alone:.3f} s, beside {min(beside):.3f} s, +{grown / 2**20:.0f} MiB")
    assert min(beside) < 1.5 * alone
    assert grown < READERS * 40 * 2**20  # kept until it is read: 11 MB each, as codes too


def least(url: str) -> float:
    return min(others(url) for _ in range(TURNS))
