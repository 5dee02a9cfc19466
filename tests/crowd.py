"""Many people at one page, the page in one process and they in another.

Serves the page on an engine without a model, lets `PEOPLE` ask `/stream` at the same moment by the
protocol of Gradio's clients (32 of those in one process take seconds of their own), then closes a
connection in the middle; prints what each of them got as JSON.
"""

from __future__ import annotations

import asyncio
import base64
import json
import subprocess
import sys
import threading
import time
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import httpx
from fastapi import FastAPI

from engine import Costs, EngineSettings, FakeEngine, Library, Preset, SpeechRequest
from studio import page, serving

PEOPLE = 32
CALL = "/gradio_api/call/stream"
LONG = " ".join(f"number {number}" for number in range(40))
STEP = 0.01  # seconds of a step, whoever is served


def serve(data: Path) -> None:
    """Tell the address, and answer until standard input is closed."""
    settings = EngineSettings(slots=PEOPLE)
    with FakeEngine(settings=settings, costs=Costs(step=STEP)) as engine:
        application, address = FastAPI(), serving.listen("127.0.0.1", 0)
        application.get("/running")(lambda: engine.stats().running)
        page.mount_page(application, engine, Library(data / "voices"))
        threading.Thread(target=serving.serve, args=(application, address), daemon=True).start()
        print(address.getsockname()[1], flush=True)
        sys.stdin.read()


def gather(data: Path) -> dict[str, Any]:
    command = [sys.executable, "-m", "tests.crowd", "serve", str(data)]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True) as server:
        assert server.stdout
        url = f"http://127.0.0.1:{server.stdout.readline().strip()}"
        asyncio.run(come(url, 1))  # what is imported with the first event is nobody's
        return {"people": asyncio.run(come(url, PEOPLE)), "freed": closing(url)}


async def come(url: str, people: int) -> list[dict[str, Any]]:
    limits = httpx.Limits(max_connections=2 * people)
    async with httpx.AsyncClient(base_url=url, timeout=60, limits=limits) as http:
        return await asyncio.gather(*(ask(http, number) for number in range(people)))


def request(number: int, seed: int | None = None) -> SpeechRequest:
    return SpeechRequest(f"Good evening, I am number {number}.", Preset("ryan"), seed=seed)


async def ask(http: httpx.AsyncClient, number: int) -> dict[str, Any]:
    """One person: a session of its own, as every `call` has."""
    began, first = time.perf_counter(), 0.0
    fields = {"data": [request(number).text, "ryan", "auto", ""]}
    asked = (await http.post(CALL, json=fields)).json()
    chunks = []
    async with http.stream("GET", f"{CALL}/{asked['event_id']}") as answer:
        async for line in answer.aiter_lines():
            if '"pcm"' in line:
                first = first or time.perf_counter() - began
                chunks.append(json.loads(line.removeprefix("data: "))[0])
    chunks = chunks[:-1]  # the end repeats the last one
    pcm = b"".join(base64.b64decode(chunk["pcm"]) for chunk in chunks)
    indexes = [chunk["index"] for chunk in chunks]
    return {"first": first, "indexes": indexes, "pcm": pcm.hex(), "seed": chunks[0]["seed"]}


def closing(url: str) -> float:
    """Seconds from a connection that is closed in the middle to its slot's freedom."""
    with ExitStack() as stack:
        http = stack.enter_context(httpx.Client(base_url=url))
        asked = http.post(CALL, json={"data": [LONG, "ryan", "auto", ""]}).json()
        events = http.stream("GET", f"{CALL}/{asked['event_id']}")
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
    if sys.argv[1] == "serve":
        serve(Path(sys.argv[2]))
    else:
        print(json.dumps(gather(Path(sys.argv[1]))))
