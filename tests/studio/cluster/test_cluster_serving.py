"""A cluster of twins over HTTP: the API in the replicas, and the front on a cluster's engine."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import httpx
import numpy as np
import pytest

from engine import Clone, EngineSettings, Library, Preset, SpeechRequest
from engine.testing import FakeEngine
from tests.support.serving import wait_until

TEXT = "Hello there, and good evening."


def spoken(client: httpx.Client, path: str = "/v1/audio/speech", **fields: object) -> bytes:
    answer = client.post(
        path,
        json={"input": TEXT, "voice": "ryan", "seed": 4, "response_format": "pcm", **fields},
    )
    assert answer.status_code == 200, answer.text
    return answer.content


def metric(client: httpx.Client, name: str) -> float:
    lines = client.get("/metrics").text.splitlines()
    return float(next(line for line in lines if line.startswith(f"{name} ")).split()[1])


@pytest.fixture(scope="module")
def expected() -> bytes:
    with FakeEngine(settings=EngineSettings(max_num_seqs=8)) as engine:
        return engine.submit(SpeechRequest(TEXT, Preset("ryan"), seed=4)).collect().tobytes()


def test_replicas_speak_what_one_process_speaks(client: httpx.Client, expected: bytes) -> None:
    assert spoken(client) == expected
    assert spoken(client, stream=True) == expected


def test_the_front_speaks_through_the_replicas(client: httpx.Client) -> None:
    before = metric(client, "timbre_audio_seconds_total")
    answer = client.post("/dev/captioned_speech", json={"input": TEXT, "voice": "ryan"})
    assert answer.status_code == 200, answer.text
    wait_until(lambda: metric(client, "timbre_audio_seconds_total") > before)


def test_it_is_ready_with_the_slots_of_all(client: httpx.Client) -> None:
    wait_until(lambda: client.get("/ready").status_code == 200, 20)
    wait_until(lambda: metric(client, "timbre_slots") == 16, 20)
    assert client.get("/health").json() == {"status": "ok"}


def test_the_load_is_shared(client: httpx.Client) -> None:
    with ThreadPoolExecutor(12) as pool:
        assert len({*pool.map(lambda _: spoken(client), range(12))}) == 1
    wait_until(lambda: metric(client, "timbre_running") == 0, 10)


def test_a_trained_voice_is_spoken_by_replicas_and_front(
    client: httpx.Client, library: Library
) -> None:
    """A voice that one process keeps is heard from all, with its rows."""
    rows = np.full((8, 16), 0.5, np.float32)
    learned = Clone(np.ones(16, np.float32), model="fake", rows=rows, digest="weights of fake")
    library.save("Ann", learned, kind="trained", consent=True)
    library.save("Ben", replace(learned, digest="of others"), kind="trained", consent=True)
    with FakeEngine(settings=EngineSettings(max_num_seqs=8)) as engine:
        expected = engine.submit(SpeechRequest(TEXT, learned, seed=4)).collect().tobytes()
    assert {spoken(client, voice="Ann") for _ in range(6)} == {expected}
    answer = client.post("/dev/captioned_speech", json={"input": TEXT, "voice": "Ann", "seed": 4})
    assert answer.status_code == 200, answer.text
    for path in ("/v1/audio/speech", "/dev/captioned_speech"):
        answer = client.post(path, json={"input": TEXT, "voice": "Ben"})
        assert answer.status_code == 422
        assert "exact weights" in answer.text


def test_refusals_are_the_api_s_own(client: httpx.Client) -> None:
    answer = client.post("/v1/audio/speech", json={"input": TEXT, "voice": "nobody"})
    assert answer.status_code == 404
    assert answer.json()["error"]["code"] == "voice_not_found"
    assert client.get("/v1/nothing").json()["error"]["code"] == "not_found"
