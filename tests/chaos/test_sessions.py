"""Abandoned page sessions: what is kept of them is bounded."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from bench.stress.soak_watch import Watch
from studio.ui.gradio_compat.sessions import Recent
from studio.ui.page import LARGEST_UPLOAD, SESSIONS

ROOT = Path(__file__).parents[2]
MEGABYTES = 25  # for as many visits again as are remembered; without a bound about 60


@pytest.fixture
def page(tmp_path: Path) -> Iterator[tuple[str, int]]:
    """The page's address and process."""
    command = [sys.executable, "-m", "tests.support.page_server", str(tmp_path)]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    with subprocess.Popen(command, cwd=ROOT, text=True, **pipes) as process:  # type: ignore[call-overload]
        assert process.stdout is not None
        yield f"http://{process.stdout.readline().strip()}", process.pid
        process.communicate("")


def visit(http: httpx.Client, url: str) -> None:
    """Send a program's request in a new session."""
    call = f"{url}/gradio_api/call/voices"
    number = http.post(call, json={"data": []}).json()["event_id"]
    assert "complete" in http.get(f"{call}/{number}").text


def test_a_stream_that_is_told_is_not_forgotten() -> None:
    """By age alone a session would go in the middle of its sound, once enough others have come."""
    recent = Recent(3)
    recent["told"] = 1
    for name in "abcdefgh":
        assert recent["told"] == 1
        recent[name] = name
    assert list(recent) == ["g", "told", "h"]


@pytest.mark.slow
def test_an_upload_that_is_too_large_is_cut_off(page: tuple[str, int]) -> None:
    url = f"{page[0]}/gradio_api/upload"
    small = httpx.post(url, files={"files": ("a.wav", bytes(1000))})
    assert small.status_code == 200
    large = httpx.post(url, files={"files": ("a.wav", bytes(LARGEST_UPLOAD + 1))}, timeout=60)
    assert large.status_code == 413


@pytest.mark.slow
@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="reads /proc")
def test_visitors_who_never_come_back_are_forgotten(page: tuple[str, int]) -> None:
    url, pid = page
    watch = Watch(pid)
    with httpx.Client(timeout=30) as http:
        for _ in range(SESSIONS + 50):
            visit(http, url)
        before = watch.look().megabytes
        for _ in range(2 * SESSIONS):
            visit(http, url)
        grown = watch.look().megabytes - before
    print(f"\n{2 * SESSIONS} visits: {grown:.1f} MB")
    assert grown < MEGABYTES
