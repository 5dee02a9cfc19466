"""The log of the running server: whatever is sent, 64 kB a minute at most, none of its words."""

from __future__ import annotations

import base64
import json
import random
import re
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any
from urllib.parse import quote

import httpx
import pytest

from tests.support.serving import wait_until

ROOT = Path(__file__).parents[2]
MOST = 64 * 1024  # bytes a minute
MARK = "Zwölfboxkämpfer"
WORDS = f"{MARK}\n\x1b[31mERROR timbre: forged "
HOST = "127.0.0.1"


class Victim:
    """The server, and what it has written."""

    def __init__(self, port: int, log: Path) -> None:
        self.port, self._log = port, log
        self.client = httpx.Client(base_url=f"http://{HOST}:{port}", timeout=60)

    def log(self) -> str:
        return self._log.read_text(encoding="utf-8", errors="replace")

    def send(self, data: bytes, wait: bool = True) -> None:
        """Send bytes on a connection of its own, and cut it."""
        with suppress(OSError), socket.create_connection((HOST, self.port), 30) as raw:
            raw.sendall(data)
            if wait:
                raw.recv(1000)

    def half(self, path: str, kind: str, body: bytes) -> None:
        head = f"POST {path} HTTP/1.1\r\nHost: {HOST}\r\nContent-Type: {kind}\r\n"
        self.send(f"{head}Content-Length: {len(body) + 100}\r\n\r\n".encode() + body, wait=False)


@pytest.fixture(scope="module")
def victim(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Victim]:
    folder = tmp_path_factory.mktemp("log")
    command = [sys.executable, "-m", "tests.hostile.log_server", str(folder / "data")]
    with (folder / "log").open("wb") as log:
        process = subprocess.Popen(
            command,
            cwd=ROOT,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=log,
            text=True,
        )
        assert process.stdin is not None
        assert process.stdout is not None
        made = Victim(int(process.stdout.readline()), folder / "log")
        try:
            with made.client:
                yield made
        finally:
            process.stdin.close()
            process.stdout.close()
            process.wait(30)


def wrong_events(victim: Victim) -> None:
    """Every event of the page with values that its components do not have."""
    events = victim.client.get("/config").json()["dependencies"]
    draw = random.Random(1)
    for event in events:
        false = draw.choice([WORDS, {"path": WORDS}, [WORDS], -1])
        made = [false] * len(event["inputs"])
        body = {"fn_index": event["id"], "data": made, "session_hash": f"s{draw.random()}"}
        victim.client.post("/gradio_api/queue/join", json=body)
        if event["api_name"]:
            victim.client.post(f"/gradio_api/run/{event['api_name']}", json={"data": made})


def large_events(victim: Victim) -> None:
    """Three events of 7.5 MB each, as one visitor's first attempts."""
    events = victim.client.get("/config").json()["dependencies"]
    event = max(events, key=lambda each: len(each["inputs"]))
    made = [MARK * 400_000, *([WORDS] * (len(event["inputs"]) - 1))]
    for number in range(3):
        body = {"fn_index": event["id"], "data": made, "session_hash": f"large{number}"}
        victim.client.post("/gradio_api/queue/join", content=json.dumps(body, ensure_ascii=False))


def faults(victim: Victim) -> None:
    """Requests that each bring about a fault of ours, with their words in the error."""
    for number in range(300):
        fault(victim, quote(f"{MARK}-{number}") + "x" * 2000)


def fault(victim: Victim, words: str) -> None:
    head = f"GET /v1/fault/{words} HTTP/1.1\r\nHost: {HOST}\r\nConnection: close\r\n\r\n"
    victim.send(head.encode())


def bad_requests(victim: Victim) -> None:
    lines = (
        b"GET / HTTP/9.9\r\n",
        b"\x00" * 500,
        b"GET /%s\r\n\r\n",
        b"POST / HTTP/1.1\r\nHost: a\r\n",
    )
    for number in range(300):
        mark = f"{MARK}{number}".encode()
        victim.send(lines[number % len(lines)] + mark + b": " + mark + b"\r\n\r\n")


def sockets(victim: Victim) -> None:
    """Upgrades and messages that are none."""
    key = base64.b64encode(b"0123456789abcdef").decode()
    for number in range(100):
        head = (
            f"GET /v1/audio/speech/stream HTTP/1.1\r\nHost: {HOST}\r\nUpgrade: websocket\r\n"
            f"Connection: Upgrade\r\nSec-WebSocket-Version: {13 - number % 2}\r\n"
            f"Sec-WebSocket-Key: {key if number % 3 else MARK}\r\n\r\n"
        )
        victim.send(head.encode() + bytes([0x81, 0xFE, 255, 255]) + MARK.encode() * 20)
        victim.send(head.encode() + bytes([0xC3, 0x80 | 5]) + b"abcd" + b"\xff\xfe\xfd\xfc\xfb")


def halves(victim: Victim) -> None:
    """Bodies whose sender leaves in the middle."""
    body = json.dumps({"input": WORDS}).encode()
    form = f'--x\r\nContent-Disposition: form-data; name="files"; filename="{MARK}"\r\n\r\n{MARK}'
    for _ in range(30):
        for path in ("/v1/audio/speech", "/v1/audio/embeddings", "/gradio_api/queue/join"):
            victim.half(path, "application/json", body)
        for path in ("/v1/audio/voices", "/gradio_api/upload", "/login", "/timbre/projects"):
            victim.half(path, "multipart/form-data; boundary=x", form.encode())


ATTACKS = [wrong_events, large_events, faults, bad_requests, sockets, halves]


@pytest.mark.parametrize("attack", ATTACKS, ids=lambda attack: str(attack.__name__))
def test_what_is_sent_neither_fills_the_log_nor_stands_in_it(victim: Victim, attack: Any) -> None:
    before, started = len(victim.log().encode()), time.monotonic()
    attack(victim)
    assert victim.client.get("/health").status_code == 200
    minutes = 1 + (time.monotonic() - started) // 60
    written = victim.log().encode()[before:].decode("utf-8", "replace")
    assert len(written.encode()) <= MOST * minutes
    assert MARK not in written
    assert "forged" not in written
    assert not re.search("[\x00-\x08\x0b-\x1f\x7f]", written)


def test_who_leaves_in_the_middle_of_a_body_is_no_fault(victim: Victim) -> None:
    halves(victim)
    assert victim.client.get("/health").status_code == 200
    assert "ClientDisconnect" not in victim.log()


def test_a_fault_is_told_with_its_kind_and_place(victim: Victim) -> None:
    fault(victim, "words")
    told = r"ERROR uvicorn.error: Exception in ASGI application"
    place = r"  KeyError\n(    .*\n)+    .*log_server.py:\d+ fault"
    wait_until(lambda: re.search(told, victim.log()) and re.search(place, victim.log()))
