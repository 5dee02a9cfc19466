"""Many people at one page, the page in one process and they in another.

Serves the page on an engine without a model, lets `PEOPLE` ask `/stream` at the same moment by the
protocol of Gradio's clients, then closes a connection in the middle; gathers what each of them
got. The people are sockets that look into what came when all is there: 32 of Gradio's clients
in one process take seconds of their own, and 32 of httpx's as much of the CPU as the server.
"""

from __future__ import annotations

import asyncio
import base64
import json
import os
import re
import subprocess
import sys
import threading
import time
from collections.abc import AsyncIterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import httpx
from fastapi import FastAPI

from engine import EngineSettings, Library, Preset, SpeechRequest
from engine.testing import Costs, FakeEngine
from studio.context import open_studio
from studio.server import serving
from studio.ui import page
from tests.support.programs import ROOT

PEOPLE = 32
CALL = "/gradio_api/call/stream"
LONG = " ".join(f"number {number}" for number in range(40))
NEVER = "1000000000"  # events between Gradio's summaries, as app.py says
STEP = 0.01  # seconds of a step


def serve(data: Path) -> None:
    """Tell the address, and answer until standard input is closed."""
    settings = EngineSettings(max_num_seqs=PEOPLE, max_wait=600)  # a busy machine refuses nobody
    with FakeEngine(settings=settings, costs=Costs(step=STEP)) as engine:
        application, address = FastAPI(), serving.listen("127.0.0.1", 0)
        application.get("/running")(lambda: engine.stats().running)
        page.mount_page(application, open_studio(engine, Library(data / "voices")))
        print(address.getsockname()[1], flush=True)  # a server writes what is printed into its log
        threading.Thread(target=serving.serve, args=(application, address), daemon=True).start()
        sys.stdin.read()


def gather(data: Path) -> dict[str, Any]:
    command = [sys.executable, "-m", "tests.support.crowd", str(data)]
    pipe, settings = subprocess.PIPE, {**os.environ, "GRADIO_ANALYTICS_CACHE_FREQUENCY": NEVER}
    with subprocess.Popen(
        command, stdin=pipe, stdout=pipe, text=True, env=settings, cwd=ROOT
    ) as server:
        assert server.stdout
        url = f"http://127.0.0.1:{server.stdout.readline().strip()}"
        asyncio.run(come(url, 1))  # imports of the first event are not counted
        return {"people": asyncio.run(come(url, PEOPLE)), "freed": closing(url)}


async def come(url: str, people: int) -> list[dict[str, Any]]:
    return await asyncio.gather(*(ask(httpx.URL(url), number) for number in range(people)))


def request(number: int, seed: int | None = None) -> SpeechRequest:
    return SpeechRequest(f"Good evening, I am number {number}.", Preset("ryan"), seed=seed)


async def ask(url: httpx.URL, number: int) -> dict[str, Any]:
    """One person: a connection and a session of its own, as every `call` has."""
    began = time.perf_counter()
    reader, writer = await asyncio.open_connection(url.host, url.port)
    fields = json.dumps({"data": [request(number).text, "ryan", "auto", ""]})
    writer.write(_written("POST", CALL, fields))
    length = re.search(rb"content-length: (\d+)", await _head(reader))
    assert length
    event = json.loads(await reader.readexactly(int(length[1])))["event_id"]
    writer.write(_written("GET", f"{CALL}/{event}"))
    await _head(reader)
    parts = [(time.perf_counter() - began, part) async for part in _parts(reader)]
    writer.close()
    lines = b"".join(part for _, part in parts).decode().splitlines()
    chunks = [json.loads(line.removeprefix("data: "))[0] for line in lines if '"pcm"' in line]
    chunks = chunks[:-1]  # the end repeats the last one
    pcm = b"".join(base64.b64decode(chunk["pcm"]) for chunk in chunks)
    return {
        "first": next(seconds for seconds, part in parts if b'"pcm"' in part),
        "indexes": [chunk["index"] for chunk in chunks],
        "pcm": pcm.hex(),
        "seed": chunks[0]["seed"],
    }


def _written(method: str, path: str, fields: str = "") -> bytes:
    kind = "Content-Type: application/json\r\n" if fields else ""
    head = f"{method} {path} HTTP/1.1\r\nHost: here\r\n{kind}Content-Length: {len(fields)}"
    return f"{head}\r\n\r\n{fields}".encode()


async def _head(reader: asyncio.StreamReader) -> bytes:
    head = await reader.readuntil(b"\r\n\r\n")
    assert b" 200 " in head.splitlines()[0], head
    return head


async def _parts(reader: asyncio.StreamReader) -> AsyncIterator[bytes]:
    """An answer in pieces, as the server wrote them."""
    while size := int(await reader.readline(), 16):
        part = await reader.readexactly(size + 2)  # and the end of its line
        yield part[:-2]


def closing(url: str) -> float:
    """Seconds from a connection that is closed in the middle to its slot's freedom."""
    with ExitStack() as stack:
        http = stack.enter_context(httpx.Client(base_url=url))
        event = http.post(CALL, json={"data": [LONG, "ryan", "auto", ""]}).json()
        events = http.stream("GET", f"{CALL}/{event['event_id']}")
        lines = stack.enter_context(events).iter_lines()
        while '"pcm"' not in next(lines):
            pass
        assert http.get("/running").json() == 1
    left = time.perf_counter()
    while httpx.get(f"{url}/running").json():
        time.sleep(0.005)
        assert time.perf_counter() - left < 30, "the slot was never freed"
    return time.perf_counter() - left


if __name__ == "__main__":
    serve(Path(sys.argv[1]))
