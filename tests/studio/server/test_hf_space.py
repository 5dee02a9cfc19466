"""Hosting on a Space, on ZeroGPU and in a container, as far as it can be tested here."""

from __future__ import annotations

import json
import os
import re
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest
import soundfile
import yaml
from fastapi import FastAPI
from fastapi.testclient import TestClient
from gradio_client import Client

import app
from engine import Preset, SpeechRequest, open_engine
from studio.api.rates import Rates
from studio.server import hf_space, zerogpu
from studio.server.middleware.headers import SPACES
from studio.settings import ApiSettings, StudioSettings, names
from studio.takes.take_store import Takes
from studio.ui.login import Login
from tests.support.programs import environment

ROOT = Path(__file__).parents[3]
HERE = {"SPACE_ID": "someone/timbre"}
COLOURS = {"red", "yellow", "green", "blue", "indigo", "purple", "pink", "gray"}


@pytest.fixture(autouse=True)
def _bare(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in os.environ if name.startswith(("TIMBRE_", "SPACE"))]:
        monkeypatch.delenv(name)


@pytest.fixture
def on_a_space(monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    for name, value in HERE.items():
        monkeypatch.setenv(name, value)
    return monkeypatch


# A Space.


def test_nothing_is_different_elsewhere() -> None:
    assert hf_space.defaults({}) == {}
    assert not hf_space.is_zero({})


def test_a_space_is_for_strangers_and_framed(on_a_space: pytest.MonkeyPatch) -> None:
    settings = app.read_settings()
    assert (settings.host, settings.guests, settings.frame_ancestors) == ("0.0.0.0", True, SPACES)


def test_what_is_said_wins_over_the_space(on_a_space: pytest.MonkeyPatch) -> None:
    on_a_space.setenv("TIMBRE_GUESTS", "false")
    on_a_space.setenv("TIMBRE_FRAME_ANCESTORS", "https://example.org")
    settings = app.read_settings(host="127.0.0.1")
    assert (settings.host, settings.guests, settings.frame_ancestors) == (
        "127.0.0.1",
        False,
        ("https://example.org",),
    )


@pytest.mark.parametrize(("value", "zero"), [("true", True), ("1", True), ("false", False)])
def test_zerogpu_is_known_by_its_name(value: str, zero: bool) -> None:
    assert hf_space.is_zero({"SPACES_ZERO_GPU": value}) == zero


# The front matter that configures a Space.


@pytest.fixture(scope="module")
def front() -> dict[str, Any]:
    text = (ROOT / "README.md").read_text("utf-8")
    assert text.startswith("---\n"), "README.md begins with the Space's front matter"
    found = yaml.safe_load(text.split("---\n", 2)[1])
    assert isinstance(found, dict)
    return found


def test_the_front_matter_says_what_a_space_needs(front: dict[str, Any]) -> None:
    assert front["sdk"] == "gradio"
    assert (ROOT / front["app_file"]).is_file()
    assert front["license"] == "apache-2.0"
    assert {front["colorFrom"], front["colorTo"]} <= COLOURS
    assert len(front["short_description"]) <= 60
    assert isinstance(front["python_version"], str)  # 3.10 without quotes would be 3.1


def test_the_spaces_versions_are_within_ours(front: dict[str, Any]) -> None:
    from packaging.requirements import Requirement
    from packaging.specifiers import SpecifierSet

    lines = (ROOT / "requirements.txt").read_text("utf-8").splitlines()
    gradio = Requirement(next(line for line in lines if line.startswith("gradio")))
    assert front["sdk_version"] in gradio.specifier
    supported = re.search(r'requires-python = "(.*)"', (ROOT / "pyproject.toml").read_text("utf-8"))
    assert supported is not None
    assert front["python_version"] in SpecifierSet(supported[1])


# ZeroGPU, with a stand-in for the `spaces` package that forks as it does.


@pytest.fixture(scope="module")
def checkpoint() -> Path:
    golden = Path(os.environ.get("GOLDEN_DIR", ROOT / "tests" / "golden"))
    return golden / "custom_voice-1b7"


@pytest.fixture(scope="module")
def zero(checkpoint: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, Path]]:
    with as_zerogpu(checkpoint, tmp_path_factory.mktemp("zero")) as started:
        yield started


@contextmanager
def as_zerogpu(checkpoint: Path, tmp_path: Path, **more: str) -> Iterator[tuple[str, Path]]:
    """The whole program as ZeroGPU starts it: its address, and the calls of the GPU so far."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    calls = tmp_path / "calls"
    variables = {
        **environment(),
        **HERE,
        "SPACES_ZERO_GPU": "true",
        "PYTHONPATH": str(ROOT / "tests" / "support" / "zerogpu"),
        "ZERO_CALLS": str(calls),
        "TIMBRE_DEVICE": "cpu",
        "TIMBRE_MODEL": str(checkpoint),
        "TIMBRE_DATA": str(tmp_path / "data"),
        "TIMBRE_PORT": str(port),
        "TIMBRE_HOST": "127.0.0.1",
        **more,
    }
    with (tmp_path / "log").open("w+") as log:
        process = subprocess.Popen(
            [sys.executable, "app.py"],
            cwd=ROOT,
            env=variables,
            stdout=log,
            stderr=subprocess.STDOUT,
        )
        try:
            url = f"http://127.0.0.1:{port}"
            wait_for_page(url, process, tmp_path / "log")
            yield url, calls
        finally:
            process.kill()
            process.wait()


def wait_for_page(url: str, process: subprocess.Popen[bytes], log: Path) -> None:
    until = time.monotonic() + 90
    while True:
        assert process.poll() is None, log.read_text()
        assert time.monotonic() < until, log.read_text()
        try:
            httpx.get(url)
        except httpx.TransportError:
            time.sleep(0.1)
        else:
            return


@pytest.mark.skipif(not hasattr(os, "fork"), reason="ZeroGPU forks, and this system cannot")
def test_zerogpu_speaks_in_a_forked_process_of_each_request(zero: Any, checkpoint: Path) -> None:
    url, calls = zero
    client = Client(url, verbose=False)
    spoken = {"text": "Hello.", "voice": "ryan", "seed": "3", "longest": 1.6}
    pcm, _ = soundfile.read(client.predict(**spoken, api_name="/speak"), dtype="int16")
    chunks = list(client.submit("Hi.", "ryan", api_name="/stream"))
    assert [chunk["index"] for chunk in chunks] == list(range(len(chunks)))
    processes = [line.split()[:2] for line in calls.read_text().splitlines()]
    assert len({each for each, _ in processes}) == 2
    assert all(each != main for each, main in processes)
    with open_engine([checkpoint], device="cpu") as engine:
        request = SpeechRequest("Hello.", Preset("ryan"), seed=3, max_frames=20, live=False)
        assert engine.submit(request).collect().tobytes() == pcm.tobytes()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="ZeroGPU forks, and this system cannot")
def test_zerogpu_has_the_page_alone(zero: Any) -> None:
    url, _ = zero
    page = httpx.get(url)
    assert "huggingface.co" in page.headers["content-security-policy"]
    assert "timbre-visitor" in page.headers["set-cookie"]
    for path in ("/v1/models", "/timbre/live/x", "/timbre/takes/x.wav", "/ready"):
        assert httpx.get(url + path).status_code == 404
    read = json.loads(httpx.get(url + "/config").text)
    assert not read["analytics_enabled"]
    assert not read.get("enable_monitoring")


@pytest.mark.skipif(not hasattr(os, "fork"), reason="ZeroGPU forks, and this system cannot")
def test_zerogpu_asks_for_a_key_where_there_are_keys(checkpoint: Path, tmp_path: Path) -> None:
    with (
        as_zerogpu(checkpoint, tmp_path, TIMBRE_API_KEYS="very-secret") as (url, _),
        httpx.Client(base_url=url) as http,
    ):
        closed = [http.get(path).status_code for path in ("/config", "/timbre/takes/x.wav")]
        http.post("/login", data={"username": "x", "password": "very-secret"})
        open_ = [http.get(path).status_code for path in ("/config", "/timbre/takes/x.wav")]
    assert (closed, open_) == ([401, 401], [200, 404])
    assert "very-secret" not in (tmp_path / "log").read_text()


# A container.


@pytest.fixture(scope="module")
def dockerfile() -> list[list[str]]:
    """Instructions, continued lines joined."""
    text = (ROOT / "Dockerfile").read_text("utf-8").replace("\\\n", " ")
    lines = [line.split() for line in text.splitlines() if line and not line.startswith("#")]
    assert {line[0] for line in lines} <= INSTRUCTIONS
    return lines


INSTRUCTIONS = {
    *("FROM", "ARG", "RUN", "WORKDIR", "COPY", "USER"),
    *("VOLUME", "ENV", "EXPOSE", "HEALTHCHECK", "ENTRYPOINT"),
}


def all_of(dockerfile: list[list[str]], kind: str) -> list[list[str]]:
    return [rest for each, *rest in dockerfile if each == kind]


def test_the_image_is_named_with_its_version(dockerfile: list[list[str]]) -> None:
    (image,) = all_of(dockerfile, "FROM")[0]
    assert re.fullmatch(r"python:3\.1[0-3]-slim-\w+", image)


def test_the_image_does_not_run_as_root(dockerfile: list[list[str]]) -> None:
    """By number: Kubernetes' runAsNonRoot can't tell from a name whether it is root's."""
    kinds = [line[0] for line in dockerfile]
    ((user,),) = all_of(dockerfile, "USER")
    (made,) = [line for line in all_of(dockerfile, "RUN") if "useradd" in line]
    assert int(user) > 0
    assert made[made.index("--uid") + 1] == user
    assert kinds.index("USER") > max(at for at, kind in enumerate(kinds) if kind == "RUN")


def test_the_image_keeps_no_package_lists(dockerfile: list[list[str]]) -> None:
    apt = [line for line in all_of(dockerfile, "RUN") if "apt-get" in line]
    assert apt
    assert all("--no-install-recommends" in line for line in apt)
    assert all(line[-1] == "/var/lib/apt/lists/*" for line in apt)


def test_the_image_knows_only_real_settings(dockerfile: list[list[str]]) -> None:
    set_there = [pair.partition("=")[0] for line in all_of(dockerfile, "ENV") for pair in line]
    ours = {name for name in set_there if name.startswith("TIMBRE_")}
    assert ours
    assert ours <= set(names())


def test_requirements_are_installed_before_the_code_comes(dockerfile: list[list[str]]) -> None:
    """Else every change of the code would install everything anew."""
    steps = [" ".join(line) for line in dockerfile]
    install = next(at for at, step in enumerate(steps) if "pip install" in step)
    lists = steps.index("COPY requirements.txt requirements.lock ./")
    assert lists < install < steps.index("COPY engine ./engine")


def test_the_image_is_built_from_the_lock(dockerfile: list[list[str]]) -> None:
    """With hashes, and with the PyTorch that the lock names in its first line."""
    (install,) = (line for line in all_of(dockerfile, "RUN") if "install" in line and "pip" in line)
    assert "--require-hashes -r requirements.lock" in " ".join(install)
    first = (ROOT / "requirements.lock").read_text("utf-8").splitlines()[0]
    assert re.match(r"# torch==[\d.]+ ", first)


# Whatever a server, its page and each command import, at once or later.
EVERY_MODULE = """
import importlib, pkgutil, studio
for each in pkgutil.walk_packages(studio.__path__, "studio."):
    try:
        importlib.import_module(each.name)
    except ModuleNotFoundError as error:
        assert error.name.partition(".")[0] in ("ray", "spaces", "wyoming", "mcp"), error
"""


def test_what_is_copied_runs_alone(dockerfile: list[list[str]], tmp_path: Path) -> None:
    """It needs no download: the embedded model is in it."""
    allowed = (ROOT / ".dockerignore").read_text("utf-8").splitlines()
    for *sources, _ in all_of(dockerfile, "COPY"):
        for source in sources:
            assert f"!{source}" in allowed
            copy = shutil.copytree if (ROOT / source).is_dir() else shutil.copy
            (tmp_path / source).parent.mkdir(exist_ok=True)
            copy(ROOT / source, tmp_path / source)
    say = ["say", "One, two.", "--out", "said.wav", "--data", "data", "--device", "cpu"]
    for command in (["app.py", *say], ["-c", EVERY_MODULE]):
        ran = subprocess.run(
            [sys.executable, *command], cwd=tmp_path, capture_output=True, text=True, check=False
        )
        assert ran.returncode == 0, ran.stderr
    assert soundfile.info(tmp_path / "said.wav").duration > 0.3


def test_zerogpu_believes_named_proxies_alone(tmp_path: Path) -> None:
    settings = StudioSettings(proxies=("10.0.0.0/8",), api=ApiSettings(page_rate="2/minute"))
    beside = zerogpu._around(Takes(tmp_path), Login(()), settings, Rates(settings.api))
    page = FastAPI(middleware=beside["middleware"])
    page.add_api_route("/gradio_api/queue/join", lambda: None, methods=["POST"])

    def join(peer: str, forwarded: str) -> int:
        client = TestClient(page, base_url="http://localhost", client=(peer, 1))
        headers = {"X-Forwarded-For": forwarded}
        return client.post("/gradio_api/queue/join", headers=headers).status_code

    assert [join("10.1.2.3", "192.0.2.1") for _ in range(3)] == [200, 200, 429]
    assert join("10.1.2.3", "192.0.2.2") == 200
    assert [join("203.0.113.9", f"192.0.2.{n}") for n in (3, 4, 5)] == [200, 200, 429]
