"""A recording sent with a request: when the request must state its owner's consent."""

from __future__ import annotations

import json
from base64 import b64encode
from pathlib import Path
from typing import Any

import pytest
from fastapi.testclient import TestClient

from engine import Engine, Library
from studio.api import ApiSettings, create_api
from studio.settings import StudioSettings
from tests.studio.api.routes.test_voices import recording

SOUND = "data:audio/wav;base64," + b64encode(recording()).decode()
ASKED = {"input": "As I sound.", "ref_audio": SOUND, "response_format": "pcm"}
NO = [{}, {"consent": False}, {"consent": "off"}, {"consent": "nein"}, {"consent": "null"}]


def api(engine: Engine, library: Library, who: str) -> TestClient:
    return TestClient(create_api(engine, library, ApiSettings(reference_consent=who)))


@pytest.mark.parametrize("who", ["auto", "request"])
@pytest.mark.parametrize("given", NO, ids=str)
def test_without_consent_no_recording_is_spoken_with(
    engine: Engine, library: Library, who: str, given: dict[str, Any]
) -> None:
    client = api(engine, library, who)
    for path in ("/v1/audio/speech", "/dev/captioned_speech"):
        answer = client.post(path, json={**ASKED, **given})
        assert answer.status_code == 400
        error = answer.json()["error"]
        assert (error["code"], error["param"]) == ("consent_missing", "consent")
        assert "consent: true" in error["message"]
    batch = {**given, "items": [{"input": "One.", "ref_audio": SOUND}]}
    results = client.post("/v1/audio/speech/batch", json=batch).json()["results"]
    assert results[0]["error"]["code"] == "consent_missing"
    files = {"audio": ("a.wav", recording(), "audio/wav")}
    form = {name: str(value) for name, value in given.items()}
    assert client.post("/v1/audio/embeddings", data=form, files=files).status_code == 400
    with client.websocket_connect("/v1/audio/speech/stream") as socket:
        config = {"type": "session.config", "ref_audio": SOUND, **given}
        socket.send_text(json.dumps(config))
        assert socket.receive_json()["error"]["code"] == "consent_missing"


@pytest.mark.parametrize(
    ("who", "given"),
    [("operator", {}), ("request", {"consent": True}), ("request", {"consent": "yes"})],
    ids=str,
)
def test_with_consent_it_is(
    engine: Engine, library: Library, who: str, given: dict[str, Any]
) -> None:
    client = api(engine, library, who)
    assert client.post("/v1/audio/speech", json={**ASKED, **given}).status_code == 200
    files = {"audio": ("a.wav", recording(), "audio/wav")}
    form = {name: str(value) for name, value in given.items()}
    assert client.post("/v1/audio/embeddings", data=form, files=files).status_code == 200


def test_a_kept_voice_had_its_consent_already(engine: Engine, library: Library) -> None:
    client = api(engine, library, "request")
    form = {"name": "Ada", "consent": "true"}
    kept = client.post("/v1/audio/voices", data=form, files={"audio": ("a.wav", recording())})
    requested = {**ASKED, "ref_audio": kept.json()["id"]}
    assert client.post("/v1/audio/speech", json=requested).status_code == 200


@pytest.mark.parametrize(
    ("place", "who"),
    [
        ({}, "operator"),
        ({"host": "localhost"}, "operator"),
        ({"host": "0.0.0.0"}, "request"),
        ({"guests": True}, "request"),
        ({"hosts": ("voices.example.org",)}, "request"),
        ({"host": "0.0.0.0", "api": ApiSettings(reference_consent="operator")}, "operator"),
        ({"api": ApiSettings(reference_consent="request")}, "request"),
    ],
    ids=str,
)
def test_the_operator_answers_on_a_machine_of_ones_own(
    tmp_path: Path, place: dict[str, Any], who: str
) -> None:
    settings = StudioSettings(data=tmp_path, **place)
    assert settings.decided_api().reference_consent == who
