"""A server with page and API in a process of its own, and programs that call it."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[4]


@pytest.fixture(scope="module")
def addresses(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, str]]:
    data = str(tmp_path_factory.mktemp("data"))
    command = [sys.executable, "-m", "tests.support.page_server", data]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, cwd=ROOT, stdin=pipe, stdout=pipe, text=True) as server:
        lines = [server.stdout.readline().strip() for _ in range(2)]
        yield f"http://{lines[0]}", lines[1]
        server.stdin.close()
        server.wait(20)


@pytest.fixture
def url(addresses: tuple[str, str]) -> str:
    return addresses[0]


@pytest.fixture
def wyoming(addresses: tuple[str, str]) -> str:
    return addresses[1]


def run(*command: str | Path) -> None:
    done = subprocess.run(command, capture_output=True, text=True, timeout=900, check=False)
    assert done.returncode == 0, (done.stdout + done.stderr)[-2000:]
