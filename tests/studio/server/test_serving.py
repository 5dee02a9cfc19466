"""`serve`: the API with the page or without it, as the settings say."""

from __future__ import annotations

import socket
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from fastapi import FastAPI
from fastapi.testclient import TestClient
from typer.testing import CliRunner, Result

import app
from engine.testing import FakeEngine
from studio.cli import app_context
from studio.cli.app_context import AppContext
from studio.cli.console import Console
from studio.cli.serve import _is_open_to_all, greet
from studio.context import Studio
from studio.layout import ROOT
from studio.server import serving
from studio.server.process.data_lock import data_lock
from studio.settings import StudioSettings
from studio.ui import page


@pytest.fixture
def served(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> list[Any]:
    """What is served; its health is checked instead of serving until Ctrl-C."""
    answers: list[Any] = []

    def serve(
        application: Any, address: socket.socket, drain: Any, proxies: Any, **more: Any
    ) -> None:
        with address, TestClient(application, base_url="http://localhost") as client:
            answers.append(client.get("/health").json())

    def opened(models: Sequence[str], *_: Any, **changes: Any) -> FakeEngine:
        return FakeEngine()

    monkeypatch.setattr(serving, "serve", serve)
    monkeypatch.setattr(app_context, "open_engine", opened)
    monkeypatch.setenv("TIMBRE_PROCESS", "shared")
    monkeypatch.setenv("TIMBRE_DATA", str(tmp_path))
    monkeypatch.setenv("TIMBRE_MODEL", "fake")
    return answers


def free_port() -> str:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        return str(taken.getsockname()[1])


def run() -> Result:
    return CliRunner().invoke(app.cli, ["serve", "--port", free_port()])


@pytest.mark.parametrize("guests", ["true", "false"])
def test_the_page_is_there_for_guests_or_for_friends(
    served: list[Any], monkeypatch: pytest.MonkeyPatch, guests: str
) -> None:
    mounted: list[bool] = []

    def mount(_: object, studio: Studio, login: object) -> None:
        mounted.append(studio.guests)

    monkeypatch.setattr(page, "mount_page", mount)
    monkeypatch.setenv("TIMBRE_GUESTS", guests)
    result = run()
    assert result.exit_code == 0, result.output
    assert (mounted, served) == ([guests == "true"], [{"status": "ok"}])
    assert "in a browser" in result.stderr


def test_the_api_stands_alone(served: list[Any], monkeypatch: pytest.MonkeyPatch) -> None:
    mounted: list[bool] = []
    monkeypatch.setattr(page, "mount_page", lambda *_: mounted.append(True))
    monkeypatch.setenv("TIMBRE_PAGE", "false")
    result = run()
    assert result.exit_code == 0, result.output
    assert (mounted, served) == ([], [{"status": "ok"}])
    assert "docs/api.md" in result.stderr


def test_a_taken_port_is_told_before_anything_is_loaded(served: list[Any]) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        result = CliRunner().invoke(app.cli, ["serve", "--port", port])
    assert result.exit_code == 2
    assert "taken" in result.stderr
    assert "Loading" not in result.stderr


def test_a_data_folder_of_another_server_is_told_before_anything_is_loaded(
    served: list[Any], tmp_path: Path
) -> None:
    with data_lock(tmp_path):
        result = run()
    assert result.exit_code == 2
    assert "in use by another server" in result.stderr
    assert "Loading" not in result.stderr


def test_the_api_alone_needs_no_gradio() -> None:
    modules = "app, studio.api, studio.cli.serve, studio.server.public_server"
    code = f"import sys, {modules}; assert 'gradio' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], cwd=ROOT, check=True, timeout=60)


def test_small_writes_are_sent_at_once() -> None:
    """An answer in two writes waited 40 ms on a kept connection, for want of TCP_NODELAY."""
    with serving.listen("127.0.0.1", 0) as server, socket.create_connection(server.getsockname()):
        connection, _ = server.accept()
        with connection:
            assert connection.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)


def test_a_silent_connection_is_not_closed_under_its_client(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Some clients keep theirs for 5 seconds, as long as uvicorn does by itself."""
    kept: list[float] = []

    class Noted(serving.DrainingServer):
        def run(self, sockets: list[socket.socket] | None = None) -> None:
            kept.append(self.config.timeout_keep_alive)

    monkeypatch.setattr(serving, "DrainingServer", Noted)
    serving.serve(FastAPI(), serving.listen("127.0.0.1", 0))
    assert kept[0] > 60


@pytest.mark.parametrize(
    ("settings", "is_open"),
    [
        ({}, False),
        ({"host": "0.0.0.0"}, True),
        ({"host": "0.0.0.0", "guests": True}, False),
        ({"host": "0.0.0.0", "api": {"keys": ("key",)}}, False),
    ],
)
def test_serving_everybody_is_said_at_the_start(settings: dict[str, Any], is_open: bool) -> None:
    assert _is_open_to_all(StudioSettings.model_validate(settings)) is is_open


@pytest.mark.parametrize(
    ("host", "address"),
    [("127.0.0.1", "http://127.0.0.1:7860 "), ("::1", "http://[::1]:7860 ")],
)
def test_the_address_at_the_start_opens(
    capsys: pytest.CaptureFixture[str], host: str, address: str
) -> None:
    greet(AppContext(StudioSettings(host=host), Console()))
    assert f"Open {address}" in capsys.readouterr().err
