"""Keys, rates, sizes and CORS: all of them before any work."""

from __future__ import annotations

import gzip
import hmac
import json
import time
from collections.abc import Iterator
from typing import Any

import pytest
from fastapi.testclient import TestClient
from pydantic import ValidationError
from starlette.testclient import WebSocketDenialResponse

from engine import Engine, EngineSettings, Library, Preset, SpeechRequest
from engine.testing import FakeEngine
from studio.api import ApiSettings, create_api
from studio.api import auth as gate_module
from studio.api.auth import Keys
from studio.api.errors import ApiError
from studio.api.rates import Rates, household

BODY = {"input": "Hello there.", "response_format": "pcm"}


def client_with(engine: Engine, library: Library, **settings: Any) -> TestClient:
    return TestClient(create_api(engine, library, ApiSettings(**settings)))


def bearer(key: str) -> dict[str, str]:
    return {"authorization": f"Bearer {key}"}


def test_only_a_valid_key_gets_in(engine: Engine, library: Library) -> None:
    client = client_with(engine, library, keys=("first-key", "second-key"))
    for headers in ({}, bearer("wrong"), bearer(""), {"authorization": "first-key"}):
        answer = client.post("/v1/audio/speech", json=BODY, headers=headers)
        assert answer.status_code == 401
        assert answer.json()["error"]["code"] == "invalid_api_key"
        assert answer.headers["www-authenticate"] == "Bearer"
    for key in ("first-key", "second-key"):
        assert client.post("/v1/audio/speech", json=BODY, headers=bearer(key)).status_code == 200
    assert client.get("/metrics").status_code == 401
    assert client.get("/health").status_code == 200
    assert client.get("/ready").status_code == 200


def test_a_packed_body_is_refused_as_it_is(engine: Engine, library: Library) -> None:
    """Nothing unpacks it, so it cannot grow; whoever sent it learns why."""
    client = client_with(engine, library)
    kind, speech = {"content-type": "application/json"}, json.dumps(BODY).encode()
    for coding, body in (("gzip", gzip.compress(speech)), ("br", speech), ("gzip, br", speech)):
        packed = {**kind, "content-encoding": coding}
        for path in ("/v1/audio/speech", "/v1/audio/voices"):
            answer = client.post(path, content=body, headers=packed)
            assert answer.status_code == 415, answer.text
            assert f"'{coding}' is not decoded" in answer.json()["error"]["message"]
            assert answer.headers["accept-encoding"] == "identity"
    plain = {**kind, "content-encoding": "identity"}
    assert client.post("/v1/audio/speech", content=speech, headers=plain).status_code == 200


def test_a_key_of_any_letters_gets_in(engine: Engine, library: Library) -> None:
    client = client_with(engine, library, keys=("schlüssel",))
    sent = {"authorization": "Bearer schlüssel".encode()}
    answer = client.get("/v1/models", headers=sent)  # type: ignore[arg-type]
    assert answer.status_code == 200


def test_a_socket_needs_the_key_too(engine: Engine, library: Library) -> None:
    client = client_with(engine, library, keys=("first-key",))
    path = "/v1/audio/speech/stream"
    with pytest.raises(WebSocketDenialResponse) as refused, client.websocket_connect(path):
        pass
    assert refused.value.status_code == 401
    with client.websocket_connect(path, headers=bearer("first-key")) as socket:
        socket.send_json({"type": "session.close"})


def test_keys_are_compared_in_constant_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every known key is compared, by hmac, over digests of one length."""
    compared: list[tuple[int, int]] = []
    plain = hmac.compare_digest

    def watched(one: bytes, other: bytes) -> bool:
        compared.append((len(one), len(other)))
        return plain(one, other)

    keys = Keys(["one", "a much longer key", "three"])
    monkeypatch.setattr(gate_module.hmac, "compare_digest", watched)
    keys.check("one")
    with pytest.raises(ApiError):
        keys.check("x")
    assert compared == [(32, 32)] * 6


def test_an_address_is_limited_and_told_when_to_come_back(engine: Engine, library: Library) -> None:
    client = client_with(engine, library, address_rate="2/minute")
    codes = [client.post("/v1/audio/speech", json=BODY).status_code for _ in range(3)]
    assert codes == [200, 200, 429]
    answer = client.get("/v1/models")
    assert answer.status_code == 429
    assert 1 <= int(answer.headers["retry-after"]) <= 60
    assert answer.json()["error"]["type"] == "rate_limit_error"
    assert client.get("/health").status_code == 200
    assert client.get("/metrics").status_code == 200


def test_keys_are_limited_apart(engine: Engine, library: Library) -> None:
    client = client_with(engine, library, keys=("one", "two"), key_rate="1/minute")
    response = [client.get("/v1/models", headers=bearer(key)) for key in ("one", "one", "two")]
    assert [answer.status_code for answer in response] == [200, 429, 200]


def test_a_batch_costs_as_much_as_its_items(engine: Engine, library: Library) -> None:
    client = client_with(engine, library, address_rate="4/minute")
    answer = client.post("/v1/audio/speech/batch", json={"items": [BODY] * 5})
    assert answer.status_code == 400, "however long a client waits"
    assert "retry-after" not in answer.headers
    assert "at most 4 items" in answer.json()["error"]["message"]
    answer = client.post("/v1/audio/speech/batch", json={"items": [BODY] * 3})
    assert answer.status_code == 200
    answer = client.post("/v1/audio/speech/batch", json={"items": [BODY] * 3})
    assert answer.status_code == 429


def test_utterances_of_a_socket_are_counted(engine: Engine, library: Library) -> None:
    client = client_with(engine, library, address_rate="2/minute")
    with client.websocket_connect("/v1/audio/speech/stream") as socket:
        for _ in range(2):
            socket.send_json({"type": "input.text", "text": "Hi."})
            socket.send_json({"type": "input.done"})
        kinds = []
        while "error" not in kinds or "session.done" not in kinds:
            message = socket.receive()
            if message.get("text"):
                kinds.append(json.loads(message["text"])["type"])
        assert kinds.count("session.done") == 1


def test_neighbours_in_one_ipv6_network_count_as_one() -> None:
    rates = Rates(ApiSettings(address_rate="1/minute"))
    one, two = (household(f"2001:db8:1:2::{host}") for host in (1, 2))
    far = household("2001:db8:1:3::1")
    rates.take({"address": one})
    with pytest.raises(ApiError):
        rates.take({"address": two})
    rates.take({"address": far})


def test_of_a_long_address_little_is_kept() -> None:
    assert len(household("x" * 60_000)) < 100


def test_an_address_of_a_named_network_card_has_a_household() -> None:
    one, two = (household(f"fe80::{host}%enp123s0f0") for host in (1, 2))
    assert one == two == "fe80:0000:0000:0000"


def test_a_body_too_large_is_refused(engine: Engine, library: Library) -> None:
    client = client_with(engine, library, body_bytes=2000)
    assert client.post("/v1/audio/speech", json={"input": "x" * 3000}).status_code == 413

    def pieces() -> Iterator[bytes]:  # without a length
        yield from [b'{"input": "', *[b"x" * 1000] * 5, b'"}']

    headers = {"content-type": "application/json"}
    answer = client.post("/v1/audio/speech", content=pieces(), headers=headers)
    assert answer.status_code == 413
    assert answer.json()["error"]["code"] == "too_large"


def test_a_full_queue_says_when_to_come_back(library: Library) -> None:
    settings = EngineSettings(max_num_seqs=1, max_waiting=0)
    with FakeEngine(settings=settings) as engine:
        engine.worker.fault = lambda plan: time.sleep(0.02)
        client = client_with(engine, library)
        with engine.submit(SpeechRequest("x" * 500, Preset("ryan"))):
            answer = client.post("/v1/audio/speech", json=BODY)
            assert answer.status_code == 429
            assert answer.json()["error"]["code"] == "queue_full"
            assert int(answer.headers["retry-after"]) >= 1


def test_other_sites_may_ask_only_when_set(engine: Engine, library: Library) -> None:
    origin = {"origin": "https://example.com"}
    requested = {**origin, "access-control-request-method": "POST"}
    closed = client_with(engine, library)
    assert "access-control-allow-origin" not in closed.get("/v1/models", headers=origin).headers
    open_ = client_with(engine, library, origins=("https://example.com",), keys=("key",))
    preflight = open_.options("/v1/audio/speech", headers=requested)
    assert preflight.status_code == 200
    assert preflight.headers["access-control-allow-origin"] == "https://example.com"
    refused = open_.get("/v1/models", headers={"origin": "https://evil.example"})
    assert "access-control-allow-origin" not in refused.headers


@pytest.mark.parametrize(
    "fields", [{"keys": ("",)}, {"key_rate": "often"}, {"colour": "blue"}, {"sockets": 0}], ids=str
)
def test_settings_are_checked(fields: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        ApiSettings(**fields)


def test_settings_do_not_show_their_keys() -> None:
    assert "secret-key" not in repr(ApiSettings(keys=("secret-key",)))
