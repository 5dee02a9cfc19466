"""Two strangers on one page over HTTP, in a process of its own: Gradio leaves loops behind.

Serves the page as a Space does, with keys when asked, and prints what each of them saw as JSON.
"""

from __future__ import annotations

import json
import sys
import threading
from pathlib import Path
from typing import Any

import httpx
from fastapi import FastAPI
from gradio_client import Client
from pydantic import SecretStr

from engine import Library
from engine.testing import FakeEngine
from studio.api import create_api
from studio.context import open_studio
from studio.retention import open_takes
from studio.server import public_server, serving
from studio.server.visitors import COOKIE, shelf
from studio.settings import ApiSettings, StudioSettings
from studio.ui import page
from studio.ui.login import Login

KEY = "the-only-key"


def application_of(settings: StudioSettings, engine: FakeEngine) -> FastAPI:
    library = Library(shelf(settings.data) if settings.guests else settings.data / "voices")
    application = create_api(engine, library, settings.api)
    takes, login = open_takes(settings), Login(settings.api.keys)
    page.mount_page(application, open_studio(engine, library, takes, guests=settings.guests), login)
    public_server.protect(application, engine, settings, login)
    return application


def served(settings: StudioSettings, engine: FakeEngine) -> str:
    application, address = application_of(settings, engine), serving.listen("127.0.0.1", 0)
    threading.Thread(target=serving.serve, args=(application, address), daemon=True).start()
    return f"http://127.0.0.1:{address.getsockname()[1]}"


def visit(data: Path) -> dict[str, Any]:
    with FakeEngine() as engine:
        url = served(StudioSettings(data=data, guests=True), engine)
        anna, ben, again = (_browser(url, mark) for mark in ("of-anna", "of-ben", "of-anna"))
        bare = [Client(url, verbose=False) for _ in range(2)]
        for client, name in ((anna, "Anna"), (ben, "Ben"), (bare[0], "Nobody")):
            client.predict(name=name, blend="ryan(1)+vivian(1)", api_name="/blend")
        seen = {"anna": anna, "again": again, "ben": ben, "bare": bare[0], "other": bare[1]}
        return {
            **{who: _saved(client) for who, client in seen.items()},
            "spoken": Path(anna.predict("Hello.", "Anna", api_name="/speak")).stat().st_size,
            "refused": _refused(ben),
            "page": dict(httpx.get(url).headers),
        }


def locked(data: Path) -> dict[str, Any]:
    with FakeEngine() as engine:
        keys = ApiSettings(keys=(SecretStr(KEY),))
        url = served(StudioSettings(data=data, api=keys), engine)
        with httpx.Client(base_url=url) as http:
            before = {path: http.get(path).status_code for path in PATHS}
            wrong = http.post("/login", data={"username": "x", "password": "guess"}).status_code
            right = http.post("/login", data={"username": "x", "password": KEY}).status_code
            after = {path: http.get(path).status_code for path in PATHS}
        return {"before": before, "wrong": wrong, "right": right, "after": after}


PATHS = ("/config", "/timbre/live/x", "/timbre/takes/x.wav", "/gradio_api/info", "/v1/models")


def _browser(url: str, mark: str) -> Client:
    """A browser that has been here before, and opens the page anew."""
    client = Client(url, verbose=False)
    client.cookies = {**client.cookies, COOKIE: mark}
    return client


def _saved(client: Client) -> list[str]:
    return [each["name"] for each in client.predict(api_name="/voices") if each["kind"] == "saved"]


def _refused(client: Client) -> str:
    try:
        client.predict("Hello.", "Anna", api_name="/speak")
    except Exception as error:
        return str(error)
    return ""


if __name__ == "__main__":
    folder = Path(sys.argv[1])
    found = {"visit": visit(folder / "open"), "locked": locked(folder / "locked")}
    print(json.dumps(found), file=sys.__stdout__)  # what a server prints is in its log
