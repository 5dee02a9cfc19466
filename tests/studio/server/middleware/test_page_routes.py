"""Gradio's routes: every one that is installed is open on purpose or does not exist here."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest
from fastapi.testclient import TestClient

from studio.api import ApiSettings
from studio.api.application import OURS
from studio.api.rates import Rates
from studio.server.middleware.page_routes import EVENT_BYTES, OPEN, PageRoutes
from tests.support.programs import visited

PLACE = r"\{[^}]*\}"  # in a route's template
# What Gradio serves and this page does not use. A new version's new route is neither open nor here.
CLOSED = {
    "/monitoring", "/monitoring/summary", "/monitoring/{key}",
    "/gradio_api/deep_link", "/gradio_api/dev/reload", "/gradio_api/runs/", "/gradio_api/runs",
    "/gradio_api/custom_component/{id}/{environment}/{type}/{file_name}",
    "/gradio_api/proxy={url_path:path}",
    "/gradio_api/stream/{event_id}", "/gradio_api/stream/{event_id}/close",
    "/gradio_api/stream/{session_hash}/{run}/{component_id}/playlist.m3u8",
    "/gradio_api/stream/{session_hash}/{run}/{component_id}/{segment_id}.{ext}",
    "/gradio_api/stream/{session_hash}/{run}/{component_id}/playlist-file",
    "/gradio_api/process_recording",
    "/gradio_api/vibe-edit", "/gradio_api/vibe-edit/",
    "/gradio_api/undo-vibe-edit", "/gradio_api/undo-vibe-edit/",
    "/gradio_api/vibe-code", "/gradio_api/vibe-code/",
    "/gradio_api/vibe-starter-queries", "/gradio_api/vibe-starter-queries/",
}  # fmt: skip


@pytest.fixture(scope="module")
def seen(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """What a page behind a key answered."""
    closed = [re.sub(PLACE, "x", template) for template in sorted(CLOSED)]
    folder = str(tmp_path_factory.mktemp("routes"))
    return visited("tests.support.routes_visit", folder, json.dumps(closed), timeout=600)


def test_every_route_of_the_installed_gradio_is_decided(seen: dict[str, Any]) -> None:
    undecided = set()
    for method, template in seen["routes"]:
        path = re.sub(PLACE, "x", template)
        if path.startswith(OURS):  # the API answers before Gradio
            continue
        is_open = any(route.matches(method, path) for route in OPEN)
        if is_open == (template in CLOSED):
            undecided.add((method, template))
    assert len(seen["routes"]) > 60
    assert undecided == set()


def test_closed_routes_do_not_exist(seen: dict[str, Any]) -> None:
    assert len(seen["closed"]) == 2 * len(CLOSED)
    assert set(seen["closed"].values()) == {404}


def test_a_body_is_not_read_before_the_login(seen: dict[str, Any]) -> None:
    assert set(seen["locked"].values()) == {401}


def test_the_page_and_its_parts_are_open(seen: dict[str, Any]) -> None:
    assert seen["info before"] == 401
    status, cookies = seen["login"]
    assert status == 200
    assert cookies
    assert not any("samesite=none" in cookie.lower() for cookie in cookies)
    assert [seen[path] for path in ("/", "/theme.css", "/config")] == [200, 200, 200]


def test_other_sites_get_no_cors_and_send_nothing(seen: dict[str, Any]) -> None:
    assert seen["cors"] == []
    assert seen["foreign"] == 403
    assert seen["own"] != 403


def echo(limit_open: bool = True) -> TestClient:
    """The guard in front of an application that says how much it was sent."""

    async def app(scope: Any, receive: Any, send: Any) -> None:
        size, more = 0, True
        while more:
            message = await receive()
            if message["type"] == "http.disconnect":
                return
            size += len(message.get("body", b""))
            more = message.get("more_body", False)
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": str(size).encode()})

    routes = PageRoutes(app, lambda scope: limit_open, OURS, Rates(ApiSettings()))
    return TestClient(routes, raise_server_exceptions=False)


def test_events_have_bodies_of_a_size() -> None:
    client = echo()
    text = json.dumps({"data": ["x" * 2_000_000]})
    assert client.post("/gradio_api/queue/join", content=text).text == str(len(text))
    large = b"x" * (EVENT_BYTES + 1)
    assert client.post("/gradio_api/queue/join", content=large).status_code == 413
    pieces = (large[start : start + 65536] for start in range(0, len(large), 65536))
    assert client.post("/gradio_api/queue/join", content=pieces).status_code == 413
    assert client.post("/gradio_api/queue/join", content=b"1," * 300_000).status_code == 413
    assert client.post("/gradio_api/cancel", content=b"x" * 20_000).status_code == 413
