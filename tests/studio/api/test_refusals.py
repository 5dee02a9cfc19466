"""Refusals that must work whatever else fails."""

from __future__ import annotations

from fastapi import FastAPI
from fastapi.testclient import TestClient
from starlette.types import Receive, Scope, Send

from engine import Engine, Library
from studio.api import create_api


def test_a_fault_of_the_page_is_told_as_any_other(engine: Engine, library: Library) -> None:
    """The page is an application of its own: the handler looked for the API's numbers there."""
    api = create_api(engine, library)

    async def page(scope: Scope, receive: Receive, send: Send) -> None:
        scope["app"] = FastAPI()  # as any mounted application does
        raise ZeroDivisionError("a secret place")

    api.mount("/", page)
    with TestClient(api, raise_server_exceptions=False) as client:
        answer = client.get("/broken")
        assert (answer.status_code, answer.json()["error"]["code"]) == (500, "internal_error")
        assert "secret" not in answer.text
        assert 'code="internal_error"' in client.get("/metrics").text


def test_health_is_lost_with_the_engine(engine: Engine, library: Library) -> None:
    with TestClient(create_api(engine, library)) as client:
        assert client.get("/health").json() == {"status": "ok"}
        engine._registry.pause("A step got stuck.")
        for path in ("/health", "/ready"):
            answer = client.get(path)
            assert (answer.status_code, answer.json()) == (503, {"status": "restarting"})
            assert int(answer.headers["retry-after"]) > 0
        engine._registry.resume()
        assert client.get("/health").status_code == client.get("/ready").status_code == 200
        engine.close()
        assert client.get("/health").status_code == 503
        refused = client.post("/v1/audio/speech", json={"input": "Hello."})
        assert refused.headers["retry-after"] == str(refused.json()["error"]["retry_after"])
