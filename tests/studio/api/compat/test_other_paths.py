"""What Azure's, zaphodvox's, wyoming_openai's and vllm-omni's clients ask for."""

from __future__ import annotations

import base64
import io
import json
from typing import Any

import pytest
import soundfile
from fastapi.testclient import TestClient

from engine import SAMPLE_RATE, Engine, Library
from studio.api import ApiSettings, create_api
from tests.studio.api.routes.test_voices import recording, speak, upload
from tests.studio.api.websocket.ws_client import DONE, config, hear, say, words

TEXT = "The morning train was late again."
AZURE = "/openai/deployments/tts/audio/speech?api-version=2025-04-01-preview"
BODY: dict[str, Any] = {"input": TEXT, "voice": "vivian", "seed": 1, "response_format": "pcm"}


def test_azures_deployment_speaks(engine: Engine, library: Library) -> None:
    client = TestClient(create_api(engine, library, ApiSettings(keys=("secret",))))
    key = {"api-key": "secret"}
    assert client.post(AZURE, json=BODY).status_code == 401
    assert client.post(AZURE, json=BODY, headers={"api-key": "wrong"}).status_code == 401
    spoken = client.post(AZURE, json={**BODY, "model": "tts"}, headers=key)
    bearer = {"authorization": "Bearer secret"}
    ours = client.post("/v1/audio/speech", json=BODY, headers=bearer)
    assert spoken.content == ours.content
    assert spoken.headers["x-ignored-fields"] == "model"
    assert client.post("/openai/v1/audio/speech", json=BODY, headers=key).content == ours.content
    missing = client.get("/openai/models", headers=key)
    assert (missing.status_code, missing.json()["error"]["code"]) == (404, "not_found")


def test_a_deployment_may_be_a_model_here(client: TestClient, engine: Engine) -> None:
    (name, *_) = engine.capabilities()
    assert (
        "x-ignored-fields"
        not in client.post(AZURE.replace("/tts/", f"/{name}/"), json=BODY).headers
    )


def test_a_recording_at_a_path_of_its_own(client: TestClient) -> None:
    upload(client)
    fields = {"input": TEXT, "language": "english", "response_format": "pcm", "seed": "1"}
    files = {"voice_file": ("me.wav", recording())}
    alone = client.post(
        "/v1/audio/speech/upload",
        data={**fields, "x_vector_only": "true", "consent": "true"},
        files=files,
    )
    assert alone.status_code == 200, alone.text
    assert alone.content == speak(client, voice="Ada", language="english")
    assert int(alone.headers["content-length"]) == len(alone.content)
    missing = client.post("/v1/audio/speech/upload", files={"input": (None, TEXT)})
    assert missing.json()["error"]["param"] == "audio"


def test_a_recording_needs_consent_where_others_ask(engine: Engine, library: Library) -> None:
    settings = ApiSettings(reference_consent="request")
    client = TestClient(create_api(engine, library, settings))
    files = {"voice_file": ("me.wav", recording())}
    answer = client.post("/v1/audio/speech/upload", data={"input": TEXT}, files=files)
    assert answer.json()["error"]["code"] == "consent_missing"


def test_a_description_at_a_path_of_its_own(client: TestClient) -> None:
    body = {"input": TEXT, "seed": 1, "response_format": "pcm", "language": "English"}
    description = "A warm voice."
    designed = client.post(
        "/v1/audio/speech/design", json={**body, "voice_description": description}
    )
    assert designed.content == speak(
        client, task_type="VoiceDesign", instructions=description, language="english"
    )
    missing = client.post("/v1/audio/speech/design", json=body)
    assert (missing.status_code, missing.json()["error"]["code"]) == (400, "missing")


def test_wyoming_openai_finds_the_voices_that_are_here(client: TestClient) -> None:
    """It takes a server for Kokoro-FastAPI that answers /test so, then lists its voices."""
    assert client.get("/v1/readyz").status_code == 404  # LocalAI
    assert client.get("/health").text != "OK"  # Speaches
    assert client.get("/v1/test").json() == {"status": "ok"}
    voices = client.get("/v1/audio/voices", headers={"user-agent": "AsyncOpenAI/Python 2.24"})
    names = voices.json()["voices"]
    assert {*voices.json()["presets"]} <= {*names}
    assert not {"alloy", "nova"} & {*names} - {*voices.json()["presets"]}


def test_hugging_faces_client_sends_its_parameters_beside(client: TestClient) -> None:
    """As `InferenceClient.text_to_speech(text, model=URL, extra_body={…})`."""
    parameters = {**BODY, "max_new_tokens": 20}
    del parameters["input"]
    answer = client.post("/v1/audio/speech", json={"inputs": TEXT, "parameters": parameters})
    assert answer.content == speak(client, voice="vivian", max_new_tokens=20)
    wrong = {"inputs": TEXT, "parameters": {"voise": "vivian"}}
    assert client.post("/v1/audio/speech", json=wrong).json()["error"]["param"] == "voise"


# vllm-omni 0.30: the times of words, usage, a socket that sends whole parts.


def test_words_have_their_times_in_a_header(client: TestClient) -> None:
    answer = client.post("/v1/audio/speech", json={**BODY, "word_timestamps": True})
    assert answer.content == speak(client, voice="vivian")
    words = json.loads(answer.headers["x-word-timestamps"])
    assert [each["word"] for each in words] == TEXT.split()
    edges = [each[key] for each in words for key in ("start_ms", "end_ms")]
    assert edges == sorted(edges)
    assert 0 < edges[-1] <= 1000 * len(answer.content) / 2 / SAMPLE_RATE
    fast = client.post("/v1/audio/speech", json={**BODY, "word_timestamps": True, "speed": 2})
    half = json.loads(fast.headers["x-word-timestamps"])[-1]["end_ms"]
    assert half == pytest.approx(edges[-1] / 2, abs=2)
    long = {**BODY, "input": TEXT * 20, "word_timestamps": True}
    headers = client.post("/v1/audio/speech", json=long).headers
    assert "limit=4096" in headers["x-word-timestamps-omitted"]
    streamed = client.post(
        "/v1/audio/speech", json={**BODY, "word_timestamps": True, "stream": True}
    )
    assert streamed.json()["error"]["code"] == "invalid_value"


def test_whole_answers_tell_their_usage(client: TestClient) -> None:
    head = client.post("/v1/audio/speech", json={**BODY, "stream": False}).headers
    counts = {
        name: int(head[f"x-vllm-omni-{name}-tokens"])
        for name in ("input", "output", "total", "input-text", "input-audio")
    }
    assert counts["input"] + counts["output"] == counts["total"]
    assert counts["input"] == counts["input-text"] > 0
    assert counts["input-audio"] == 0


def test_a_batch_has_the_times_of_words_too(client: TestClient) -> None:
    body = {"items": [BODY, {**BODY, "word_timestamps": True}]}
    plain, timed = client.post("/v1/audio/speech/batch", json=body).json()["results"]
    assert "word_timestamps" not in plain
    assert [each["word"] for each in timed["word_timestamps"]] == TEXT.split()


@pytest.mark.parametrize("split", ["none", "sentence", "clause"])
def test_a_socket_sends_the_times_of_words(client: TestClient, split: str) -> None:
    text = "First of all. Then more."
    with client.websocket_connect("/v1/audio/speech/stream") as socket:
        say(socket, config(word_timestamps=True, split_granularity=split), *words(text), DONE)
        events, binary = hear(socket)
    assert binary == b""
    chunks = [each for each in events if each["type"] == "audio.chunk"]
    timed = [each for each in chunks if each["timestamps"] is not None]
    assert len(timed) == (1 if split == "none" else 2)
    assert [word["word"] for each in timed for word in each["timestamps"]] == text.split()
    assert not any(each["audio_b64"] for each in timed)
    bytes_ = sum(len(base64.b64decode(each["audio_b64"])) for each in chunks)
    assert bytes_ == sum(each["total_bytes"] for each in events if each["type"] == "audio.done")
    spans = [(each["chunk_start_ms"], each["chunk_end_ms"]) for each in chunks if each["audio_b64"]]
    assert all(start < stop for start, stop in spans)
    assert {each["sample_rate"] for each in chunks} == {SAMPLE_RATE}


def test_a_socket_sends_parts_in_one_piece(client: TestClient) -> None:
    with client.websocket_connect("/v1/audio/speech/stream") as socket:
        say(socket, config(stream_audio=False, response_format="wav"), *words(TEXT), DONE)
        pieces = []
        while not pieces or b"session.done" not in pieces[-1]:
            message = socket.receive()
            pieces.append(message.get("bytes") or message["text"].encode())
    (file,) = [each for each in pieces if each.startswith(b"RIFF")]
    assert len(soundfile.read(io.BytesIO(file))[0]) > 0


def test_vectors_are_taken_and_refused_as_its_tests_ask(client: TestClient) -> None:
    base = {"input": TEXT, "task_type": "Base", "response_format": "wav"}
    with_vector = {**base, "speaker_embedding": [0.1] * 16, "x_vector_only_mode": True}
    for more in ({}, {"response_format": "pcm"}, {"response_format": "pcm", "stream": True}):
        answer = client.post("/v1/audio/speech", json={**with_vector, **more, "max_new_tokens": 20})
        assert answer.status_code == 200, answer.text
        assert answer.headers["content-type"] == f"audio/{more.get('response_format', 'wav')}"
    refused = {
        "mutually exclusive": {**with_vector, "ref_audio": "https://example.com/audio.wav"},
        "non-empty": {**base, "speaker_embedding": []},
        "speaker_embedding has 24 dimensions": {**base, "speaker_embedding": [0.1] * 24},
        "expected 16": {**base, "speaker_embedding": [0.1] * 24},
        "never fetched": {**base, "ref_audio": "https://example.com/audio.wav"},
    }
    for each, body in refused.items():
        answer = client.post("/v1/audio/speech", json=body)
        assert answer.status_code == 400, each
        assert each in answer.text
