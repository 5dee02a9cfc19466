"""`mood`, `mood_strength` and tags in texts over HTTP."""

from __future__ import annotations

import io
import json

import numpy as np
import pytest
import soundfile
from fastapi.testclient import TestClient
from httpx import Response

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


def test_a_voice_keeps_recordings_of_its_person_by_mood(
    client: TestClient, library: Library
) -> None:
    def recording(pitch: float) -> bytes:
        times = np.arange(3 * 24_000) / 24_000
        wave = 0.3 * np.sin(2 * np.pi * pitch * times) * (1 + np.sin(2 * np.pi * 3 * times)) / 2
        sound = io.BytesIO()
        soundfile.write(sound, wave, 24_000, format="WAV")
        return sound.getvalue()

    def send(path: str, pitch: float, **fields: str) -> Response:
        return client.post(path, data=fields, files={"audio": ("a.wav", recording(pitch))})

    assert send("/v1/audio/voices", 150, name="anna", consent="true").status_code == 200
    path = "/v1/audio/voices/anna/moods"
    assert send(path, 220, mood="glad").status_code == 400  # without consent
    assert send(path, 220, mood="a[/]", consent="true").status_code // 100 == 4
    kept = send(path, 220, mood="glad", consent="true")
    assert kept.json()["voice"]["moods"] == ["glad"]
    assert library.find("anna").card.references[0].mood == "glad"  # type: ignore[union-attr]
    answer = client.post(
        "/v1/audio/speech", json={"input": "[glad] How nice! [/glad] Bye.", "voice": "anna"}
    )
    assert "own recording" in answer.headers["x-warnings"]
    assert client.delete(f"{path}/glad").json()["voice"]["moods"] == []
    assert client.delete(f"{path}/glad").status_code == 404


def test_the_times_of_words_are_those_of_what_is_said(client: TestClient) -> None:
    spoken = ["Good", "day.", "How", "nice!", "Goodbye."]
    text = "Good day. [glad 0.5] How nice! [/glad] (gladly) Goodbye."
    body = {"input": text, "voice": "ryan", "word_timestamps": True, "response_format": "pcm"}
    answer = client.post("/v1/audio/speech", json=body)
    times = json.loads(answer.headers["x-word-timestamps"])
    assert [each["word"] for each in times] == spoken
    (batched,) = client.post(
        "/v1/audio/speech/batch",
        json={"items": [{k: body[k] for k in ("input", "voice")}], "word_timestamps": True},
    ).json()["results"]
    assert [each["word"] for each in batched["word_timestamps"]] == spoken
    captioned = client.post("/dev/captioned_speech", json={"input": text, "voice": "ryan"}).json()
    assert [each["word"] for each in captioned["timestamps"]] == spoken
    aligned = client.post("/v1/text-to-speech/ryan/with-timestamps", json={"text": text}).json()
    assert "".join(aligned["alignment"]["characters"]).split() == spoken
