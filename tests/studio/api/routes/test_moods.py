"""`mood`, `mood_strength` and tags in texts over HTTP."""

from __future__ import annotations

import numpy as np
import pytest
from fastapi.testclient import TestClient

from engine import Library, learn_shift, speaker_space
from engine.testing import fake_capabilities

TEXT = "The morning train was late again."


@pytest.fixture
def client(client: TestClient, library: Library) -> TestClient:
    pairs = [(np.ones(16, np.float32), np.arange(16, dtype=np.float32))]
    library.moods.save("glad", learn_shift(pairs), speaker_space(fake_capabilities()))
    return client


def ask(client: TestClient, text: str = TEXT, **fields: object) -> bytes:
    body = {"input": text, "voice": "ryan", "seed": 7, "response_format": "pcm", **fields}
    answer = client.post("/v1/audio/speech", json=body)
    assert answer.status_code == 200, answer.text
    return answer.content


def test_moods_are_listed_and_taken(client: TestClient) -> None:
    (mood,) = client.get("/v1/audio/moods").json()["moods"]
    assert mood["name"] == "glad"
    assert ask(client, mood="glad")
    assert ask(client, voice="ryan+glad:0.5") == ask(client, mood="glad", mood_strength=0.5)
    assert ask(client, mood="glad", mood_strength=0) == ask(client)


def test_a_text_may_name_moods(client: TestClient) -> None:
    text = "Good day. [glad 0.5] How nice! [/glad] Goodbye."
    answer = client.post(
        "/v1/audio/speech", json={"input": text, "voice": "ryan", "response_format": "pcm"}
    )
    assert answer.status_code == 200
    assert "glad (learned)" in answer.headers["x-warnings"]


@pytest.mark.parametrize(
    "fields",
    [
        {"mood": "sad"},
        {"mood": "glad", "mood_strength": 1.6},
        {"mood": "glad", "instructions": "softly"},
        {"mood": "x" * 81},
    ],
)
def test_what_cannot_be_is_refused(client: TestClient, fields: dict[str, object]) -> None:
    answer = client.post("/v1/audio/speech", json={"input": TEXT, "voice": "ryan", **fields})
    assert answer.status_code // 100 == 4
    assert answer.json()["error"]["message"]
