"""The API's overhead: CPU per chunk at 64 streams, and until the first byte."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator

import httpx
import pytest

from engine import Engine, EngineSettings, Preset, SpeechRequest
from engine.plan import StepPlan
from engine.testing import Costs, FakeEngine
from tests.support.serving import PATIENCE, wait_until

STREAMS, FRAMES = 64, 40
CPU_A_CHUNK = 1e-3
FIRST_BYTE = 20e-3
AHEAD = 2  # chunks that are begun before the first is out
LISTENERS = """
import json, selectors, socket, sys
host, port, streams, frames = sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), int(sys.argv[4])
body = json.dumps({"input": "x" * frames, "response_format": "pcm", "stream": True,
                   "max_new_tokens": frames, "ignore_eos": True}).encode()
head = f"POST /v1/audio/speech HTTP/1.1\\r\\nHost: x\\r\\nConnection: close\\r\\n"
head += f"Content-Type: application/json\\r\\nContent-Length: {len(body)}\\r\\n\\r\\n"
ready = selectors.DefaultSelector()
for _ in range(streams):
    wire = socket.create_connection((host, port))
    wire.sendall(head.encode() + body)
    ready.register(wire, selectors.EVENT_READ, [0])
while ready.get_map():
    for key, _ in ready.select():
        data = key.fileobj.recv(1 << 16)
        key.data[0] += len(data)
        if not data:
            assert key.data[0] > frames * 3840, key.data
            ready.unregister(key.fileobj)
"""


@pytest.fixture
def engine() -> Iterator[FakeEngine]:
    """A chunk for every frame: the most chunks there can be. A busy machine refuses nobody."""
    settings = EngineSettings(max_num_seqs=STREAMS, chunk_schedule=(1,), max_wait=600)
    with FakeEngine(settings=settings, costs=Costs(step=0.005)) as engine:
        yield engine


def request() -> SpeechRequest:
    return SpeechRequest("x" * FRAMES, Preset("ryan"), max_frames=FRAMES, ignore_end=True)


def cpu(work: Callable[[], None]) -> float:
    start = time.process_time()
    work()
    return time.process_time() - start


def listen_inside(engine: Engine) -> None:
    async def one() -> None:
        async with engine.submit(request()) as stream:
            async for chunk in stream:
                assert chunk.frames == 1

    async def every() -> None:
        await asyncio.gather(*(one() for _ in range(STREAMS)))

    asyncio.run(every())


def listen_outside(url: str) -> None:
    place = httpx.URL(url)
    numbers = map(str, (place.port, STREAMS, FRAMES))
    subprocess.run([sys.executable, "-c", LISTENERS, place.host, *numbers], check=True)


def test_the_wire_adds_little_to_a_chunk(engine: Engine, url: str) -> None:
    inside = cpu(lambda: listen_inside(engine))
    outside = cpu(lambda: listen_outside(url))
    added = (outside - inside) / (STREAMS * FRAMES)
    of_engine = inside / STREAMS / FRAMES
    print(f"\nCPU a chunk: engine {of_engine * 1e3:.3f} ms, wire +{added * 1e3:.3f} ms")
    assert added < CPU_A_CHUNK


def test_the_first_byte_comes_with_the_first_chunk(url: str, engine: FakeEngine) -> None:
    """While the engine waits for it to arrive. What it costs is CPU: others may be before it."""
    body = {"input": "x" * FRAMES, "response_format": "pcm", "stream": True}
    arrived = threading.Event()

    def wait(plan: StepPlan) -> None:
        if any(piece.start > AHEAD for piece in plan.codec_decode):
            assert arrived.wait(PATIENCE)

    def inside() -> None:
        with engine.submit(request()) as stream:
            next(iter(stream))

    with httpx.Client(timeout=PATIENCE) as client:

        def outside() -> None:
            with client.stream("POST", f"{url}/v1/audio/speech", json=body) as answer:
                next(answer.iter_raw())
                arrived.set()

        def least(work: Callable[[], None]) -> float:
            taken = list[float]()
            for _ in range(15):
                wait_until(lambda: not engine.stats().running)
                arrived.clear()
                taken.append(cpu(work))
                arrived.set()
            return min(taken)

        engine.worker.fault = wait
        added = least(outside) - least(inside)
    print(f"\nfirst byte: wire +{added * 1e3:.1f} ms of CPU")
    assert added < FIRST_BYTE
