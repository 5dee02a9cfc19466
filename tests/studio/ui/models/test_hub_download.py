"""A model from the hub in the Engine tab of a running server: progress, then it speaks."""

from __future__ import annotations

import os
import re
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from tests.support.browser import PATIENCE, OpenPage, expect, open_tab
from tests.support.loopback_hub import REPOSITORY, Hub, running_hub

ROOT = Path(__file__).parents[4]


@pytest.fixture(scope="module")
def running(golden_dir: Path) -> Iterator[Hub]:
    with running_hub(golden_dir / "base-0b6") as hub:
        yield hub


@pytest.fixture
def hub(running: Hub) -> Hub:
    running.pause, running.gated = 0.0, False
    return running


@pytest.fixture(scope="module")
def url(running: Hub, golden_dir: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """`app.py serve` with another model, an empty cache and this hub; one for all tests, of which
    the last adds a model."""
    tmp_path = tmp_path_factory.mktemp("hub")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    environment = {**os.environ, "HF_ENDPOINT": running.url, "HF_HOME": str(tmp_path / "cache")}
    environment["TIMBRE_DATA"] = str(tmp_path / "data")
    model = str(golden_dir / "base-0b6")
    command = [sys.executable, "app.py", "serve", "--model", model, "--port", str(port)]
    with (tmp_path / "log").open("w") as log:
        server = subprocess.Popen(command, cwd=ROOT, env=environment, stdout=log, stderr=log)
        try:
            url = f"http://127.0.0.1:{port}"
            deadline = time.monotonic() + 2 * PATIENCE
            while time.monotonic() < deadline and server.poll() is None:
                with suppress(OSError):
                    if urllib.request.urlopen(f"{url}/ready", timeout=5).status == 200:
                        break
                time.sleep(0.2)
            yield url
        finally:
            server.terminate()
            server.wait(60)


@pytest.fixture(scope="module")
def page(open_pages: OpenPage, url: str) -> Any:
    """One page for all."""
    page = open_pages(url)
    open_tab(page, "Engine")
    return page


def test_a_hub_that_breaks_off_is_told_and_the_old_model_stays(
    page: Any, url: str, hub: Hub
) -> None:
    hub.gated = True
    page.get_by_label("Add model").fill(REPOSITORY)
    page.get_by_role("button", name="Add", exact=True).click()
    page.get_by_text("Accept its terms").wait_for()
    assert urllib.request.urlopen(f"{url}/ready", timeout=60).status == 200


def test_a_download_can_be_stopped(page: Any, hub: Hub) -> None:
    hub.pause = 0.3  # it does not end by itself before it is stopped
    page.get_by_label("Add model").fill(REPOSITORY)
    page.get_by_role("button", name="Add", exact=True).click()
    page.locator("#models-status").get_by_text("Downloading").wait_for()
    with page.expect_response(lambda answer: "/queue/" in answer.url):
        page.get_by_role("button", name="Stop").locator("visible=true").last.click()
    hub.pause = 0.1  # it is seen at the end of a file
    page.get_by_text("Stopped. Nothing was added.").wait_for()
    expect(page.locator(".timbre-models li")).to_have_count(1)


def test_the_engine_tab_downloads_a_model_and_shows_how_far_it_is(page: Any, hub: Hub) -> None:
    hub.pause = 0.1
    page.get_by_label("Add model").fill(REPOSITORY)
    page.get_by_role("button", name="Add", exact=True).click()
    status = page.locator("#models-status")
    status.get_by_text(re.compile(r"Downloading timbre/tiny: \d+ of \d+ MB")).wait_for()
    page.get_by_text("tiny is loaded.").wait_for()
    rows = page.locator(".timbre-models li")
    expect(rows).to_have_count(2)  # beside the one that was there
    expect(rows.get_by_role("button", name="Unload")).to_have_count(2)
