"""The whole program on the embedded model, killed and stopped in the middle of work."""

from __future__ import annotations

import os
import random
import re
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import httpx
import pytest

from bench.stress.soak import ROOT, wait_ready
from engine import SAMPLE_RATE
from tests.chaos.test_grace import is_there
from tests.studio.api.routes.test_voices import recording
from tests.support.serving import OwnTime, wait_until

pytestmark = pytest.mark.slow

KILLS, MOST_SAVES = 12, 8
GRACE, SLACK = 4, 6.0  # seconds; what a busy machine adds
TEXT = "The morning train was late again, so she read the last chapter on the platform."


@contextmanager
def program(data: Path, **settings: str) -> Iterator[tuple[subprocess.Popen[bytes], httpx.Client]]:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    variables = dict(os.environ, TIMBRE_PAGE="false", TIMBRE_DATA=str(data), **settings)
    url = f"http://127.0.0.1:{port}"
    process = subprocess.Popen(
        [sys.executable, "app.py", "--port", str(port)], cwd=ROOT, env=variables
    )
    with httpx.Client(base_url=url, timeout=30) as client:
        try:
            wait_ready(url, process)
            yield process, client
        finally:
            process.kill()
            process.wait()


def keep_until_killed(
    client: httpx.Client, process: subprocess.Popen[bytes], saves: int, part: float
) -> set[str]:
    """Save voices, and kill the server in a save after that many, when it has taken that part of
    the time of the one before; the names that it has answered for."""
    kept: set[str] = set()
    with suppress(httpx.HTTPError):
        for number in range(10_000):
            name, begun = f"voice{process.pid}x{number}", time.monotonic()
            form = {"name": name, "consent": "true"}
            answer = client.post("/v1/audio/voices", data=form, files={"audio": recording()})
            assert answer.is_success, answer.text
            kept.add(name)
            if number + 1 == saves:
                threading.Timer(part * (time.monotonic() - begun), process.kill).start()
    return kept


def test_no_kept_voice_is_lost_to_a_kill(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    draw, kept = random.Random(5), set[str]()
    for kill in range(KILLS + 1):
        with program(tmp_path) as (process, client):
            there = set(re.findall(r"voice\d+x\d+", client.get("/v1/audio/voices").text))
            assert kept <= there
            if kill < KILLS:
                saves, part = draw.randint(1, MOST_SAVES), draw.random()
                kept |= keep_until_killed(client, process, saves, part)
    assert len(kept) > KILLS
    with capsys.disabled():
        print(f"\n{KILLS} kills, {len(kept)} voices kept, none lost")


def test_told_to_stop_it_speaks_to_the_end_and_takes_nothing_new(tmp_path: Path) -> None:
    body = {"input": 3 * TEXT, "voice": "clara", "response_format": "pcm", "stream": True}
    with program(tmp_path) as (process, client):
        with client.stream("POST", "/v1/audio/speech", json=body) as speech:
            assert speech.status_code == 200
            pieces = speech.iter_bytes()
            heard = len(next(pieces))
            process.send_signal(signal.SIGTERM)
            time.sleep(0.3)
            assert client.post("/v1/audio/speech", json=body).status_code == 503
            heard += sum(len(piece) for piece in pieces)
        assert heard > 2 * SAMPLE_RATE * 2  # more than two seconds
        assert process.wait(30) == 0


def test_a_stopped_engine_holds_the_server_no_longer_than_its_grace(tmp_path: Path) -> None:
    body = {"input": 3 * TEXT, "voice": "clara", "response_format": "pcm", "stream": True}
    with program(tmp_path, TIMBRE_GRACE=str(GRACE)) as (process, client):
        begun = children(process.pid)
        assert begun
        with client.stream("POST", "/v1/audio/speech", json=body) as speech:
            next(speech.iter_bytes())
            for each in begun:
                os.kill(each, signal.SIGSTOP)
            process.send_signal(signal.SIGTERM)
            with OwnTime() as took:
                process.wait(120)
        assert took.seconds < GRACE + SLACK
        wait_until(lambda: not any(map(is_there, begun)))


def children(process: int) -> list[int]:
    """Ids of the children that any thread of a process has begun."""
    files = (each / "children" for each in Path(f"/proc/{process}/task").iterdir())
    return [int(each) for path in files for each in path.read_text().split()]
