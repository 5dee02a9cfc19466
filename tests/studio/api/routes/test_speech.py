"""POST /v1/audio/speech on the fake engine."""

from __future__ import annotations

import base64
import io
import json
import re
from typing import Any

import numpy as np
import pytest
import soundfile
from fastapi.testclient import TestClient
from httpx import Response

from engine import FRAME_SAMPLES, Engine
from studio.api.responses.encoding import MEDIA_TYPES
from tests.studio.api.responses.test_encoding import READABLE

TEXT = "The morning train was late again."
JSON = "application/json"


def ask(client: TestClient, **fields: Any) -> Response:
    return client.post("/v1/audio/speech", json={"input": TEXT, "seed": 7, **fields})


def pcm_of(answer: Response) -> np.ndarray:
    assert answer.status_code == 200, answer.text
    return np.frombuffer(answer.content, "<i2")


def read(answer: Response) -> np.ndarray:
    assert answer.status_code == 200, answer.text
    return soundfile.read(io.BytesIO(answer.content), dtype="int16")[0]


def events(answer: Response) -> list[dict[str, Any]]:
    assert answer.headers["content-type"].startswith("text/event-stream")
    blocks = answer.text.strip().split("\n\n")
    parsed = [dict(line.split(": ", 1) for line in block.split("\n")) for block in blocks]
    loaded = [json.loads(each["data"]) for each in parsed]
    assert [each["event"] for each in parsed] == [each["type"] for each in loaded]
    return loaded


@pytest.mark.parametrize("format", READABLE)
def test_whole_and_streamed_answers_agree_with_pcm(client: TestClient, format: str) -> None:
    length = len(pcm_of(ask(client, response_format="pcm")))
    whole = ask(client, response_format=format, stream=False)
    streamed = ask(client, response_format=format, stream=True)
    assert whole.headers["content-type"] == streamed.headers["content-type"] == MEDIA_TYPES[format]
    assert int(whole.headers["content-length"]) == len(whole.content)
    assert "content-length" not in streamed.headers
    for answer in (whole, streamed):
        assert abs(len(read(answer)) - length) <= FRAME_SAMPLES


def test_every_way_gives_the_same_samples(client: TestClient) -> None:
    whole = pcm_of(ask(client, response_format="pcm", stream=False))
    assert len(whole) % FRAME_SAMPLES == 0
    assert len(whole) > 0
    assert np.array_equal(pcm_of(ask(client, response_format="pcm")), whole)
    assert np.array_equal(read(ask(client, response_format="wav")), whole)
    assert np.array_equal(read(ask(client, response_format="wav", stream=True)), whole)
    sent = events(ask(client, response_format="pcm", stream_format="sse"))
    data = b"".join(base64.b64decode(each["audio"]) for each in sent[:-1])
    assert np.array_equal(np.frombuffer(data, "<i2"), whole)


def test_events_end_with_usage(client: TestClient) -> None:
    sent = events(ask(client, response_format="pcm", stream_format="sse"))
    assert {each["type"] for each in sent[:-1]} == {"speech.audio.delta"}
    done = sent[-1]
    assert done["type"] == "speech.audio.done"
    assert done["finish_reason"] == "finished"
    assert done["seed"] == 7
    usage = done["usage"]
    assert usage["input_tokens"] > 0
    assert usage["total_tokens"] == usage["input_tokens"] + usage["output_tokens"]
    samples = sum(len(base64.b64decode(each["audio"])) // 2 for each in sent[:-1])
    assert usage["output_tokens"] * FRAME_SAMPLES == samples


def test_the_seed_is_told_and_repeats_the_audio(client: TestClient) -> None:
    first = client.post("/v1/audio/speech", json={"input": TEXT, "response_format": "pcm"})
    seed = int(first.headers["x-seed"])
    assert ask(client, seed=seed, response_format="pcm").content == first.content
    assert ask(client, seed=seed + 1, response_format="pcm").content != first.content


@pytest.mark.parametrize("speed", [0.25, 0.5, 1.5, 4.0])
def test_speed_changes_the_length(client: TestClient, speed: float) -> None:
    length = len(pcm_of(ask(client, response_format="pcm")))
    for stream in (False, True):
        fast = pcm_of(ask(client, response_format="pcm", speed=speed, stream=stream))
        assert len(fast) == round(length / speed)


def test_held_frames_arrive_together(client: TestClient) -> None:
    sent = events(
        ask(client, response_format="pcm", stream_format="sse", initial_codec_chunk_frames=6)
    )
    assert len(base64.b64decode(sent[0]["audio"])) >= 6 * 2 * FRAME_SAMPLES


def test_max_new_tokens_bounds_the_answer(client: TestClient) -> None:
    answer = ask(client, max_new_tokens=5, ignore_eos=True, response_format="wav", stream=False)
    assert len(read(answer)) == 5 * FRAME_SAMPLES
    assert answer.headers["x-finish-reason"] == "length"


def test_defaults_are_those_of_openai(client: TestClient) -> None:
    answer = client.post("/v1/audio/speech", json={"input": TEXT})
    assert answer.headers["content-type"] == "audio/mpeg"
    assert len(read(answer)) > 0


REFUSED: list[tuple[dict[str, Any], int, str | None]] = [
    ({"input": ""}, 400, "input"),
    ({"input": "   "}, 400, "input"),
    ({"input": "x" * 100_000}, 400, "input"),
    ({"input": "a\u0000b"}, 400, "input"),
    ({"input": 5}, 400, "input"),
    ({"voise": "Ada"}, 400, "voise"),
    ({"speed": 5}, 400, "speed"),
    ({"response_format": "midi"}, 400, "response_format"),
    ({"voice": "nobody"}, 404, "voice"),
    ({"voice": "ryan:0,vivian:0"}, 400, None),
    ({"language": "klingon"}, 400, "language"),
    ({"temperature": -1}, 400, "temperature"),
    ({"top_p": 0}, 400, "top_p"),
    ({"max_new_tokens": 0}, 400, "max_new_tokens"),
    ({"ref_audio": "https://example.com/a.wav"}, 400, "ref_audio"),
    ({"ref_audio": "file:///etc/passwd"}, 400, "ref_audio"),
    ({"ref_audio": "data:text/html;base64,AAAA", "consent": True}, 415, "ref_audio"),
    ({"ref_audio": "data:audio/wav;base64,!!!", "consent": True}, 400, "ref_audio"),
    ({"ref_audio": "data:audio/wav;base64,AAAA", "consent": True}, 422, "ref_audio"),
    ({"ref_audio": "nobody"}, 404, "ref_audio"),
    ({"ref_text": "what was said"}, 400, "ref_text"),
    ({"speaker_embedding": [1.0, 2.0]}, 400, "speaker_embedding"),
    ({"speaker_embedding": []}, 400, "speaker_embedding"),
    ({"task_type": "Base", "voice": "ryan"}, 422, "task_type"),
]


@pytest.mark.parametrize(("fields", "status", "param"), REFUSED, ids=str)
def test_refusals_have_openais_shape_and_cost_nothing(
    client: TestClient, engine: Engine, fields: dict[str, Any], status: int, param: str | None
) -> None:
    answer = ask(client, **fields)
    assert answer.status_code == status, answer.text
    error = answer.json()["error"]
    assert set(error) == {"message", "type", "param", "code"}
    assert error["param"] == param
    assert error["code"]
    assert error["message"].endswith((".", ")")) or ":" in error["message"]
    assert "Traceback" not in answer.text
    assert engine.stats().steps == 0


@pytest.mark.parametrize("body", [b"", b"{", b"[]", b"5", b"[" * 100_000, b'{"input": NaN}'])
def test_what_is_no_json_object_is_refused(client: TestClient, body: bytes) -> None:
    headers = {"content-type": "application/json"}
    answer = client.post("/v1/audio/speech", content=body, headers=headers)
    assert answer.status_code == 400
    assert answer.json()["error"]["type"] == "invalid_request_error"


def test_broken_json_is_blamed_on_no_field(client: TestClient) -> None:
    headers = {"content-type": "application/json"}
    answer = client.post("/v1/audio/speech", content=b'{"input"', headers=headers)
    assert answer.json()["error"]["code"] == "invalid_json"
    assert answer.json()["error"]["param"] is None


def test_other_kinds_of_json_are_refused_unread(client: TestClient) -> None:
    """FastAPI itself parses what ends with +json, of any size, while all others wait."""
    paths = client.get("/v1/openapi.json").json()["paths"]
    requested = [
        path for path, of in paths.items() if JSON in str(of.get("post", {}).get("requestBody"))
    ]
    assert len(requested) >= 5
    for path in requested:
        headers = {"content-type": "application/x+json"}
        broken = client.post(re.sub(r"{.*?}", "ryan", path), content=b"[", headers=headers)
        assert broken.status_code == 415, path


def test_a_form_is_refused_as_a_media_type(client: TestClient) -> None:
    answer = client.post("/v1/audio/speech", data={"input": TEXT})
    assert answer.status_code == 415


def test_a_lone_surrogate_is_refused_readably(client: TestClient) -> None:
    headers = {"content-type": "application/json"}
    for body in (b'{"input": "hi", "\\ud800": 1}', b'{"input": "hi \\ud800"}'):
        answer = client.post("/v1/audio/speech", content=body, headers=headers)
        assert answer.status_code == 400
        assert answer.json()["error"]["message"]


def test_unknown_paths_answer_in_the_same_shape(client: TestClient) -> None:
    assert client.post("/v1/chat/completions", json={}).json()["error"]["code"] == "not_found"
    assert client.get("/v1/audio/speech").status_code == 405


def test_openais_voices_stand_for_speakers(client: TestClient) -> None:
    aliases = client.get("/v1/audio/voices").json()["aliases"]
    alloy = pcm_of(ask(client, voice="alloy", response_format="pcm"))
    speaker = pcm_of(ask(client, voice=aliases["alloy"], response_format="pcm"))
    assert np.array_equal(alloy, speaker)


def test_a_batch_keeps_the_order_and_tells_each_failure(client: TestClient) -> None:
    items = [{"input": "One."}, {"input": ""}, {"input": "Three.", "response_format": "pcm"}]
    answer = client.post(
        "/v1/audio/speech/batch", json={"items": items, "response_format": "wav", "seed": 3}
    )
    assert answer.status_code == 200, answer.text
    problem = answer.json()
    assert (problem["total"], problem["succeeded"], problem["failed"]) == (3, 2, 1)
    assert [result["index"] for result in problem["results"]] == [0, 1, 2]
    assert problem["results"][1]["error"]["code"] == "invalid_text"
    first, third = problem["results"][0], problem["results"][2]
    assert (first["media_type"], third["media_type"]) == ("audio/wav", "audio/pcm")
    alone = client.post(
        "/v1/audio/speech", json={"input": "Three.", "seed": 3, "response_format": "pcm"}
    )
    assert base64.b64decode(third["audio_data"]) == alone.content


def test_a_batchs_items_may_use_other_names_than_the_batch(client: TestClient) -> None:
    item = {"input": "One.", "speaker": "vivian", "instruct": "calmly"}
    shared = {"voice": "ryan", "instructions": "angrily", "seed": 3, "response_format": "pcm"}
    answer = client.post("/v1/audio/speech/batch", json={"items": [item], **shared}).json()
    alone = client.post(
        "/v1/audio/speech",
        json={**shared, "input": "One.", "voice": "vivian", "instructions": "calmly"},
    )
    assert base64.b64decode(answer["results"][0]["audio_data"]) == alone.content
    twice = [{**item, "voice": "ryan"}]
    answer = client.post("/v1/audio/speech/batch", json={"items": twice, **shared}).json()
    assert "speaker" in answer["results"][0]["error"]["message"]


def test_a_batch_is_bounded(client: TestClient) -> None:
    items = [{"input": "One."}] * 33
    answer = client.post("/v1/audio/speech/batch", json={"items": items})
    assert answer.status_code == 400
    assert answer.json()["error"]["param"] == "items"
