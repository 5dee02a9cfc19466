"""Requests that pages of other sites and rebound names make a browser send."""

from __future__ import annotations

import socket

import pytest
from fastapi.testclient import TestClient
from starlette.responses import PlainTextResponse
from starlette.testclient import WebSocketDenialResponse

from engine import Library
from engine.testing import FakeEngine
from studio.api import ApiSettings, create_api
from studio.server.middleware.request_guard import RequestGuard, same_origin
from studio.server.public_server import protect
from studio.settings import StudioSettings
from tests.support.serving import serving

BODY = {"input": "Hello there.", "response_format": "pcm"}
SOCKET = "/v1/audio/speech/stream"


def client(engine: FakeEngine, library: Library, **settings: object) -> TestClient:
    configured = StudioSettings.model_validate(settings)
    application = create_api(engine, library, configured.api)
    protect(application, engine, configured)
    return TestClient(application)


@pytest.mark.parametrize(
    ("host", "status"),
    [
        ("localhost:7860", 200),
        ("127.0.0.1:7860", 200),
        ("[::1]:7860", 200),
        ("192.168.1.20:7860", 200),
        ("studio.example", 200),
        ("STUDIO.example:443", 200),
        ("localhost.:7860", 421),
        ("x.localhost:7860", 421),
        ("rebound.evil.example:7860", 421),
        ("studio.example.evil.example", 421),
        ("", 421),
        ("[", 421),
    ],
)
def test_only_known_names_are_answered(
    engine: FakeEngine, library: Library, host: str, status: int
) -> None:
    response = client(engine, library, hosts=("studio.example",))
    answer = response.get("/v1/models", headers={"host": host})
    assert answer.status_code == status
    if status != 200:
        assert "TIMBRE_HOSTS" in answer.json()["error"]["message"]


def test_a_program_that_names_no_host_is_answered(engine: FakeEngine, library: Library) -> None:
    """As HTTP/1.0 allows; no browser leaves it out."""
    settings = StudioSettings()
    application = create_api(engine, library, settings.api)
    protect(application, engine, settings)
    with serving(application) as url:
        where = url.removeprefix("http://").split(":")
        with socket.create_connection((where[0], int(where[1])), 20) as line:
            line.sendall(b"GET /v1/models HTTP/1.0\r\n\r\n")
            answer = line.makefile("rb").read()
    assert answer.startswith(b"HTTP/1.1 200"), answer[:200]
    assert b"tts-1" in answer


@pytest.mark.parametrize(
    ("host", "origin", "status"),
    [
        ("localhost:7860", "https://evil.example", 403),
        ("127.0.0.1:7860", "https://evil.example", 403),
        ("0.0.0.0:7860", "https://evil.example", 403),
        ("[::1]:7860", "null", 403),
        ("127.0.0.1:7860", "http://localhost:3000", 403),
        ("192.168.1.20:7860", "https://evil.example", 403),
        ("studio.example", "https://evil.example", 403),
        ("studio.example", "https://studio.example.evil.example", 403),
        ("127.0.0.1:7860", "http://localhost:7860", 200),
        ("localhost:7860", "https://friend.example", 200),
        ("studio.example", "https://studio.example", 200),
        ("localhost:7860", None, 200),
    ],
)
def test_pages_of_other_sites_send_nothing(
    engine: FakeEngine, library: Library, host: str, origin: str | None, status: int
) -> None:
    guarded = client(
        engine, library, hosts=("studio.example",), api={"origins": ("https://friend.example",)}
    )
    headers = {"host": host} | ({} if origin is None else {"origin": origin})
    assert guarded.post("/v1/audio/speech", json=BODY, headers=headers).status_code == status
    if status == 200:
        with guarded.websocket_connect(SOCKET, headers=headers):
            pass
    else:
        with (
            pytest.raises(WebSocketDenialResponse),
            guarded.websocket_connect(SOCKET, headers=headers),
        ):
            pass


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({}, 404),  # there is no page here
        ({"sec-fetch-site": "same-origin"}, 404),
        ({"sec-fetch-site": "none"}, 404),
        ({"origin": "http://localhost:7860"}, 404),
        ({"origin": "https://evil.example"}, 403),
        ({"sec-fetch-site": "cross-site"}, 403),
        ({"sec-fetch-site": "same-site"}, 403),
    ],
)
@pytest.mark.parametrize("path", ["/logout", "/logout/"])
def test_pages_of_other_sites_log_nobody_out(
    engine: FakeEngine, library: Library, headers: dict[str, str], status: int, path: str
) -> None:
    answer = client(engine, library).get(path, headers={"host": "localhost:7860"} | headers)
    assert answer.status_code == status


def test_a_key_does_not_open_the_door_to_other_sites(engine: FakeEngine, library: Library) -> None:
    response = client(engine, library, hosts=("studio.example",), api={"keys": ("key",)})
    headers = {"host": "studio.example", "origin": "https://evil.example"}
    headers["authorization"] = "Bearer key"
    assert response.post("/v1/audio/speech", json=BODY, headers=headers).status_code == 403
    answer = response.get("/v1/models", headers=headers)
    assert "access-control-allow-origin" not in answer.headers
    assert "access-control-allow-credentials" not in answer.headers


@pytest.mark.parametrize(
    ("origin", "host", "same"),
    [
        ("http://a.example", "a.example", True),
        ("http://a.example", "a.example:80", True),
        ("https://a.example", "a.example:443", True),
        ("https://a.example", "a.example", True),
        ("http://a.example:8080", "a.example", False),
        ("http://a.example", "b.example", False),
        ("null", "a.example", False),
        ("", "", False),
        ("http://127.0.0.1:1", "localhost:1", True),
        ("http://localhost:1", "10.0.0.1:1", False),
        ("http://a.example:notaport", "a.example", False),
    ],
)
def test_an_origin_is_a_host_with_a_port(origin: str, host: str, same: bool) -> None:
    assert same_origin(origin, host) is same


@pytest.mark.parametrize(
    ("embedded", "expected"), [(False, "SameSite=Lax"), (True, "SameSite=none")]
)
def test_cookies_stay_with_our_pages_unless_embedded(embedded: bool, expected: str) -> None:
    async def app(scope: object, receive: object, send: object) -> None:
        answer = PlainTextResponse("hello")
        answer.set_cookie("access-token", "1", samesite="none", secure=True)
        answer.set_cookie("other", "2", samesite="lax")
        await answer(scope, receive, send)  # type: ignore[arg-type]

    response = TestClient(RequestGuard(app, hosts=("testserver",), embedded=embedded))
    cookies = response.get("/").headers.get_list("set-cookie")
    assert len(cookies) == 2
    assert expected in cookies[0]
    assert "Secure" in cookies[0]


def test_settings_name_hosts() -> None:
    assert StudioSettings(api=ApiSettings()).hosts == ()
