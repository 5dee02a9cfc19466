"""The page is sent compressed, byte for byte the same; audio and event streams pass as they are."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from fastapi import FastAPI
from fastapi.responses import Response, StreamingResponse
from fastapi.testclient import TestClient
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from studio.server.middleware.compression import KEPT, LARGE, LEAST, Compression

PAGE = b"<html>" + bytes(range(256)) * 400


@pytest.fixture
def app() -> FastAPI:
    app = FastAPI()
    app.state.body = PAGE

    @app.head("/")
    @app.get("/")
    def page() -> Response:
        return Response(app.state.body, media_type="text/html")

    @app.get("/timbre/live/x")
    def sound() -> Response:
        return Response(PAGE, media_type="audio/pcm")

    @app.get("/config")
    def stream() -> StreamingResponse:
        return StreamingResponse(iter([PAGE, PAGE]))

    @app.get("/theme.css")
    def packed() -> Response:
        return Response(PAGE, headers={"Content-Encoding": "identity"})

    app.add_middleware(Compression)
    return app


@pytest.fixture
def client(app: FastAPI) -> Iterator[TestClient]:
    with TestClient(app) as client:
        yield client


def test_the_page_is_compressed_and_the_same(client: TestClient) -> None:
    for _ in range(2):
        answer = client.get("/")
        assert answer.content == PAGE
        assert answer.headers["content-encoding"] == "gzip"
        assert int(answer.headers["content-length"]) < len(PAGE) / 10
        assert "accept-encoding" in answer.headers["vary"].lower()


def test_who_does_not_ask_gets_it_plain(client: TestClient) -> None:
    answer = client.get("/", headers={"accept-encoding": "identity"})
    assert answer.content == PAGE
    assert "content-encoding" not in answer.headers


def test_a_head_states_the_length_of_the_whole(client: TestClient) -> None:
    assert client.head("/").headers["content-length"] == str(len(PAGE))


@pytest.mark.parametrize("refused", ["gzip;q=0", "gzip; q=0.0, identity", "br, GZIP;Q=0"])
def test_who_refuses_gzip_gets_it_plain(client: TestClient, refused: str) -> None:
    assert "content-encoding" not in client.get("/", headers={"accept-encoding": refused}).headers


@pytest.mark.parametrize("path", ["/timbre/live/x", "/config", "/theme.css", "/nothing"])
def test_sound_streams_and_what_is_encoded_already_pass(client: TestClient, path: str) -> None:
    answer = client.get(path)
    assert answer.headers.get("content-encoding", "identity") == "identity"


@settings(deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(sizes=st.lists(st.integers(0, 2 * LARGE), min_size=1, max_size=3 * KEPT))
def test_any_body_arrives_whole(app: FastAPI, client: TestClient, sizes: list[int]) -> None:
    for number, size in enumerate(sizes):
        app.state.body = (f"{number} ".encode() * size)[:size]
        answer = client.get("/")
        assert answer.content == app.state.body
        assert ("content-encoding" in answer.headers) == (size >= LEAST)
