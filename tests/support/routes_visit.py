"""A page behind a key, asked in a process of its own: Gradio leaves loops and sockets behind."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from fastapi.testclient import TestClient

from engine import Library
from engine.testing import FakeEngine
from studio.api import create_api
from studio.context import open_studio
from studio.server.public_server import protect
from studio.settings import StudioSettings
from studio.ui.login import Login
from studio.ui.page import mount_page

KEY = "secret-key"
LOCKED = ("queue/join", "cancel", "reset", "upload", "call/speak", "run/speak", "component_server")
EVIL = {"origin": "https://evil.example"}


def gradio_routes(application: Any) -> Iterator[tuple[str, str]]:
    """Method and template of every route below an application."""
    for route in application.routes:
        if getattr(route, "methods", None):
            yield from ((method, route.path) for method in route.methods)
        elif (inner := getattr(route, "original_router", None)) is not None:
            yield from gradio_routes(inner)


def visit(data: Path, closed: list[str]) -> dict[str, Any]:
    settings = StudioSettings.model_validate({"data": data, "api": {"keys": (KEY,)}})
    library = Library(data / "voices")
    with FakeEngine() as engine:
        application, login = create_api(engine, library, settings.api), Login(settings.api.keys)
        mount_page(application, open_studio(engine, library), login)
        page = application.routes[-1].app  # type: ignore[attr-defined]
        protect(application, engine, settings, login)
        with TestClient(application, base_url="http://localhost") as client:
            return {"routes": sorted(gradio_routes(page)), **answers_of(client, closed)}


def answers_of(client: TestClient, closed: list[str]) -> dict[str, Any]:
    seen: dict[str, Any] = {}
    seen["closed"] = {
        f"{method} {path}": client.request(method, path, json={}).status_code
        for path in closed
        for method in ("GET", "POST")
    }
    seen["locked"] = {
        path: client.post(f"/gradio_api/{path}", content=b"[1," * 500_000).status_code
        for path in LOCKED
    }
    seen["info before"] = client.get("/gradio_api/info").status_code
    answer = client.post("/login", data={"username": "me", "password": KEY})
    seen["login"] = [answer.status_code, answer.headers.get_list("set-cookie")]
    for path in ("/", "/theme.css", "/config", "/gradio_api/info"):
        seen[path] = client.get(path).status_code
    foreign = client.get("/config", headers=EVIL)
    seen["cors"] = [name for name in foreign.headers if name.startswith("access-control-allow")]
    seen["foreign"] = client.post("/gradio_api/queue/join", json={}, headers=EVIL).status_code
    seen["own"] = client.post("/gradio_api/queue/join", json={}).status_code
    return seen


if __name__ == "__main__":
    print(json.dumps(visit(Path(sys.argv[1]), json.loads(sys.argv[2]))))
