"""SIGTERM: no new work, streams finish or end with an error in time, the process ends."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
import pytest

from tests.support.serving import OwnTime, wait_until

ROOT = Path(__file__).parents[2]
STEP = 0.03  # seconds
pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="there is no SIGTERM")


class Served:
    """A server process and its address."""

    def __init__(self, process: subprocess.Popen[str], port: int) -> None:
        self.process = process
        self.client = httpx.Client(base_url=f"http://127.0.0.1:{port}", timeout=30)

    def speak(self, frames: int, **more: object) -> httpx.Response:
        return self.client.post("/v1/audio/speech", json=body(frames, **more))

    def end(self, last: str = "closed\n") -> float:
        """Seconds until the process has ended of itself, and said `last`."""
        with OwnTime() as took:
            assert self.process.wait(60) == 0
            assert self.process.stdout is not None
            assert self.process.stdout.read().endswith(last)
        return took.seconds


def body(frames: int, **more: object) -> dict[str, object]:
    limits = {"max_new_tokens": frames, "ignore_eos": True}
    return {"input": "x" * frames, "response_format": "pcm", **limits, **more}


@contextmanager
def served(folder: Path, grace: float, step: float = STEP) -> Iterator[Served]:
    command = [sys.executable, "-m", "tests.chaos.server", str(folder), str(grace), str(step)]
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    process = subprocess.Popen(
        command, cwd=ROOT, env=environment, stdout=subprocess.PIPE, text=True
    )
    try:
        assert process.stdout is not None
        served = Served(process, int(process.stdout.readline()))
        with served.client:
            assert served.client.get("/ready").status_code == 200
            yield served
    finally:
        process.kill()
        process.wait()
        if process.stdout:
            process.stdout.close()


def signals() -> list[signal.Signals]:
    """The signals that end the server: not SIGHUP under nohup, where it is meant to go on."""
    ignored = signal.getsignal(signal.SIGHUP) is signal.SIG_IGN
    return [signal.SIGTERM] if ignored else [signal.SIGTERM, signal.SIGHUP]


@pytest.mark.parametrize("sent", signals(), ids=str)
def test_who_is_served_is_served_to_the_end_and_nobody_new_comes_in(
    tmp_path: Path, sent: signal.Signals
) -> None:
    frames = 60
    with served(tmp_path, grace=20) as server:
        with server.client.stream("POST", "/v1/audio/speech", json=body(frames)) as answer:
            pieces = answer.iter_raw()
            heard = len(next(pieces))
            server.process.send_signal(sent)
            wait_until(lambda: server.client.get("/ready").status_code == 503)
            refused = server.speak(5)
            assert (refused.status_code, refused.headers["retry-after"]) == (503, "5")
            assert "takes no new requests" in refused.json()["error"]["message"]
            assert server.client.get("/ready").status_code == 503
            assert server.client.get("/health").status_code == 200
            heard += sum(map(len, pieces))
        assert heard == frames * 1920 * 2
        assert server.end() < 15  # before its grace is over


def test_who_takes_too_long_is_told_and_the_server_ends_in_time(tmp_path: Path) -> None:
    with served(tmp_path, grace=6) as server:
        more = {"stream_format": "sse"}
        with server.client.stream("POST", "/v1/audio/speech", json=body(900, **more)) as answer:
            lines = answer.iter_lines()
            next(lines)
            server.process.send_signal(signal.SIGTERM)
            printed = [line for line in lines if line.startswith("data:")]
        assert '"speech.audio.error"' in printed[-1]
        assert '"engine_closed"' in printed[-1]
        assert server.end() < 15  # 27 to the end of the text


def test_under_nohup_a_closed_terminal_is_ignored(tmp_path: Path) -> None:
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)  # a new process inherits it
    try:
        with served(tmp_path, grace=20) as server:
            server.process.send_signal(signal.SIGHUP)
            time.sleep(0.3)
            assert server.client.get("/ready").status_code == 200
    finally:
        signal.signal(signal.SIGHUP, before)


def test_an_idle_server_ends_at_once(tmp_path: Path) -> None:
    with served(tmp_path, grace=20) as server:
        server.process.send_signal(signal.SIGTERM)
        assert server.end() < 15  # before its grace is over


@pytest.mark.slow
def test_a_second_signal_does_not_wait(tmp_path: Path) -> None:
    with served(tmp_path, grace=60) as server:
        with server.client.stream("POST", "/v1/audio/speech", json=body(900)) as answer:
            next(answer.iter_raw())
            server.process.send_signal(signal.SIGTERM)
            time.sleep(0.1)
            server.process.send_signal(signal.SIGTERM)
            started = time.monotonic()
            server.process.wait(20)
        assert time.monotonic() - started < 6
