"""Short-lived keys that open a realtime session, and nothing else."""

from __future__ import annotations

import time
from typing import Any

import pytest
from fastapi.testclient import TestClient
from starlette.testclient import WebSocketDenialResponse

from engine import Engine, Library
from studio.api import ApiSettings, create_api
from studio.api.client_secrets import MOST

CREATE, SOCKET = "/v1/realtime/client_secrets", "/v1/realtime?model=gpt-realtime"
KEY = {"authorization": "Bearer a-key-of-the-server"}
SESSION = {
    "type": "realtime",
    "instructions": "Be kind.",
    "audio": {"output": {"voice": "vivian", "format": {"type": "audio/pcmu"}}},
}


@pytest.fixture
def guarded(engine: Engine, library: Library) -> TestClient:
    settings = ApiSettings(keys=("a-key-of-the-server",), key_rate="40/minute")
    return TestClient(create_api(engine, library, settings))


def create(client: TestClient, **body: Any) -> Any:
    answer = client.post(CREATE, json=body, headers=KEY)
    assert answer.status_code == 200, answer.text
    return answer.json()


def created(client: TestClient, value: str) -> Any:
    """The session with which a socket begins."""
    protocols = ["realtime", f"openai-insecure-api-key.{value}"]
    with client.websocket_connect(SOCKET, subprotocols=protocols) as socket:
        message = socket.receive_json()
    assert message["type"] == "session.created"
    return message["session"]


def test_a_page_opens_the_session_it_was_given(guarded: TestClient) -> None:
    answer = create(guarded, session=SESSION, expires_after={"anchor": "created_at", "seconds": 60})
    assert answer["value"].startswith("ek_")
    assert 0 < answer["expires_at"] - time.time() <= 61
    assert answer["session"]["audio"]["output"]["voice"] == "vivian"
    for _ in range(2):  # as often as it is wanted
        session = created(guarded, answer["value"])
        assert session["audio"]["output"] == {
            "voice": "vivian",
            "format": {"type": "audio/pcmu"},
            "speed": 1.0,
        }
        assert session["instructions"] == "Be kind."
        assert session["model"] == "gpt-realtime"


def test_it_opens_nothing_else(guarded: TestClient) -> None:
    value = create(guarded)["value"]
    secret = {"authorization": f"Bearer {value}"}
    for method, path in (("POST", CREATE), ("GET", "/v1/models"), ("POST", "/v1/audio/speech")):
        assert guarded.request(method, path, headers=secret, json={}).status_code == 401
    with pytest.raises(WebSocketDenialResponse):
        guarded.websocket_connect("/v1/audio/speech/stream", headers=secret).__enter__()
    assert guarded.post(CREATE, json={}).status_code == 401


def test_it_counts_as_its_key(guarded: TestClient) -> None:
    value = create(guarded)["value"]
    for _ in range(39):
        created(guarded, value)
    assert guarded.get("/v1/models", headers=KEY).status_code == 429


@pytest.mark.parametrize("name", ["expired", "unknown", "forgotten"])
def test_what_does_not_hold_is_refused(
    guarded: TestClient, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    value = create(guarded, expires_after={"seconds": 10})["value"]
    assert created(guarded, value)
    secrets = guarded.app.state.context.secrets  # type: ignore[attr-defined]
    if name == "expired":
        now = time.time()
        monkeypatch.setattr(time, "time", lambda: now + 11)
    elif name == "unknown":
        value += "x"
    else:
        from studio.api.client_secrets import NewSecret

        for _ in range(MOST):
            secrets.add(NewSecret(), "")
        assert len(secrets._held) == MOST
    with pytest.raises(WebSocketDenialResponse):
        created(guarded, value)


@pytest.mark.parametrize(
    ("body", "status", "code"),
    [
        ({"session": {"type": "transcription"}}, 400, "invalid_value"),
        ({"session": {"audio": {"output": {"voice": "nobody"}}}}, 404, "voice_not_found"),
        ({"expires_after": {"seconds": 5}}, 400, "invalid_value"),
        ({"expires_after": {"seconds": 1e99}}, 400, "invalid_value"),
        ({"session": {"tools": [{}]}}, 400, "invalid_value"),
    ],
)
def test_a_session_that_cannot_be_is_refused_at_once(
    client: TestClient, body: Any, status: int, code: str
) -> None:
    answer = client.post(CREATE, json=body)
    assert (answer.status_code, answer.json()["error"]["code"]) == (status, code), answer.text
