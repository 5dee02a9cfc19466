"""MCP by hand: JSON-RPC at /mcp, its tools, and its doors."""

from __future__ import annotations

import asyncio
import base64
import json
from collections.abc import Iterator
from contextlib import closing
from http.client import HTTPConnection
from typing import Any
from urllib.parse import urlsplit

import httpx
import pytest
from fastapi.testclient import TestClient

from engine import Engine, Library
from engine.testing import Costs, FakeEngine
from studio.api import ApiSettings, create_api
from tests.studio.api.conftest import Serve
from tests.studio.api.routes.test_voices import recording, speak
from tests.support.serving import wait_until

pytest.importorskip("mcp")
TEXT = "The morning train was late again."
HEADERS = {"accept": "application/json, text/event-stream"}
ME = "data:audio/wav;base64," + base64.b64encode(recording()).decode()


@pytest.fixture
def client(engine: Engine, library: Library) -> Iterator[TestClient]:
    with TestClient(create_api(engine, library, ApiSettings(mcp=True))) as client:
        yield client


def ask(client: TestClient, method: str, **params: Any) -> Any:
    body = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
    answer = client.post("/mcp", json=body, headers=HEADERS)
    assert answer.status_code == 200, answer.text
    return answer.json()


def call(client: TestClient, tool: str, **arguments: Any) -> Any:
    return ask(client, "tools/call", name=tool, arguments=arguments)["result"]


def test_the_tools_are_listed(client: TestClient) -> None:
    tools = {each["name"]: each for each in ask(client, "tools/list")["result"]["tools"]}
    assert tools.keys() == {"speak", "list_voices", "design_voice", "clone_voice"}
    assert {"consent", "name", "recording"} <= {*tools["clone_voice"]["inputSchema"]["required"]}
    assert all(each["description"] for each in tools.values())
    hello = {"name": "test", "version": "1"}
    started = ask(
        client, "initialize", protocolVersion="2025-06-18", capabilities={}, clientInfo=hello
    )
    assert started["result"]["serverInfo"]["name"] == "timbre"


def test_it_speaks_and_lists(client: TestClient) -> None:
    spoken = call(client, "speak", text=TEXT, voice="vivian", format="wav")
    sound, facts = spoken["content"]
    assert (sound["type"], sound["mimeType"]) == ("audio", "audio/wav")
    assert base64.b64decode(sound["data"])[:4] == b"RIFF"
    assert "seed" in facts["text"]
    listed = call(client, "list_voices")["structuredContent"]
    assert "vivian" in [each["name"] for each in listed["voices"]]
    assert listed["can_clone"]


def test_the_first_requests_may_come_at_once(engine: Engine, library: Library) -> None:
    transport = httpx.ASGITransport(create_api(engine, library, ApiSettings(mcp=True)))
    body = {"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {}}

    async def both() -> list[int]:
        async with httpx.AsyncClient(transport=transport, base_url="http://localhost") as client:
            asking = (client.post("/mcp", json=body, headers=HEADERS) for _ in range(4))
            return [answer.status_code for answer in await asyncio.gather(*asking)]

    assert asyncio.run(both()) == [200] * 4


@pytest.mark.parametrize("method", ["GET", "HEAD", "DELETE", "PUT"])
def test_only_posts_are_answered(client: TestClient, method: str) -> None:
    """A stream of events would stay open for nothing, one for each who asks."""
    answer = client.request(method, "/mcp", headers=HEADERS)
    assert answer.status_code == 405
    assert answer.headers["allow"] == "POST"


def test_who_leaves_takes_the_call_along(library: Library, serve: Serve) -> None:
    arguments = {"text": "A word. " * 50, "voice": "vivian"}
    params = {"name": "speak", "arguments": arguments}
    body = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}
    headers = {**HEADERS, "content-type": "application/json"}
    with FakeEngine(costs=Costs(step=0.05)) as engine:
        url = urlsplit(serve(create_api(engine, library, ApiSettings(mcp=True))))
        with closing(HTTPConnection(str(url.hostname), url.port, timeout=60)) as connection:
            connection.request("POST", "/mcp", json.dumps(body), headers)
            wait_until(lambda: engine.stats().running == 1)
        wait_until(lambda: engine.stats().running == 0)
        assert engine.stats().ended["cancelled"] == 1


def test_it_makes_voices(client: TestClient, library: Library) -> None:
    made = call(client, "clone_voice", name="Ada", recording=ME, consent=True)
    assert made["structuredContent"]["voice"] == "Ada"
    assert speak(client, voice="Ada")
    assert [each.card.consent for each in library.list()] == [True]
    designed = call(client, "design_voice", name="Nurse", description="A warm voice.")
    assert designed["structuredContent"]["id"] == "nurse"


@pytest.mark.parametrize(
    ("tool", "arguments", "words"),
    [
        ("clone_voice", {"name": "A", "recording": ME, "consent": False}, "agreed"),
        ("clone_voice", {"name": "A", "recording": ME}, "consent"),
        ("clone_voice", {"name": "A", "recording": "/etc/passwd", "consent": True}, "data:"),
        ("clone_voice", {"name": "A", "recording": "http://x/y", "consent": True}, "data:"),
        ("clone_voice", {"name": "vivian", "recording": ME, "consent": True}, "already"),
        ("clone_voice", {"name": "A", "recording": ME[:60], "consent": True}, ""),
        ("speak", {"text": ""}, "text"),
        ("speak", {"text": "x" * 5001}, "text"),
        ("speak", {"text": TEXT, "voice": "nobody"}, "nobody"),
        ("speak", {"text": TEXT, "voise": "x"}, "voise"),
        ("no_such", {}, "tool"),
    ],
)
def test_what_cannot_be_is_told(
    client: TestClient, library: Library, tool: str, arguments: dict[str, Any], words: str
) -> None:
    result = call(client, tool, **arguments)
    assert result["isError"]
    assert words in result["content"][0]["text"]
    assert library.list() == ()


@pytest.mark.parametrize("body", [b"", b"{", b"[]", b"1", b"[" * 5000, b'{"jsonrpc": "2.0"}'])
def test_hostile_bodies_are_refused(client: TestClient, body: bytes) -> None:
    headers = {**HEADERS, "content-type": "application/json"}
    answer = client.post("/mcp", content=body, headers=headers)
    assert 400 <= answer.status_code < 500
    assert "Traceback" not in answer.text
    wide = b'{"params": [' + b"1," * 200_000 + b"1]}"
    assert client.post("/mcp", content=wide, headers=headers).status_code == 413
    assert ask(client, "tools/list")["result"]


def test_it_is_off_unless_asked_and_needs_the_key(engine: Engine, library: Library) -> None:
    with TestClient(create_api(engine, library)) as off:
        assert off.post("/mcp", json={}, headers=HEADERS).status_code == 404
    settings = ApiSettings(mcp=True, keys=("secret",))
    with TestClient(create_api(engine, library, settings)) as client:
        assert client.post("/mcp", json={}, headers=HEADERS).status_code == 401
        client.headers["authorization"] = "Bearer secret"
        assert ask(client, "tools/list")["result"]
