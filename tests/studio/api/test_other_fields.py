"""Fields under other services' names: followed, or refused with the reason, never passed over."""

from __future__ import annotations

import base64
from typing import Any

import pytest
from fastapi.testclient import TestClient

from engine import Engine, Library
from studio.api import ApiSettings, create_api
from tests.studio.api.routes.test_voices import recording

PATH = "/v1/audio/speech"
TEXT = "The morning train."


def ask(client: TestClient, **fields: Any) -> Any:
    body = {"input": TEXT, "seed": 1, "response_format": "pcm", **fields}
    return client.post(PATH, json=body)


@pytest.mark.parametrize(
    ("theirs", "ours"),
    [
        ({"speaker": "ryan"}, {"voice": "ryan"}),
        ({"speaker_id": "ryan"}, {"voice": "ryan"}),
        ({"reference_id": "ryan"}, {"voice": "ryan"}),
        ({"instruction": "Softly."}, {"instructions": "Softly."}),
        ({"max_tokens": 5}, {"max_new_tokens": 5}),
        ({"streaming": False}, {"stream": False}),
        ({"input": None, "inputs": TEXT}, {}),
        ({"format": "pcm", "response_format": None}, {}),
        ({"model": "ryan"}, {"voice": "ryan"}),  # LocalAI
        ({"model": "onyx"}, {"voice": "onyx"}),
    ],
)
def test_what_others_call_it(
    client: TestClient, theirs: dict[str, Any], ours: dict[str, Any]
) -> None:
    answer = ask(client, **theirs)
    assert answer.status_code == 200, answer.text
    assert answer.content == ask(client, **ours).content
    assert "x-ignored-fields" not in answer.headers
    if "stream" in ours:
        assert "content-length" in answer.headers


def test_a_model_that_is_no_voice_leaves_the_choice(client: TestClient) -> None:
    answer = ask(client, model="kokoro")
    assert answer.content == ask(client).content
    assert answer.headers["x-ignored-fields"] == "model"
    both = ask(client, model="onyx", voice="ryan")
    assert both.content == ask(client, voice="ryan").content


@pytest.fixture
def sound() -> str:
    return base64.b64encode(recording()).decode()


def test_references_are_a_clone(client: TestClient, sound: str) -> None:
    url = f"data:audio/wav;base64,{sound}"
    wanted = ask(client, ref_audio=url, ref_text="What I said.", consent=True)
    assert wanted.status_code == 200, wanted.text
    for reference in (
        {"audio": sound, "text": "What I said."},
        {"audio": url, "text": "What I said."},
        {"audio_path": url, "text": "What I said."},
    ):
        answer = ask(client, references=[reference], consent=True)
        assert answer.content == wanted.content
        assert answer.content != ask(client).content
    assert ask(client, ref_audio=[url], ref_text=["What I said."], consent=True).content == (
        wanted.content
    )
    assert ask(client, ref_audio_url=url, ref_text="What I said.", consent=True).content == (
        wanted.content
    )


def test_references_need_consent(engine: Engine, library: Library, sound: str) -> None:
    settings = ApiSettings(reference_consent="request")
    client = TestClient(create_api(engine, library, settings))
    for fields in (
        {"references": [{"audio": sound, "text": "What I said."}]},
        {"ref_audio": [f"data:audio/wav;base64,{sound}"]},
    ):
        answer = ask(client, **fields)
        assert (answer.status_code, answer.json()["error"]["code"]) == (400, "consent_missing")
        assert ask(client, **fields, consent=True).status_code == 200


@pytest.mark.parametrize(
    ("fields", "param", "code"),
    [
        ({"ref_audio_url": "https://x.org/a.wav"}, "ref_audio_url", "address_refused"),
        (
            {"references": [{"audio_path": "/etc/passwd", "text": "x"}]},
            "references.audio_path",
            "address_refused",
        ),
        (
            {"references": [{"audio_path": "voices/a.wav"}]},
            "references.audio_path",
            "address_refused",
        ),
        ({"references": [{"audio": "http://x.org/a.wav"}]}, "references.audio", "address_refused"),
        ({"references": [{"text": "x"}]}, "references", "invalid_value"),
        ({"references": [{"audio": "x"}, {"audio": "y"}]}, "references", "invalid_value"),
        ({"references": "me"}, "references", "invalid_value"),
        ({"references": [{"audio": 7}]}, "references.audio", "invalid_value"),
        ({"ref_audio": ["a", "b"]}, "ref_audio", "invalid_value"),
        ({"ref_audio": "ada", "ref_audio_url": "data:,x"}, "ref_audio_url", "invalid_value"),
    ],
)
def test_what_is_no_recording_is_refused_with_the_reason(
    client: TestClient, fields: dict[str, Any], param: str, code: str
) -> None:
    answer = ask(client, consent=True, **fields)
    assert answer.status_code == 400, answer.text
    error = answer.json()["error"]
    assert (error["param"], error["code"]) == (param, code)
    if code == "address_refused":
        assert "data: URL" in error["message"]
