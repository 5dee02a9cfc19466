"""Clients that disconnect or read slowly, over real connections."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from urllib.parse import urlsplit

import httpx
import pytest
from fastapi import FastAPI
from starlette.types import Receive, Scope, Send

from engine import Engine, EngineSettings, Library, SpeechStream
from engine.testing import Costs, FakeEngine
from studio.api import ApiSettings, create_api
from studio.api.json_text import to_json
from tests.studio.api.conftest import Serve
from tests.support.serving import wait_until

STEP = 0.02
LONG = {
    "input": "x" * 1500,
    "response_format": "pcm",
    "stream": True,
    "max_new_tokens": 1500,
    "ignore_eos": True,
}


@pytest.fixture
def engine() -> Iterator[Engine]:
    with FakeEngine(costs=Costs(step=STEP), settings=EngineSettings(max_num_seqs=4)) as engine:
        yield engine


@contextmanager
def listening(
    url: str, body: dict[str, object], path: str = "/v1/audio/speech"
) -> Iterator[socket.socket]:
    """A bare connection that has sent its request and reads nothing by itself."""
    place, content = urlsplit(url), to_json(body).encode()
    with socket.socket() as wire:
        wire.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        wire.connect((place.hostname, place.port))
        head = f"POST {path} HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n"
        wire.sendall(f"{head}Content-Length: {len(content)}\r\n\r\n".encode() + content)
        yield wire


def running(url: str) -> int:
    """How many requests run, by /metrics."""
    lines = httpx.get(f"{url}/metrics").text.splitlines()
    return round(
        float(next(line for line in lines if line.startswith("timbre_running ")).split()[1])
    )


@pytest.mark.parametrize(
    "way",
    [{}, {"stream_format": "sse"}, {"stream": False}, {"stream": False, "speed": 1.5}],
    ids=str,
)
def test_leaving_in_the_middle_frees_the_slot_within_a_step(
    engine: Engine, url: str, way: dict[str, object], monkeypatch: pytest.MonkeyPatch
) -> None:
    cancel, noticed = SpeechStream.cancel, []

    def noting(stream: SpeechStream) -> None:
        cancel(stream)
        noticed.append(engine.stats().steps)

    monkeypatch.setattr(SpeechStream, "cancel", noting)
    with listening(url, {**LONG, **way}) as wire:
        wait_until(lambda: running(url) == 1)
        if way.get("stream", True):
            assert wire.recv(100)
        assert not noticed
    wait_until(lambda: running(url) == 0)
    # the step under way when the news came, and the one that frees
    assert engine.stats().steps - noticed[0] <= 2
    assert engine.stats().ended["cancelled"] == 1


def test_leaving_a_batch_frees_every_slot(engine: Engine, url: str) -> None:
    item = {key: value for key, value in LONG.items() if key != "stream"}
    items = [item] * 3
    with listening(url, {"items": items}, "/v1/audio/speech/batch"):
        wait_until(lambda: engine.stats().running == 3)
    wait_until(lambda: engine.stats().running == 0, seconds=10)  # 30 to their end


def test_leaving_the_queue_takes_nobodys_place(library: Library, serve: Serve) -> None:
    with FakeEngine(settings=EngineSettings(max_num_seqs=4, max_wait=600)) as engine:
        _leave_the_queue(engine, serve(create_api(engine, library)))


def _leave_the_queue(engine: Engine, url: str) -> None:
    with listening(url, LONG), listening(url, LONG), listening(url, LONG), listening(url, LONG):
        wait_until(lambda: engine.stats().running == 4)
        with listening(url, LONG):
            wait_until(lambda: engine.stats().waiting == 1)
        wait_until(lambda: engine.stats().waiting == 0, seconds=10)
        assert engine.stats().running == 4


def test_a_listener_who_takes_nothing_harms_nobody(library: Library, serve: Serve) -> None:
    """Other streams are the same, and as fast, beside a client that reads 1 kB a second."""
    with FakeEngine(settings=EngineSettings(max_num_seqs=4)) as engine:
        url = serve(create_api(engine, library))
        body = {**LONG, "max_new_tokens": 200, "seed": 1}
        alone = timed(url, body)
        with listening(url, LONG) as slow:
            slow.recv(1024)
            most, together = 3 * alone[1] + 0.1, list[float]()
            while not together or (together[-1] >= most and len(together) < 30):  # a busy machine
                answer, seconds = timed(url, body)
                assert answer == alone[0]
                together.append(seconds)
            assert together[-1] < most
            # its audio was generated at full speed, and its slot is free although it was not read
            wait_until(lambda: engine.stats().running == 0)


def timed(url: str, body: dict[str, object]) -> tuple[bytes, float]:
    start = time.monotonic()
    answer = httpx.post(f"{url}/v1/audio/speech", json=body)
    assert answer.status_code == 200
    return answer.content, time.monotonic() - start


def test_a_listener_who_takes_nothing_is_left_in_the_end(library: Library, serve: Serve) -> None:
    with FakeEngine(settings=EngineSettings(max_num_seqs=2)) as engine:
        url = serve(create_api(engine, library, ApiSettings(stall_timeout=0.3)))
        with listening(url, {**LONG, "max_new_tokens": 2500}) as slow:
            wait_until(lambda: 'reason="stalled"' in httpx.get(f"{url}/metrics").text)
            received = b""
            slow.settimeout(30)
            while data := slow.recv(1 << 16):
                received += data
    assert not received.endswith(b"0\r\n\r\n")  # broken off, so it cannot be taken for the whole


WHOLE = {key: value for key, value in LONG.items() if key != "stream"} | {"max_new_tokens": 2500}


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("/v1/audio/speech", {**WHOLE, "stream": False}),
        ("/v1/audio/speech/batch", {"items": [WHOLE]}),
        ("/dev/captioned_speech", {**WHOLE, "stream": False, "return_timestamps": False}),
    ],
)
def test_a_whole_answer_that_nobody_reads_is_not_kept(
    path: str, body: dict[str, object], library: Library, serve: Serve
) -> None:
    """The server used to keep all of it for as long as the client stayed."""
    with FakeEngine(settings=EngineSettings(max_num_seqs=2)) as engine:
        api = create_api(engine, library, ApiSettings(stall_timeout=0.3))
        left = threading.Event()
        with listening(serve(_telling(api, path, left)), body, path) as slow:
            assert left.wait(20)
            received = b""
            slow.settimeout(30)
            while data := slow.recv(1 << 16):
                received += data
    head, _, spoken = received.partition(b"\r\n\r\n")
    length = int(head.lower().partition(b"content-length: ")[2].split()[0])
    assert length > 9_000_000, received
    assert len(spoken) < length


def _telling(api: FastAPI, path: str, left: threading.Event) -> FastAPI:
    """The same API, which sets `left` once an answer to this path has ended."""
    whole = FastAPI()

    class Watched:
        async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
            await api(scope, receive, send)
            if scope.get("path") == path:
                left.set()

    whole.mount("/", Watched())
    return whole


def test_a_step_that_fails_in_the_middle_breaks_the_body_off(engine: Engine, url: str) -> None:
    with httpx.stream("POST", f"{url}/v1/audio/speech", json=LONG) as answer:
        pieces = answer.iter_raw()
        next(pieces)
        engine.worker.fault = fail_once(engine)
        with pytest.raises(httpx.RemoteProtocolError):
            list(pieces)
    assert httpx.post(f"{url}/v1/audio/speech", json={"input": "Hello."}).status_code == 200


def test_a_step_that_fails_before_the_first_sound_has_its_status(engine: Engine, url: str) -> None:
    engine.worker.fault = fail_once(engine)
    answer = httpx.post(f"{url}/v1/audio/speech", json={**LONG, "input": "Hello."})
    assert answer.status_code == 500
    assert answer.json()["error"]["code"] == "step_failed"


def test_a_step_that_fails_is_an_event_among_events(engine: Engine, url: str) -> None:
    body = {**LONG, "stream_format": "sse"}
    with httpx.stream("POST", f"{url}/v1/audio/speech", json=body) as answer:
        lines = answer.iter_lines()
        next(lines)
        engine.worker.fault = fail_once(engine)
        last = [line for line in lines if line.startswith("event: ")][-1]
    assert last == "event: speech.audio.error"


def fail_once(engine: FakeEngine) -> Callable[[object], None]:
    def fault(plan: object) -> None:
        engine.worker.fault = lambda plan: None
        raise RuntimeError("the device fell over")

    return fault
