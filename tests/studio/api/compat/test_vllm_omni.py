"""The requests of vllm-omni's end-to-end tests for Qwen3-TTS, as of November 2026.

Texts and names are ours; fields, paths and what is looked at in the answers are theirs
(`tests/e2e/online_serving/test_qwen3_tts_*`, `tests/entrypoints/openai_api/test_qwen3_tts_*`).
docs/clients.md says where Timbre answers otherwise, and why.
"""

from __future__ import annotations

import base64
import io
import json
import struct
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest
from fastapi.testclient import TestClient

from engine import Engine, Library
from studio.api import ApiSettings, create_api
from tests.studio.api.routes.test_voices import recording
from tests.studio.api.websocket.ws_client import DONE, hear, say

PATH = "/v1/audio/speech"
TEXT = "The river is wide here. Boats go by in the morning."
RECORDING = "data:audio/wav;base64," + base64.b64encode(recording()).decode()
CLONE: dict[str, Any] = {"task_type": "Base", "ref_audio": RECORDING, "ref_text": "What I said."}


@pytest.fixture
def client(engine: Engine, library: Library) -> Iterator[TestClient]:
    """A server as on one's own machine: vllm-omni's requests have no field for a consent."""
    settings = ApiSettings(reference_consent="operator")
    with TestClient(create_api(engine, library, settings)) as client:
        yield client


@pytest.fixture
def model(engine: Engine) -> str:
    """A model's name as its clients write it."""
    return f"Qwen/{next(iter(engine.capabilities()))}"


def is_wav(content: bytes) -> bool:
    return content[:4] == b"RIFF" and content[8:12] == b"WAVE" and len(content) > 10_000


@pytest.mark.parametrize(
    "fields",
    [
        {"stream": False, "response_format": "wav", "voice": "vivian"},
        {"stream": True, "stream_format": "audio", "response_format": "wav", "voice": "uncle_fu"},
        {"stream": False, "response_format": "wav", "voice": "SERENA", "timeout": 180.0},
        {"stream": False, "response_format": "wav", "voice": "vivian", "language": "English"},
    ],
    ids=str,
)
def test_custom_voices(client: TestClient, model: str, fields: dict[str, Any]) -> None:
    body = {"model": model, "input": TEXT, "task_type": "CustomVoice", **fields}
    with ThreadPoolExecutor(5) as pool:
        answers = list(pool.map(lambda _: client.post(PATH, json=body), range(5)))
    for answer in answers:
        assert answer.status_code == 200, answer.text
        assert answer.headers["content-type"] == "audio/wav"
        assert is_wav(answer.content)


def test_chinese(client: TestClient) -> None:
    body = {"input": "你好，今天天气很好。", "voice": "vivian", "language": "Chinese"}
    answer = client.post(PATH, json={**body, "response_format": "wav"})
    assert answer.status_code == 200, answer.text
    assert is_wav(answer.content)


@pytest.mark.parametrize(
    "fields",
    [
        {"response_format": "pcm"},
        {"response_format": "wav", "stream": False},
        {"response_format": "wav", "stream": True, "stream_format": "audio", "voice": "clone"},
        {"response_format": "pcm", "voice": "clone"},
    ],
    ids=str,
)
def test_clones(client: TestClient, model: str, fields: dict[str, Any]) -> None:
    answer = client.post(PATH, json={"model": model, "input": TEXT, **CLONE, **fields})
    assert answer.status_code == 200, answer.text
    sound = answer.content[44:] if fields["response_format"] == "wav" else answer.content
    assert len(sound) > 10_000
    assert np.ptp(np.frombuffer(sound, "<i2")) > 0


def test_one_recording_by_its_vector_and_with_its_text_in_turn(client: TestClient) -> None:
    body = {"input": TEXT, "stream": False, "response_format": "wav", **CLONE}
    alone = {**body, "x_vector_only_mode": True}
    del alone["ref_text"]
    for each in (alone, {**body, "x_vector_only_mode": False}, alone):
        answer = client.post(PATH, json=each)
        assert answer.status_code == 200, answer.text
        frames = int(answer.headers["x-vllm-omni-input-audio-tokens"])
        text = int(answer.headers["x-vllm-omni-input-text-tokens"])
        assert (frames > 0) == (each is not alone)  # of the recording that is continued
        assert int(answer.headers["x-vllm-omni-input-tokens"]) == text + frames


def test_speaker_embeddings(client: TestClient, model: str) -> None:
    (width,) = {each["embedding_dim"] for each in client.get("/v1/models").json()["data"][:1]}
    vector = [0.1] * width
    body = {
        "model": model,
        "input": "Hello.",
        "task_type": "Base",
        "speaker_embedding": vector,
        "x_vector_only_mode": True,
        "max_new_tokens": 256,
    }
    for fields, kind in (
        ({"response_format": "wav"}, "audio/wav"),
        ({"response_format": "pcm"}, "audio/pcm"),
        ({"response_format": "pcm", "stream": True}, "audio/pcm"),
    ):
        answer = client.post(PATH, json={**body, **fields})
        assert answer.status_code == 200, answer.text
        assert kind in answer.headers["content-type"]
        assert len(answer.content) > 2_000
    for fields, words in (
        ({"ref_audio": "https://example.com/audio.wav"}, "mutually exclusive"),
        ({"speaker_embedding": []}, "non-empty"),
        ({"speaker_embedding": vector * 2}, "dimensions"),
    ):
        answer = client.post(PATH, json={**body, "x_vector_only_mode": None, **fields})
        assert answer.status_code == 400, answer.text
        assert words in answer.text


def test_events_end_with_usage(client: TestClient) -> None:
    body = {"input": TEXT, "response_format": "pcm", "stream_format": "sse", **CLONE}
    lines = client.post(PATH, json=body).text.splitlines()
    read = [json.loads(line.removeprefix("data: ")) for line in lines if line.startswith("data: ")]
    assert {each["response_format"] for each in read[:-1]} == {"pcm"}
    assert read[-1]["type"] == "speech.audio.done"
    usage = read[-1]["usage"]
    details = usage["input_token_details"]
    assert details["text_tokens"] > 0 < details["audio_tokens"]
    assert usage["input_tokens"] == sum(details.values())
    assert usage["total_tokens"] == usage["input_tokens"] + usage["output_tokens"]


def test_a_batch(client: TestClient) -> None:
    items = [{"input": "Hello!", "response_format": "mp3"}, {"input": "Bye."}, {"input": " "}]
    body = {"items": items, "voice": "vivian", "response_format": "wav"}
    answer = client.post(f"{PATH}/batch", json=body).json()
    assert (answer["total"], answer["succeeded"], answer["failed"]) == (3, 2, 1)
    assert [each["status"] for each in answer["results"]] == ["success", "success", "error"]
    assert [each.get("media_type") for each in answer["results"][:2]] == ["audio/mpeg", "audio/wav"]
    assert base64.b64decode(answer["results"][1]["audio_data"])[:4] == b"RIFF"
    for each in answer["results"][:2]:
        assert each["usage"]["input_token_details"]["audio_tokens"] == 0


def test_voices_and_models(client: TestClient, model: str) -> None:
    voices = client.get("/v1/audio/voices", headers={"user-agent": "python-httpx/0.28"}).json()
    assert {"vivian", "ryan"} & {each.lower() for each in voices["voices"]}
    assert voices["uploaded_voices"] == []
    models = client.get("/v1/models").json()["data"]
    assert model.removeprefix("Qwen/") in {each["id"] for each in models}
    form = {"name": "custom", "consent": "true", "ref_text": "What I said."}
    form["speaker_description"] = "warm narrator"
    kept = client.post(
        "/v1/audio/voices", data=form, files={"audio_sample": io.BytesIO(recording())}
    ).json()
    assert kept["success"] is True
    assert kept["voice"]["name"] == "custom"
    assert kept["voice"]["speaker_description"] == "warm narrator"
    spoken = client.post(PATH, json={"input": TEXT, "voice": "custom", "response_format": "wav"})
    assert is_wav(spoken.content)
    gone = client.delete("/v1/audio/voices/custom").json()
    assert gone["success"] is True
    assert client.delete("/v1/audio/voices/custom").status_code == 404


def test_two_texts_on_one_socket(client: TestClient) -> None:
    how = {"voice": "vivian", "language": "English", "response_format": "pcm", "stream_audio": True}
    with client.websocket_connect(f"{PATH}/stream") as socket:
        say(socket, {"type": "session.config", **how})
        for index in range(2):
            say(socket, {"type": "input.text", "text": TEXT}, DONE)
            events, audio = hear(socket)
            start, done, end = events
            assert (start["type"], done["type"], end["type"]) == (
                "audio.start",
                "audio.done",
                "session.done",
            )
            assert {each["utterance_index"] for each in events} == {index}
            assert (start["format"], start["sample_rate"]) == ("pcm", 24_000)
            assert (done["sentence_index"], done["error"]) == (0, False)
            assert done["total_bytes"] == len(audio) > 0
            assert end["total_sentences"] == 1
            assert len(set(struct.unpack(f"<{len(audio) // 2}h", audio))) > 1


def test_sentence_by_sentence_as_its_older_servers(client: TestClient) -> None:
    with client.websocket_connect(f"{PATH}/stream") as socket:
        how = {"voice": "vivian", "response_format": "pcm", "split_granularity": "sentence"}
        say(socket, {"type": "session.config", **how}, {"type": "input.text", "text": TEXT}, DONE)
        events, _ = hear(socket)
    starts = [each for each in events if each["type"] == "audio.start"]
    assert [each["sentence_index"] for each in starts] == [0, 1]
    assert all(each["sentence_text"] for each in starts)
    assert events[-1]["total_sentences"] == 2


def test_what_a_socket_refuses_leaves_it_open(client: TestClient) -> None:
    with client.websocket_connect(f"{PATH}/stream") as socket:
        say(socket, {"type": "session.config", "voice": "vivian"}, {"type": "unknown"})
        assert json.loads(socket.receive_text())["type"] == "error"
        say(socket, {"type": "input.text", "text": 123}, DONE)
        events, _ = hear(socket)
        assert [each["type"] for each in events] == ["error", "session.done"]
        assert events[-1]["total_sentences"] == 0
