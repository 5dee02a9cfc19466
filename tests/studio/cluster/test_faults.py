"""kill -9 of each kind of process under load: what is lost, and what comes back."""

from __future__ import annotations

import os
import signal
from concurrent.futures import Future, ThreadPoolExecutor

import httpx
import pytest

from bench.stress.cluster_processes import CONTROLLER, FRONT, PROXY, SPEECH, processes
from engine import FRAME_SAMPLES, Design, Library
from tests.support.serving import wait_until

TEXT = "x" * 400  # 2 s of the twin's time
WHOLE = 2 * FRAME_SAMPLES * len(TEXT)  # bytes
BACK = 60.0  # seconds on a busy machine


def speak(url: str) -> int:
    """Bytes of a stream; what was heard before it broke is negative."""
    body = {"input": TEXT, "voice": "ryan", "response_format": "pcm", "stream": True}
    heard = 0
    try:
        with httpx.stream("POST", f"{url}/v1/audio/speech", json=body, timeout=60) as answer:
            if answer.status_code != 200:
                return 0
            for piece in answer.iter_bytes():
                heard += len(piece)
    except httpx.HTTPError:
        return -heard
    return heard


def ready(url: str) -> bool:
    try:
        return httpx.get(f"{url}/ready", timeout=5).status_code == 200
    except httpx.HTTPError:
        return False


def speaks(url: str) -> bool:
    return speak(url) == WHOLE


@pytest.fixture
def load(url: str):
    """Eight streams that are heard already."""
    wait_until(lambda: ready(url), BACK)
    with ThreadPoolExecutor(8) as pool:
        streams: list[Future[int]] = [pool.submit(speak, url) for _ in range(8)]
        wait_until(lambda: _running(url) == 8, 20)
        yield streams
    wait_until(lambda: ready(url) and speaks(url), BACK)
    wait_until(lambda: len(processes(SPEECH)) == 2, BACK)


def _running(url: str) -> float:
    lines = httpx.get(f"{url}/metrics", timeout=10).text.splitlines()
    return float(next(line for line in lines if line.startswith("timbre_running ")).split()[1])


def test_a_replica_that_is_killed_loses_its_own_streams_alone(
    url: str, load: list[Future[int]], library: Library
) -> None:
    saved = library.save("Kept", Design("calm"))
    os.kill(processes(SPEECH)[0], signal.SIGKILL)
    assert ready(url)
    heard = [stream.result() for stream in load]
    whole, broken = heard.count(WHOLE), [bytes for bytes in heard if bytes <= 0]
    assert whole + len(broken) == 8  # each is whole, or plainly broken off
    assert 1 <= len(broken) <= 7
    assert speaks(url)  # at once, on the other one
    assert library.get(saved.id).name == "Kept"


def test_what_nobody_has_heard_is_spoken_by_another_replica(url: str) -> None:
    wait_until(lambda: ready(url) and speaks(url), BACK)
    body = {"input": TEXT, "voice": "ryan", "response_format": "pcm", "stream": False}
    with ThreadPoolExecutor(8) as pool, httpx.Client(base_url=url, timeout=60) as client:
        tasks = [pool.submit(client.post, "/v1/audio/speech", json=body) for _ in range(8)]
        wait_until(lambda: _running(url) == 8, 20)
        os.kill(processes(SPEECH)[0], signal.SIGKILL)
        answers = [each.result() for each in tasks]
    assert [(each.status_code, len(each.content)) for each in answers] == [(200, WHOLE)] * 8
    assert len({each.headers["x-replica"] for each in answers}) <= 2
    wait_until(lambda: len(processes(SPEECH)) == 2, BACK)


def test_the_controller_is_not_needed_to_speak(url: str, load: list[Future[int]]) -> None:
    os.kill(processes(CONTROLLER)[0], signal.SIGKILL)
    assert [stream.result() for stream in load] == [WHOLE] * 8
    assert speaks(url)


def test_the_front_takes_nobody_of_the_api_with_it(url: str, load: list[Future[int]]) -> None:
    os.kill(processes(FRONT)[0], signal.SIGKILL)
    assert [stream.result() for stream in load] == [WHOLE] * 8


def test_a_proxy_that_is_killed_comes_back(url: str, load: list[Future[int]]) -> None:
    os.kill(processes(PROXY)[0], signal.SIGKILL)
    assert all(stream.result() <= 0 for stream in load)
